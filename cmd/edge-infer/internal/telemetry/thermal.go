package telemetry

import (
	"path/filepath"
	"strconv"
	"strings"
)

// zone is one temperature sensor.
type zone struct {
	name, path string
	limit      float64
}

// maxSensors limits what a machine with many sensors adds to each message.
const maxSensors = 48

// findZones lists thermal zones, then the hwmon sensors that are no thermal zones.
func (r *Reader) findZones() {
	r.zones = nil
	names := map[string]bool{}
	add := func(name, path string, limit float64) {
		if len(r.zones) == maxSensors {
			return
		}
		unique := name
		for i := 2; names[unique]; i++ {
			unique = name + " " + strconv.Itoa(i)
		}
		names[unique] = true
		r.zones = append(r.zones, zone{unique, path, limit})
	}
	types := map[string]bool{}
	for _, dir := range r.glob("/sys/class/thermal/thermal_zone*") {
		if name := r.text(dir + "/type"); name != "" {
			types[strings.ReplaceAll(name, "-", "_")] = true
			add(name, dir+"/temp", r.passiveTrip(dir))
		}
	}
	for _, dir := range r.glob("/sys/class/hwmon/hwmon*") {
		chip := r.text(dir + "/name")
		if chip == "" || types[strings.ReplaceAll(chip, "-", "_")] {
			continue // the kernel shows thermal zones here once more
		}
		for _, input := range r.glob(dir + "/temp*_input") {
			prefix := strings.TrimSuffix(input, "input")
			name := chip
			if label := r.text(prefix + "label"); label != "" {
				name += " " + label
			}
			limit, _ := r.number(prefix + "max")
			add(name, input, plausibleLimit(limit))
		}
	}
}

// passiveTrip is the lowest trip point at which the kernel slows something down, in degrees; 0 without one.
func (r *Reader) passiveTrip(dir string) float64 {
	lowest := 0.0
	for _, kind := range r.glob(dir + "/trip_point_*_type") {
		if r.text(kind) != "passive" {
			continue
		}
		milli, _ := r.number(filepath.Join(dir, strings.TrimSuffix(filepath.Base(kind), "type")+"temp"))
		if limit := plausibleLimit(milli); limit > 0 && (lowest == 0 || limit < lowest) {
			lowest = limit
		}
	}
	return lowest
}

// plausibleLimit filters placeholders of firmware: 0, -274 or 65261 degrees.
func plausibleLimit(milli int64) float64 {
	if milli < 40_000 || milli > 150_000 {
		return 0
	}
	return float64(milli) / 1000
}

// temperature reads a sensor. One that is off returns -256 degrees, or nothing.
func (r *Reader) temperature(z *zone) (float64, bool) {
	milli, ok := r.number(z.path)
	if !ok || milli < -60_000 || milli > 200_000 {
		return 0, false
	}
	return float64(milli) / 1000, true
}

// slowdown is a file that indicates throttling if it holds a number above 0.
type slowdown struct {
	path string
	Slowdown
}

// findSlowdowns lists the cooling devices that slow a processor down, and over-current alarms. Fans and displays are cooling devices too.
func (r *Reader) findSlowdowns() {
	r.slowdowns = nil
	for _, dir := range r.glob("/sys/class/thermal/cooling_device*") {
		kind := r.text(dir + "/type")
		for _, part := range [...]string{"throttle", "cpufreq", "devfreq", "Processor"} {
			if strings.Contains(kind, part) {
				r.slowdowns = append(r.slowdowns, slowdown{dir + "/cur_state", Slowdown{Heat, kind}})
				break
			}
		}
	}
	for i := range r.rails {
		for _, alarm := range r.rails[i].alarms {
			r.slowdowns = append(r.slowdowns, slowdown{alarm, Slowdown{OverCurrent, r.rails[i].name}})
		}
	}
}

func (r *Reader) readThrottling(reading *Reading) {
	for _, s := range r.slowdowns {
		if state, ok := r.number(s.path); ok && state > 0 {
			reading.addSlowdown(s.Cause, s.Part)
		}
	}
	reading.OverCurrents = r.overCurrents(reading)
}

// eventCounters are the files of a Jetson's over-current counters, one for each input of the circuit that slows processors down at once:
// "System throttled due to over-current" on the desktop. The alarms of INA3221 monitors are over before they can be read.
const eventCounters = "oc*_event_cnt"

// findEventCounters lists them.
func (r *Reader) findEventCounters() {
	r.counters = nil
	for _, dir := range r.glob("/sys/class/hwmon/hwmon*") {
		if r.text(dir+"/name") == "soctherm_oc" {
			r.counters = append(r.counters, r.glob(dir+"/"+eventCounters)...)
		}
	}
}

// overCurrents returns the sum of the counters, -1 without any. A counter that has risen since the last reading is a cause of throttling.
func (r *Reader) overCurrents(reading *Reading) int64 {
	total := int64(-1)
	for _, path := range r.counters {
		events := r.count(path)
		if events < 0 {
			continue
		}
		last, known := r.events[path]
		if known && events > last {
			input, _, _ := strings.Cut(filepath.Base(path), "_")
			reading.addSlowdown(OverCurrent, "soctherm "+input)
		}
		if r.events == nil {
			r.events = map[string]int64{}
		}
		r.events[path] = events
		total = max(total, 0) + events
	}
	return total
}
