package verify

import (
	"slices"
	"time"
)

// Status is the state of a gate. Counters are objects, and run from Open.
type Status struct {
	Host       string `json:"host"` // scheme and host of the service
	Asked      uint64 `json:"asked"`
	Confirmed  uint64 `json:"confirmed"`
	Relabelled uint64 `json:"relabelled"`
	Dropped    uint64 `json:"dropped"`
	Unanswered uint64 `json:"unanswered"` // published or dropped without an answer, whether one was asked for or not
	Held       int    `json:"held"`       // waiting for an answer
	// P50 and P99 are the median and the 99th percentile of the latest answers in seconds, 0 before the first.
	P50 float64 `json:"p50_s"`
	P99 float64 `json:"p99_s"`
	// Error is why the newest question has no answer; empty if it has one.
	Error string `json:"error,omitempty"`
}

// Status returns the current state.
func (g *Gate) Status() Status {
	g.mu.Lock()
	defer g.mu.Unlock()
	s := g.status
	s.Held = len(g.undecided)
	s.P50, s.P99 = g.latest.quantiles()
	return s
}

// durations are the latest ones.
type durations struct {
	all  []time.Duration
	next int
}

// keptDurations is the number of durations that quantiles are of.
const keptDurations = 512

func (d *durations) add(took time.Duration) {
	if len(d.all) < keptDurations {
		d.all = append(d.all, took)
		return
	}
	d.all[d.next] = took
	d.next = (d.next + 1) % keptDurations
}

// quantiles returns median and 99th percentile in seconds, 0 without durations.
func (d *durations) quantiles() (p50, p99 float64) {
	if len(d.all) == 0 {
		return 0, 0
	}
	sorted := slices.Sorted(slices.Values(d.all))
	return sorted[(len(sorted)-1)/2].Seconds(), sorted[(len(sorted)-1)*99/100].Seconds()
}

// account counts what has become of an object.
func (s *Status) account(v verdict) {
	switch v {
	case confirmed:
		s.Confirmed++
	case relabelled:
		s.Relabelled++
	case dropped:
		s.Dropped++
	case unanswered:
		s.Unanswered++
	}
}

// reminder is the shortest time between two lines of the log about a service that fails.
const reminder = time.Minute

// failing notes why a question has no answer. The lock is held.
func (g *Gate) failing(why error, now time.Time) {
	first := g.status.Error == ""
	g.status.Error = why.Error()
	if first && (g.logged.IsZero() || now.Sub(g.logged) >= reminder) {
		g.logged, g.announced = now, true
		g.Logger.Warn("verification service does not answer", "service", g.status.Host, "error", why, "events", g.otherwise())
	}
}

// working notes an answer. The lock is held.
func (g *Gate) working() {
	g.status.Error = ""
	if g.announced {
		g.announced = false
		g.Logger.Info("verification service answers again", "service", g.status.Host)
	}
}

// otherwise describes what becomes of events without an answer.
func (g *Gate) otherwise() string {
	if g.Drop {
		return "dropped meanwhile"
	}
	return "published unverified meanwhile"
}
