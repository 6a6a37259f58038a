package pipeline

import (
	"errors"
	"log/slog"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// failures watches a run of engine errors. They are logged once a second with their count, never one by one.
type failures struct {
	last     error
	since    time.Time // of the first error without a success after it
	reported time.Time
	count    int // since reported
}

func (f *failures) add(logger *slog.Logger, err error) {
	now := time.Now()
	if f.last == nil {
		f.since = now
	}
	f.last = err
	f.count++
	if now.Sub(f.reported) >= time.Second {
		logger.Error("frames lost to the engine", "count", f.count, "error", err)
		f.reported, f.count = now, 0
	}
}

func (f *failures) clear() { f.last = nil }

// validOutput reports whether nothing is known against the network's output for an image.
func validOutput(r predict.Result) bool {
	return r.Err == nil || !errors.As(r.Err, new(*predict.InvalidOutput))
}

// exceeded reports whether nothing has succeeded for that long.
func (f *failures) exceeded(limit time.Duration) bool {
	return f.last != nil && time.Since(f.since) > limit
}
