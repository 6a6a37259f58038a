package outputs

import (
	"context"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// clips is the recorder as reloads see it.
type clips struct{ of *Outputs }

// openClips makes the recorder of these cameras ready. It is there also while none is recorded, because a reload may turn one on.
func (o *Outputs) openClips(cameras []record.Camera) {
	if o.store == nil {
		return
	}
	c := &o.Settings.Clips
	o.recorder = &record.Recorder{Directory: c.Directory, Index: o.store, Settings: recorderSettings(c), Logger: o.Logger}
	o.recorder.Open(cameras)
}

func recorderSettings(c *config.Clips) record.Settings {
	return record.Settings{
		Before: c.Before, After: c.After, Cooldown: c.Cooldown, MaxBytes: int64(c.MaxMB) << 20, MaxAge: time.Duration(c.Days) * 24 * time.Hour,
		Sync: c.Sync,
	}
}

// Compare implements output. Another directory takes a restart: clips that are being recorded and the index are relative to it, and are
// checked against each other at the start. What is recorded of a camera, and how much of its video it keeps, belongs to the camera.
func (c clips) Compare(change *site.OutputChange) site.Change {
	was, next := change.Was.Clips, change.Next.Clips
	if was.Directory != next.Directory {
		return unlike("clips", true, site.Restart, "clips.directory")
	}
	was.Enabled, next.Enabled = false, false
	return unlike("clips", was != next, site.Tune, "")
}

// Files implements output.
func (c clips) Files(*site.Outputs) []string { return nil }

// Reload implements output.
func (c clips) Reload(_ context.Context, change *site.OutputChange) error {
	if c.of.recorder != nil {
		c.of.recorder.Set(recorderSettings(&change.Next.Clips))
	}
	return nil
}
