package payload

import (
	"strconv"
	"time"
)

// Stats is the payload of the stats topic, published every few seconds. The client adds its own health.Accounting.
type Stats struct {
	Started      time.Time
	Cameras      []CameraStats
	Stages       []StageStats
	Secondary    []SecondaryStats
	Engine       time.Duration // mean time of one inference
	Temperatures []Reading     // degrees Celsius by thermal zone
	Power        []Reading     // watts by rail
	Loads        []Reading     // percent by processor, and of the memory
	PowerMode    string        // of a Jetson, empty elsewhere
	Throttled    []string      // parts that are slowed down now, with the cause
}

// CameraStats is one camera's part of Stats: rates are per second over the interval, latencies from capture to hand-off.
type CameraStats struct {
	Name                   string
	Captured, Inferred     float64
	DroppedNewer           float64 // replaced by a newer frame before the engine was free
	DroppedMotion          float64 // nothing moved
	DeadlineMissed         uint64  // frames and results older than the camera's deadline, since the start
	Slowdown               int     // factor applied to the time between two inferences, 1 at full speed
	LatencyP50, LatencyP99 time.Duration
}

// StageStats is how long one stage of a frame's way took over the interval.
type StageStats struct {
	Name                string
	P50, P99, P999, Max time.Duration
}

// SecondaryStats is the state of a network that classifies tracked objects. Counters run from the start.
type SecondaryStats struct {
	Name                  string
	Crops, Failed, Missed uint64
	Hangs, Slow           bool
	Last                  time.Time // of the newest result; zero for none
}

func (s *SecondaryStats) appendJSON(buf []byte, now time.Time) []byte {
	buf = AppendString(buf, s.Name)
	for _, field := range [...]struct {
		key   string
		value uint64
	}{{`:{"crops":`, s.Crops}, {`,"failed":`, s.Failed}, {`,"missed":`, s.Missed}} {
		buf = strconv.AppendUint(append(buf, field.key...), field.value, 10)
	}
	buf = strconv.AppendBool(append(buf, `,"hangs":`...), s.Hangs)
	buf = strconv.AppendBool(append(buf, `,"slow":`...), s.Slow)
	if !s.Last.IsZero() {
		buf = AppendDecimal(append(buf, `,"last_result_s":`...), max(0, now.Sub(s.Last).Seconds()))
	}
	return append(buf, '}')
}

func (s *StageStats) appendJSON(buf []byte) []byte {
	buf = AppendString(buf, s.Name)
	for _, field := range [...]struct {
		key   string
		value time.Duration
	}{{`:{"p50_ms":`, s.P50}, {`,"p99_ms":`, s.P99}, {`,"p999_ms":`, s.P999}, {`,"max_ms":`, s.Max}} {
		buf = AppendMilliseconds(append(buf, field.key...), field.value)
	}
	return append(buf, '}')
}

// Reading is one sensor's value.
type Reading struct {
	Name  string
	Value float64
}

// AppendJSON appends the payload to buf and returns it. client appends the fields of the object mqtt.
func (s *Stats) AppendJSON(buf []byte, device string, now time.Time, client func([]byte) []byte) []byte {
	buf = append(buf, Version+`"device":`...)
	buf = AppendString(buf, device)
	buf = AppendTimeField(buf, now)
	buf = append(buf, `,"uptime_s":`...)
	buf = appendSeconds(buf, s.Started, now)
	buf = append(buf, `,"engine_ms":`...)
	buf = AppendMilliseconds(buf, s.Engine)
	buf = append(buf, `,"cameras":{`...)
	for i := range s.Cameras {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = s.Cameras[i].appendJSON(buf)
	}
	buf = append(buf, `},"stages":{`...)
	for i := range s.Stages {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = s.Stages[i].appendJSON(buf)
	}
	if len(s.Secondary) > 0 {
		buf = append(buf, `},"secondary":{`...)
		for i := range s.Secondary {
			if i > 0 {
				buf = append(buf, ',')
			}
			buf = s.Secondary[i].appendJSON(buf, now)
		}
	}
	buf = append(buf, `},"temperature_c":`...)
	buf = appendReadings(buf, s.Temperatures)
	buf = append(buf, `,"power_w":`...)
	buf = appendReadings(buf, s.Power)
	buf = append(buf, `,"load_pct":`...)
	buf = appendReadings(buf, s.Loads)
	buf = append(buf, `,"power_mode":`...)
	buf = AppendString(buf, s.PowerMode)
	buf = append(buf, `,"throttled":[`...)
	for i, part := range s.Throttled {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendString(buf, part)
	}
	buf = client(append(buf, `],"mqtt":{`...))
	return append(buf, '}', '}')
}

func (c *CameraStats) appendJSON(buf []byte) []byte {
	buf = AppendString(buf, c.Name)
	buf = append(buf, `:{"fps_captured":`...)
	buf = AppendDecimal(buf, c.Captured)
	buf = append(buf, `,"fps_inferred":`...)
	buf = AppendDecimal(buf, c.Inferred)
	buf = append(buf, `,"fps_dropped_newer":`...)
	buf = AppendDecimal(buf, c.DroppedNewer)
	buf = append(buf, `,"fps_dropped_motion":`...)
	buf = AppendDecimal(buf, c.DroppedMotion)
	buf = append(buf, `,"deadline_missed":`...)
	buf = strconv.AppendUint(buf, c.DeadlineMissed, 10)
	buf = c.appendDeprecated(buf)
	buf = append(buf, `,"slowdown":`...)
	buf = strconv.AppendInt(buf, int64(max(c.Slowdown, 1)), 10)
	buf = append(buf, `,"latency_p50_ms":`...)
	buf = AppendMilliseconds(buf, c.LatencyP50)
	buf = append(buf, `,"latency_p99_ms":`...)
	buf = AppendMilliseconds(buf, c.LatencyP99)
	return append(buf, '}')
}

func appendReadings(buf []byte, readings []Reading) []byte {
	buf = append(buf, '{')
	for i, reading := range readings {
		if i > 0 {
			buf = append(buf, ',')
		}
		buf = AppendString(buf, reading.Name)
		buf = append(buf, ':')
		buf = AppendDecimal(buf, reading.Value)
	}
	return append(buf, '}')
}
