package outputs

import (
	"context"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/samples"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// frames are the frames that are kept for labelling, as reloads see them.
type frames struct{ of *Outputs }

// open makes the recorder of frames ready. It is there also while none are kept, because a reload may change that.
func (f frames) open() {
	o := f.of
	s := &o.Settings.Samples
	o.samples = &samples.Recorder{Directory: s.Directory, Threshold: o.Threshold, Logger: o.Logger}
	o.samples.Open(sampleSettings(s))
}

func sampleSettings(s *config.Samples) samples.Settings {
	return samples.Settings{Enabled: s.Enabled, MaxBytes: int64(s.MaxMB) << 20, PerHour: s.PerHour}
}

// Compare implements output. Another directory takes a restart: its frames are counted once.
func (f frames) Compare(change *site.OutputChange) site.Change {
	was, next := change.Was.Samples, change.Next.Samples
	if was.Directory != next.Directory {
		return unlike("samples", true, site.Restart, "samples.directory")
	}
	return unlike("samples", was != next, site.Tune, "")
}

// Files implements output.
func (f frames) Files(*site.Outputs) []string { return nil }

// Reload implements output.
func (f frames) Reload(_ context.Context, change *site.OutputChange) error {
	f.of.samples.Set(sampleSettings(&change.Next.Samples))
	return nil
}
