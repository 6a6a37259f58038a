package outputs

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// loads returns the load of each processor, of the memory and of fans in percent; unknown ones are omitted.
func loads(r *telemetry.Reading) (all []payload.Reading) {
	add := func(name string, percent float64) {
		if percent >= 0 {
			all = append(all, payload.Reading{Name: name, Value: min(percent, 100)})
		}
	}
	add("cpu", r.CPU.Load)
	for _, g := range r.GPUs {
		add(g.Name, g.Load)
		add(g.Name+" decoder", g.Decoder)
	}
	add("emc", r.EMC.Load)
	if r.Memory.Total > 0 && r.Memory.Available >= 0 {
		add("memory", 100*(1-float64(r.Memory.Available)/float64(r.Memory.Total)))
	}
	if r.Memory.Total > 0 && r.Memory.NvMap >= 0 {
		add("memory of GPU and video", 100*float64(r.Memory.NvMap)/float64(r.Memory.Total))
	}
	for _, f := range r.Fans {
		add(f.Name, f.Duty)
	}
	return all
}

// measure adds the machine's sensors to the figures of the last interval.
func measure(reading *telemetry.Reading, message *payload.Stats) {
	if reading == nil {
		return
	}
	for _, t := range reading.Temperatures {
		message.Temperatures = append(message.Temperatures, payload.Reading{Name: t.Name, Value: t.Celsius})
	}
	for _, r := range reading.Rails {
		message.Power = append(message.Power, payload.Reading{Name: r.Name, Value: r.Watts})
	}
	message.Loads, message.PowerMode = loads(reading), reading.PowerMode
	for _, slow := range reading.Throttled {
		message.Throttled = append(message.Throttled, slow.Part+": "+string(slow.Cause))
	}
}

// readings are the machine's sensors as the page and the metrics show them.
func readings(reading *telemetry.Reading) (all []web.Reading) {
	if reading == nil {
		return nil
	}
	add := func(kind, name string, value float64, unit string) {
		all = append(all, web.Reading{Kind: kind, Name: name, Value: value, Unit: unit})
	}
	for _, t := range reading.Temperatures {
		add("temperature", t.Name, t.Celsius, "celsius")
	}
	for _, r := range reading.Rails {
		add("power", r.Name, r.Watts, "watts")
	}
	for _, load := range loads(reading) {
		add("load", load.Name, load.Value/100, "ratio")
	}
	for _, g := range reading.GPUs {
		if g.Hertz > 0 {
			add("clock", g.Name, float64(g.Hertz), "hertz")
		}
	}
	if reading.CPU.Hertz > 0 {
		add("clock", "cpu", float64(reading.CPU.Hertz), "hertz")
	}
	if reading.EMC.Hertz > 0 {
		add("clock", "emc", float64(reading.EMC.Hertz), "hertz")
	}
	if reading.OverCurrents >= 0 {
		add("over-current", "over-current events since boot", float64(reading.OverCurrents), "events")
	}
	for _, slow := range reading.Throttled {
		add("throttled", slow.Part+": "+string(slow.Cause), 1, "now")
	}
	return all
}
