package fleet

import (
	"fmt"
	"log/slog"
	"math"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/device"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// demand is the number of frames a camera delivered and got inferred so far, and its configured rate.
type demand struct {
	captured, dropped, done uint64  // frames; done are those inferred or dropped because nothing moved
	rate                    float64 // the most inferences a second, 0 for no limit
	interval                int     // of frames, slowed down as it is
}

// Shares of dropped frames above which the overload is logged, and below which its end is.
const (
	overloadShare = 0.05
	enoughShare   = 0.01
)

// shortage is the share of the wanted frames of the time between two checks that were dropped because newer ones replaced them.
func (d *demand) shortage(before *demand, took time.Duration) float64 {
	if d.captured < before.captured || d.dropped < before.dropped || d.done < before.done {
		return 0 // a reload reset the camera's counters
	}
	captured, dropped := float64(d.captured-before.captured), float64(d.dropped-before.dropped)
	wanted := captured / float64(max(d.interval, 1))
	if d.rate > 0 {
		wanted = min(wanted, d.rate*took.Seconds())
	}
	if wanted < 1 {
		return 0
	}
	return max(0, min(dropped/captured, 1-float64(d.done-before.done)/wanted))
}

// overload logs when the network does not keep up with the cameras, and when it does again. Watch goroutine only.
type overload struct {
	before map[string]demand
	at     time.Time
	logged bool
}

// check compares the demand with that of the previous check, some seconds ago.
func (o *overload) check(logger *slog.Logger, now time.Time, cameras map[string]demand) {
	worst, which := -1.0, ""
	for name, d := range cameras {
		if before, known := o.before[name]; known {
			if share := d.shortage(&before, now.Sub(o.at)); share > worst || share == worst && name < which {
				worst, which = share, name
			}
		}
	}
	o.before, o.at = cameras, now
	switch {
	case !o.logged && worst > overloadShare:
		o.logged = true
		logger.Warn("the network does not keep up: newer frames replace those that wait, none is processed late",
			"camera", which, "lost", fmt.Sprintf("%.0f%%", math.Round(100*worst)),
			"hint", "set a rate for cameras, leave still images out (motion), or take a smaller network: docs/tuning.md")
	case o.logged && worst >= 0 && worst < enoughShare:
		o.logged = false
		logger.Info("the network keeps up with the cameras again")
	}
}

// CheckLoad logs when the networks do not keep up with the cameras, and when they do again. Watch goroutine only.
func (f *Fleet) CheckLoad(now time.Time) {
	f.overload.check(f.Logger, now, demands(&f.devices, &f.cameras))
}

// demands returns the demand of the running cameras that drop frames.
func demands(devices *device.Set, cameras *camera.Set) map[string]demand {
	all := map[string]demand{}
	totals := map[string]pipeline.CameraStats{}
	for _, one := range devices.Totals() {
		totals[one.Camera] = one
	}
	for _, c := range cameras.All() {
		total, known := totals[c.Site.Name]
		settings, set := devices.Settings(c.Site.Name)
		captured := c.Capture.Stats()
		if !known || !set || !settings.Detect || captured.State != capture.Running {
			continue
		}
		all[c.Site.Name] = demand{
			captured: captured.Captured, dropped: captured.Dropped, done: total.Inferred + total.DroppedMotion,
			rate: c.Loop.Rate / float64(max(total.Slowdown, 1)), interval: settings.Interval * max(total.Slowdown, 1),
		}
	}
	return all
}
