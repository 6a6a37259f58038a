package telemetry

import "strconv"

// Fan is a fan whose speed the kernel sets.
type Fan struct {
	Name string  `json:"name"`
	Duty float64 `json:"duty"` // percent of its greatest power
	RPM  int64   `json:"rpm"`  // revolutions per minute
}

// fan is the files of a Fan.
type fan struct{ duty, rpm string }

// fullDuty is the greatest value of a pwm file.
const fullDuty = 255

// findFans lists the fans of the kernel's driver pwm-fan, which Jetsons and other boards have. A Jetson's tachometer is a device of its
// own.
func (r *Reader) findFans() {
	r.fans = nil
	tachometers := r.glob("/sys/class/hwmon/hwmon*/rpm")
	for _, dir := range r.glob("/sys/class/hwmon/hwmon*") {
		if r.text(dir+"/name") != "pwmfan" || len(r.fans) == maxSensors {
			continue
		}
		f := fan{duty: dir + "/pwm1", rpm: dir + "/fan1_input"}
		if n := len(r.fans); r.count(f.rpm) < 0 && n < len(tachometers) {
			f.rpm = tachometers[n]
		}
		r.fans = append(r.fans, f)
	}
}

// readFans reads them.
func (r *Reader) readFans(reading *Reading) {
	for i, f := range r.fans {
		duty := r.count(f.duty)
		if duty < 0 {
			continue
		}
		name := "fan"
		if i > 0 {
			name += " " + strconv.Itoa(i+1)
		}
		reading.Fans = append(reading.Fans, Fan{Name: name, Duty: min(100, 100*float64(duty)/fullDuty), RPM: r.count(f.rpm)})
	}
}
