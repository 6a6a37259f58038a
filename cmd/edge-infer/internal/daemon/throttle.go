package daemon

import (
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// throttle slows the cameras down while the machine is about to throttle by itself. Watch goroutine only, but for its limits.
type throttle struct {
	limits atomic.Pointer[config.Thermal]
	policy telemetry.Policy
	factor atomic.Int32 // of every camera's interval; any goroutine may read it
}

// step returns the factor after another reading and whether it changed.
func (t *throttle) step(reading *telemetry.Reading) (factor int, changed bool) {
	limits := t.limits.Load()
	factor = 1
	if limits.Margin > 0 {
		t.policy.Margin, t.policy.Hysteresis = limits.Margin, limits.Hysteresis
		factor = t.policy.Step(reading)
	} else {
		t.policy = telemetry.Policy{}
	}
	changed = factor != int(t.factor.Swap(int32(factor)))
	return factor, changed
}

// slowDown keeps the machine from throttling, if configured.
func (r *run) slowDown() {
	if factor, changed := r.throttle.step(r.monitor.Latest()); changed {
		r.logger.Warn("rate changed for the machine's temperature", "interval_factor", factor)
		r.fleet.SetSlowdown(factor)
	}
}
