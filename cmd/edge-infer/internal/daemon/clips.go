package daemon

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// openClips makes the recorder of these cameras ready. It is there also while none is recorded, because a reload may turn one on.
func (o *outputs) openClips(cameras []record.Camera) {
	if o.store == nil {
		return
	}
	c := &o.config.Clips
	o.recorder = &record.Recorder{
		Directory: c.Directory, Index: o.store, Before: c.Before, After: c.After, Cooldown: c.Cooldown, MaxBytes: int64(c.MaxMB) << 20,
		MaxAge: time.Duration(c.Days) * 24 * time.Hour, Sync: c.Sync, Logger: o.logger,
	}
	o.recorder.Open(cameras)
}

// keepUnits returns how long cameras with clips keep their access units.
func keepUnits(c *config.Clips) time.Duration {
	r := record.Recorder{Before: c.Before}
	return r.KeepUnits()
}

// recorded returns the cameras that are recorded.
func recorded(all []*camera.Camera) (cameras []record.Camera) {
	for _, c := range all {
		if clips := &c.Site.Clips; clips.Any() {
			cameras = append(cameras, record.Camera{
				Name: c.Site.Name, Continuous: clips.Continuous, WithoutClips: !clips.Enabled, Classes: clips.Classes, Zones: clips.Zones, Source: c,
			})
		}
	}
	return cameras
}

// keepUnits returns how long a camera keeps its access units for clips.
func (f *fleet) keepUnits(c *site.Camera) time.Duration {
	if !c.Clips.Any() || c.Privacy.Enabled() {
		return 0
	}
	return f.clipUnits
}
