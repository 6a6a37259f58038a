package bench

import (
	"context"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
)

// glance is how long the machine is watched before and after.
const glance = 300 * time.Millisecond

// busyness is the share of all CPUs that is busy over a while, and the load average; nil where the system does not tell.
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

// settle waits until the machine has been quiet for a second, as long as b says, and notes how busy it is.
func (b *Bench) settle(ctx context.Context, load *result.Load) error {
	if b.WaitIdle <= 0 {
		load.Before, load.Average = busyness(ctx, glance)
		return ctx.Err()
	}
	step := b.Progress.Begin("waiting for a quiet machine")
	defer step.Close()
	for begun := time.Now(); ; {
		load.Before, load.Average = busyness(ctx, time.Second)
		load.Waited = time.Since(begun).Seconds()
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case load.Before == nil:
			return fmt.Errorf("bench: this system does not tell how busy it is, --wait-idle cannot wait")
		case *load.Before <= result.Idle:
			return nil
		case time.Since(begun) >= b.WaitIdle:
			return fmt.Errorf("bench: the machine is still busy to %.0f %% after %v of waiting (stop what runs beside, or leave out --wait-idle)",
				100**load.Before, b.WaitIdle)
		}
		step.Note(fmt.Sprintf("waiting for a quiet machine: %.0f %% busy", 100**load.Before))
	}
}
