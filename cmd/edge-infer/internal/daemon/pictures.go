package daemon

import (
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/aspect"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

func aspectCameras(c *config.Config) (all []aspect.Camera) {
	for i := range c.Cameras {
		all = append(all, aspect.Camera{Name: c.Cameras[i].Name, URI: c.Cameras[i].URI})
	}
	return all
}

// rememberPictures keeps how large the cameras' pictures are for the next start.
func (r *run) rememberPictures() {
	news := false
	for _, c := range r.cameras.All() {
		stats := c.Capture.Stats()
		camera := aspect.Camera{Name: c.Config.Name, URI: c.Config.URI}
		news = r.pictures.Note(camera, engine.Size{Width: stats.Width, Height: stats.Height}) || news
	}
	if !news {
		return
	}
	if err := r.pictures.Save(); err != nil {
		r.logger.Warn("the sizes of the cameras' pictures are not remembered", "error", err)
	}
}
