package fleet

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/imagesize"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
)

func imageSizeCameras(cameras []site.Camera) (all []imagesize.Camera) {
	for i := range cameras {
		all = append(all, imagesize.Camera{Name: cameras[i].Name, URI: cameras[i].URI})
	}
	return all
}

// RememberImages keeps how large the cameras' images are for the next start.
func (f *Fleet) RememberImages() {
	changed := false
	for _, c := range f.cameras.All() {
		stats := c.Capture.Stats()
		camera := imagesize.Camera{Name: c.Site.Name, URI: c.Site.URI}
		changed = f.Images.Update(camera, engine.Size{Width: stats.Width, Height: stats.Height}) || changed
	}
	if !changed {
		return
	}
	if err := f.Images.Save(); err != nil {
		f.Logger.Warn("the sizes of the cameras' images are not remembered", "error", err)
	}
	f.logShapeMismatches()
}

// logShapeMismatches logs which networks a restart would open with another input shape, because cameras were added or changed. A network is
// not reopened for that, since its engine plan would be built first.
func (f *Fleet) logShapeMismatches() {
	views := f.devices.Groups()
	sizes := make([][]engine.Size, len(views))
	for _, c := range f.cameras.All() {
		d := f.devices.At(c.Capture)
		if d == nil {
			continue // it is being removed
		}
		size := f.Images.Size(imagesize.Camera{Name: c.Site.Name, URI: c.Site.URI})
		if size.Width == 0 {
			return // what it will show is not known yet
		}
		i := slices.IndexFunc(views, d.SameGroup)
		sizes[i] = append(sizes[i], size)
	}
	for i, d := range views {
		if shape, fits := d.Fit(sizes[i]); !fits {
			m := d.Running().Model()
			f.Logger.Info("input shape was chosen for other cameras; restart to refit it or set --imgsz", "model", m.Path,
				"runs", fmt.Sprintf("%dx%d", m.Width, m.Height), "would_fit", fmt.Sprintf("%dx%d", shape.Width, shape.Height))
		}
	}
}
