package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// glance is the time over which the load is measured before and after.
const glance = 300 * time.Millisecond

// busyness returns the share of all CPUs in use over a time, nil if unknown, and the load average.
func busyness(ctx context.Context, while time.Duration) (share *float64, average float64) {
	r := telemetry.Reader{FilesOnly: true}
	r.Read()
	select {
	case <-time.After(while):
	case <-ctx.Done():
	}
	c := r.Read().CPU
	return percentage(c.Load), max(c.Average, 0)
}

func percentage(load float64) *float64 {
	if load < 0 {
		return nil
	}
	load /= 100
	return &load
}

// waitIdle waits up to b.WaitIdle until the machine has been idle for a second, and records its load.
func (b *Bench) waitIdle(ctx context.Context, load *Load) error {
	if b.WaitIdle <= 0 {
		load.Before, load.Average = busyness(ctx, glance)
		return ctx.Err()
	}
	step := b.Progress.Begin("waiting for an idle machine")
	defer step.Close()
	for begun := time.Now(); ; {
		load.Before, load.Average = busyness(ctx, time.Second)
		load.Waited = time.Since(begun).Seconds()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case load.Before == nil:
			return fmt.Errorf("bench: --wait-idle: the load of this system is unknown")
		case *load.Before <= idleLoad:
			return nil
		case time.Since(begun) >= b.WaitIdle:
			return fmt.Errorf("bench: the machine is still %.0f %% busy after %v (stop other programs, or omit --wait-idle)",
				100**load.Before, b.WaitIdle)
		}
		step.Note(fmt.Sprintf("waiting for an idle machine: %.0f %% busy", 100**load.Before))
	}
}
