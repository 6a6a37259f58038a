package fleet

import (
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

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

// keepUnits returns how long a camera keeps its access units for clips.
func keepUnits(c *site.Camera) time.Duration {
	if !c.Clips.Any() || c.Privacy.Enabled() {
		return 0
	}
	return record.Settings{Before: c.Clips.Before}.KeepUnits()
}
