package telemetry

import (
	"regexp"
	"strconv"
	"strings"
)

// rail is the files of one power rail. Either volts and amperes are files, or watts is.
type rail struct {
	name                  string
	volts, amperes, watts string
	alarms                []string
}

// findRails lists the channels of INA3221 monitors, which Jetsons have, and whatever other chips measure power themselves.
func (r *Reader) findRails() {
	r.rails = nil
	for _, dir := range r.glob("/sys/class/hwmon/hwmon*") {
		chip := r.text(dir + "/name")
		if chip == "ina3221" {
			r.findChannels(dir)
			continue
		}
		for _, input := range append(r.glob(dir+"/power*_input"), r.glob(dir+"/power*_average")...) {
			name := chip
			if label := r.text(input[:strings.LastIndexByte(input, '_')] + "_label"); label != "" {
				name += " " + label
			}
			r.addRail(rail{name: name, watts: input})
		}
	}
}

// findChannels lists one INA3221's channels: 1 to 3; the others are shunt voltages and their sum.
func (r *Reader) findChannels(dir string) {
	for _, n := range [...]string{"1", "2", "3"} {
		label := r.text(dir + "/in" + n + "_label")
		if label == "" || label == "NC" {
			continue
		}
		r.addRail(rail{
			name: label, volts: dir + "/in" + n + "_input", amperes: dir + "/curr" + n + "_input",
			alarms: []string{dir + "/curr" + n + "_max_alarm", dir + "/curr" + n + "_crit_alarm"},
		})
	}
}

func (r *Reader) addRail(added rail) {
	if len(r.rails) == maxSensors {
		return
	}
	name, again := added.name, 1
	for i := 0; i < len(r.rails); i++ {
		if r.rails[i].name == added.name {
			again++
			added.name = name + " " + strconv.Itoa(again)
			i = -1
		}
	}
	r.rails = append(r.rails, added)
}

// power reads the rails: millivolts and milliamperes, or microwatts.
func (r *Reader) power(reading *Reading) {
	for i := range r.rails {
		f := &r.rails[i]
		if f.watts != "" {
			if micro := r.count(f.watts); micro >= 0 {
				reading.Rails = append(reading.Rails, Rail{Name: f.name, Watts: float64(micro) / 1e6, Volts: -1, Amperes: -1})
			}
			continue
		}
		milliVolts, milliAmperes := r.count(f.volts), r.count(f.amperes)
		if milliVolts >= 0 && milliAmperes >= 0 {
			volts, amperes := float64(milliVolts)/1000, float64(milliAmperes)/1000
			reading.Rails = append(reading.Rails, Rail{Name: f.name, Watts: volts * amperes, Volts: volts, Amperes: amperes})
		}
	}
}

var (
	modeLine    = regexp.MustCompile(`(?m)^\s*<\s*POWER_MODEL\s+ID=(\d{1,4})\s+NAME=(\S+)\s*>`)
	currentMode = regexp.MustCompile(`pmode:(\d{1,4})`)
)

// parseModes reads the names of nvpmodel's modes.
func parseModes(file []byte) map[int]string {
	modes := map[int]string{}
	for _, match := range modeLine.FindAllSubmatch(file, -1) {
		id, _ := strconv.Atoi(string(match[1])) // four digits at most
		modes[id] = string(match[2])
	}
	return modes
}

// powerMode is the name of the mode that nvpmodel set last, its number where the configuration has no name for it.
func (r *Reader) powerMode() string {
	match := currentMode.FindSubmatch(r.contents("/var/lib/nvpmodel/status"))
	if match == nil {
		return ""
	}
	id, _ := strconv.Atoi(string(match[1]))
	if name, known := r.modes[id]; known {
		return name
	}
	return strconv.Itoa(id)
}

// PowerModes returns the names of nvpmodel's modes by number, as used by nvpmodel -m; none on machines other than Jetsons.
func (r *Reader) PowerModes() map[int]string { return r.modes }
