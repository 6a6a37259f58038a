package config

import (
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
)

// ErrNoModel is the error of images without a model that this program has not drawn itself.
var ErrNoModel = errors.New("no model is set (edge-infer model pull people fetches yolox-s for people, vehicles and animals: --model yolox-s; " +
	"--model demo knows the machine parts of the demo camera only)")

// HasModel reports whether a model is set, or inference servers have it.
func (c *Config) HasModel() bool { return c.Model.Path != "" || c.Engine.OnServers() }

// CheckModel returns an error, which wraps ErrNoModel, if a camera other than demo has no model. Without this the embedded model would
// report machine parts wherever the camera looks.
func (c *Config) CheckModel() error {
	if c.HasModel() {
		return nil
	}
	for i := range c.Cameras {
		camera := &c.Cameras[i]
		if uri, err := capture.ParseURI(camera.URI); camera.Model == nil && err == nil && uri.Kind != capture.Demo {
			return fmt.Errorf("camera %s: %w", camera.Name, ErrNoModel)
		}
	}
	return nil
}
