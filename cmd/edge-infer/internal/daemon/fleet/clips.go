package fleet

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// KeepUnits returns how long cameras with clips keep their access units.
func KeepUnits(c *config.Clips) time.Duration {
	r := record.Recorder{Before: c.Before}
	return r.KeepUnits()
}

// Recorded returns the cameras that are recorded.
func (f *Fleet) Recorded() (cameras []record.Camera) {
	for _, c := range f.cameras.All() {
		if clips := &c.Site.Clips; clips.Any() {
			cameras = append(cameras, record.Camera{
				Name: c.Site.Name, Continuous: clips.Continuous, WithoutClips: !clips.Enabled, Classes: clips.Classes, Zones: clips.Zones, Source: c,
			})
		}
	}
	return cameras
}

// keepUnits returns how long a camera keeps its access units for clips; clips is how long cameras with clips keep them.
func keepUnits(c *site.Camera, clips time.Duration) time.Duration {
	if !c.Clips.Any() || c.Privacy.Enabled() {
		return 0
	}
	return clips
}
