package network

import (
	"cmp"
	"reflect"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
)

// Views cuts a configuration into those of cameras whose images are looked at in one way, with one engine on each device: Cameras are
// those alone, Model and Look are theirs, and Detect.Confidence is the lowest of them. They come in the order of their first camera.
func Views(c *config.Config) (all []*config.Config) {
	for i := range c.Cameras {
		own := view(c, &c.Cameras[i])
		at := slices.IndexFunc(all, func(other *config.Config) bool { return Same(own, other) })
		if at < 0 {
			all = append(all, own)
			continue
		}
		all[at].Cameras = append(all[at].Cameras, c.Cameras[i])
		all[at].Detect.Confidence = min(all[at].Detect.Confidence, own.Detect.Confidence)
	}
	return all
}

// ViewOf is the one of Views that a camera of the configuration belongs to.
func ViewOf(c *config.Config, camera *config.Camera) *config.Config {
	own := view(c, camera)
	for _, other := range Views(c) {
		if Same(own, other) {
			return other
		}
	}
	return own
}

// Same reports whether images are looked at in the same way with two of Views.
func Same(a, b *config.Config) bool {
	return reflect.DeepEqual(a.Model, b.Model) && reflect.DeepEqual(a.Inference, b.Inference)
}

// Alike reports whether two of Views are looked at by the same networks, in tiles or not.
func Alike(a, b *config.Config) bool {
	one, other := a.Inference, b.Inference
	one.Tile, one.Overlap, other.Tile, other.Overlap = 0, 0, 0, 0
	return reflect.DeepEqual(a.Model, b.Model) && reflect.DeepEqual(one, other)
}

// view is the configuration for one camera alone. What is said beside the model of all cameras does not hold for one of its own: other
// networks that look too, and labels.
func view(c *config.Config, camera *config.Camera) *config.Config {
	own := *c
	own.Cameras, own.Detect.Confidence = []config.Camera{*camera}, Confidence(c, camera)
	if camera.Tile != nil {
		own.Inference.Tile = *camera.Tile
	}
	if camera.Overlap != nil {
		own.Inference.Overlap = *camera.Overlap
	}
	if own.Inference.Tile == 0 {
		own.Inference.Overlap = 0 // of nothing
	}
	if camera.Model != nil {
		own.Model, own.Detect.Classes, own.Inference.Ensemble, own.Inference.Weights = *camera.Model, nil, nil, nil
	}
	return &own
}

// Confidence is the lowest score of what a camera reports.
func Confidence(c *config.Config, camera *config.Camera) float64 {
	return cmp.Or(camera.Confidence, c.Detect.Confidence)
}

// Profile is what kind of camera the tracker takes it for.
func Profile(c *config.Config, camera *config.Camera) string {
	return cmp.Or(camera.Profile, c.Detect.Profile)
}

// Files are those of all networks that a configuration names: paths, and names of fetched ones, with what lies beside them to say how
// images are taken, whether it is there or not, and plugins.
func Files(c *config.Config) (paths []string) {
	add := func(model, labels string) {
		if model != "" {
			paths = append(paths, model, engine.PreprocessFile(model))
		}
		if labels != "" {
			paths = append(paths, labels)
		}
	}
	add(c.Model.Path, c.Model.Labels)
	for _, model := range c.Inference.Ensemble {
		add(model, "")
	}
	for i := range c.Cascade {
		add(c.Cascade[i].Model, c.Cascade[i].Labels)
	}
	for i := range c.Cameras {
		if m := c.Cameras[i].Model; m != nil {
			add(m.Path, m.Labels)
		}
	}
	return append(paths, c.Engine.Plugins...)
}
