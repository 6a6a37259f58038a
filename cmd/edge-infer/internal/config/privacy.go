package config

import (
	"fmt"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Privacy configures which parts of a camera's images are pixelated before they leave the process.
type Privacy struct {
	Regions [][]zone.Point `yaml:"regions,omitempty"` // polygons, as shares of the image's sides
	Labels  []string       `yaml:"labels,omitempty"`  // of objects
}

// maxPrivateRegions bounds the work for an image.
const maxPrivateRegions = 64

// Enabled reports whether anything is hidden. Then none of the camera's own packets may leave the process: they show everything.
func (p *Privacy) Enabled() bool { return len(p.Regions) > 0 || len(p.Labels) > 0 }

// checkPrivacy validates the hidden parts of a camera's images. The labels are checked against the model when it is open.
func (c *Camera) checkPrivacy(e *element) {
	p := &c.Privacy
	most := fmt.Sprintf("must be %d polygons or fewer", maxPrivateRegions)
	e.must(len(p.Regions) <= maxPrivateRegions, "privacy.regions", len(p.Regions), most)
	for i, region := range p.Regions {
		err := zone.ValidatePolygon(region)
		if err != nil {
			e.add("privacy.regions", fmt.Errorf("region %d: %w", i+1, err))
		}
	}
	for _, label := range p.Labels {
		e.must(label != "", "privacy.labels", label, "must be a class of the model")
	}
}
