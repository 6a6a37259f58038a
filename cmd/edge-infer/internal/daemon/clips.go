package daemon

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/camera"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web"
)

// openClips makes the recorder ready. It is there also while no camera is recorded, because a reload may turn one on.
func (o *outputs) openClips() {
	if o.store == nil {
		return
	}
	c := &o.config.Clips
	o.recorder = &record.Recorder{
		Directory: c.Directory, Index: o.store, Before: c.Before, After: c.After, Cooldown: c.Cooldown, MaxBytes: int64(c.MaxMB) << 20,
		MaxAge: time.Duration(c.Days) * 24 * time.Hour, Sync: c.Sync, Logger: o.logger,
	}
	o.recorder.Open(recorded(o.cameras.All()))
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

// clipTrouble is why clips are not recorded, as a part of the status' reason.
func (o *outputs) clipTrouble() string {
	clips := o.clips()
	if clips == nil {
		return ""
	}
	if clips.Error != "" {
		return "; no clips are recorded: " + clips.Error
	}
	text := ""
	for _, c := range clips.Cameras {
		if c.Error != "" {
			text += "; no clips of " + c.Camera + ": " + c.Error
		}
	}
	return text
}

// clips returns the state of the recorder, nil if there is none.
func (o *outputs) clips() *web.Clips {
	if o.recorder == nil {
		return nil
	}
	s := o.recorder.Status()
	clips := &web.Clips{
		Error: s.Reason, Clips: s.Clips, Bytes: s.Bytes, MaxBytes: s.MaxBytes, Recorded: s.Recorded, Failures: s.Failures, Missed: s.Missed,
		Suppressed: s.Suppressed, SlowestWrite: s.Slowest,
	}
	for _, c := range o.cameras.All() {
		state, found := s.Cameras[c.Site.Name]
		if !found {
			continue
		}
		clips.Cameras = append(clips.Cameras, web.CameraClips{
			Camera: c.Site.Name, Recording: state.Recording, Error: state.Reason, Skipped: state.Skipped,
		})
	}
	return clips
}
