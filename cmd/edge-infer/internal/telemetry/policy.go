package telemetry

import (
	"slices"
	"time"
)

// Policy lowers the rate of inference before the hardware throttles: it returns a factor for every camera's interval. The zero value is
// off. One goroutine uses it.
type Policy struct {
	// Margin is how many degrees below its limit a sensor may come before the rate is lowered; 0 turns the policy off.
	Margin float64
	// Hysteresis is how many degrees more than Margin the machine must have cooled down before the rate rises again.
	Hysteresis float64
	// Limit stands in for sensors that name none, in degrees Celsius; 0 leaves those out.
	Limit float64
	// Most is the largest factor; less than 2 means 8.
	Most int
	// Hold is the least time between two changes, so that one shows its effect before the next; 0 means 20 s.
	Hold time.Duration

	factor  int
	changed time.Time
}

// Step takes a reading and returns the factor: 1, 2, 4 and so on up to Most. It doubles while a sensor is within Margin of its limit or the
// machine throttles because of heat or current, and halves while every sensor is more than Margin plus Hysteresis below. Without a reading,
// or without temperatures, it stays the same.
func (p *Policy) Step(r *Reading) int {
	p.factor = max(1, p.factor)
	if p.Margin <= 0 || r == nil {
		return p.factor
	}
	hold, most := p.Hold, p.Most
	if hold <= 0 {
		hold = 20 * time.Second
	}
	if most < 2 {
		most = 8
	}
	if !p.changed.IsZero() && r.Time.Sub(p.changed) < hold {
		return p.factor
	}
	next := p.factor
	hottest := r.Hottest(p.Limit)
	switch {
	case slices.ContainsFunc(r.Throttled, func(s Slowdown) bool { return s.Cause == Heat || s.Cause == OverCurrent }):
		next = min(most, 2*p.factor)
	case hottest == nil:
		return p.factor
	default:
		limit := hottest.Limit
		if limit == 0 {
			limit = p.Limit
		}
		switch room := limit - hottest.Celsius; {
		case room < p.Margin:
			next = min(most, 2*p.factor)
		case room > p.Margin+p.Hysteresis:
			next = max(1, p.factor/2)
		}
	}
	if next != p.factor {
		p.factor, p.changed = next, r.Time
	}
	return p.factor
}
