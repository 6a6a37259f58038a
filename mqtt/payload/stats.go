package payload

import "time"

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

// Reading is one sensor's value.
type Reading struct {
	Name  string
	Value float64
}

type statsMessage struct {
	Header
	Uptime       int64                       `json:"uptime_s"`
	Engine       Decimal                     `json:"engine_ms"`
	Cameras      map[string]cameraMessage    `json:"cameras"`
	Stages       map[string]stageMessage     `json:"stages"`
	Secondary    map[string]secondaryMessage `json:"secondary,omitempty"`
	Temperatures map[string]Decimal          `json:"temperature_c"`
	Power        map[string]Decimal          `json:"power_w"`
	Loads        map[string]Decimal          `json:"load_pct"`
	PowerMode    string                      `json:"power_mode"`
	Throttled    []string                    `json:"throttled"`
	MQTT         any                         `json:"mqtt"`
}

type cameraMessage struct {
	Captured       Decimal `json:"fps_captured"`
	Inferred       Decimal `json:"fps_inferred"`
	DroppedNewer   Decimal `json:"fps_dropped_newer"`
	DroppedMotion  Decimal `json:"fps_dropped_motion"`
	DeadlineMissed uint64  `json:"deadline_missed"`
	Slowdown       int     `json:"slowdown"`
	P50            Decimal `json:"latency_p50_ms"`
	P99            Decimal `json:"latency_p99_ms"`
}

type stageMessage struct {
	P50  Decimal `json:"p50_ms"`
	P99  Decimal `json:"p99_ms"`
	P999 Decimal `json:"p999_ms"`
	Max  Decimal `json:"max_ms"`
}

type secondaryMessage struct {
	Crops  uint64   `json:"crops"`
	Failed uint64   `json:"failed"`
	Missed uint64   `json:"missed"`
	Hangs  bool     `json:"hangs"`
	Slow   bool     `json:"slow"`
	Last   *Decimal `json:"last_result_s,omitempty"`
}

// AppendJSON appends the payload to buf and returns it. client is the object mqtt.
func (s *Stats) AppendJSON(buf []byte, device string, now time.Time, client any) []byte {
	reading := func(r *Reading) (string, Decimal) { return r.Name, Decimal(r.Value) }
	return AppendMessage(buf, &statsMessage{
		Header: NewHeader(device, now), Uptime: uptime(s.Started, now), Engine: milliseconds(s.Engine),
		Cameras: byName(s.Cameras, (*CameraStats).message), Stages: byName(s.Stages, (*StageStats).message),
		Secondary:    byName(s.Secondary, func(n *SecondaryStats) (string, secondaryMessage) { return n.message(now) }),
		Temperatures: byName(s.Temperatures, reading), Power: byName(s.Power, reading), Loads: byName(s.Loads, reading),
		PowerMode: s.PowerMode, Throttled: append([]string{}, s.Throttled...), MQTT: client,
	})
}

func (c *CameraStats) message() (string, cameraMessage) {
	return c.Name, cameraMessage{
		Captured: Decimal(c.Captured), Inferred: Decimal(c.Inferred), DroppedNewer: Decimal(c.DroppedNewer),
		DroppedMotion: Decimal(c.DroppedMotion), DeadlineMissed: c.DeadlineMissed, Slowdown: max(c.Slowdown, 1),
		P50: milliseconds(c.LatencyP50), P99: milliseconds(c.LatencyP99),
	}
}

func (s *StageStats) message() (string, stageMessage) {
	return s.Name, stageMessage{milliseconds(s.P50), milliseconds(s.P99), milliseconds(s.P999), milliseconds(s.Max)}
}

func (s *SecondaryStats) message(now time.Time) (string, secondaryMessage) {
	m := secondaryMessage{Crops: s.Crops, Failed: s.Failed, Missed: s.Missed, Hangs: s.Hangs, Slow: s.Slow}
	if !s.Last.IsZero() {
		ago := Decimal(max(0, now.Sub(s.Last).Seconds()))
		m.Last = &ago
	}
	return s.Name, m
}
