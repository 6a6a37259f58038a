package config

import (
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/capture"
)

// ErrNoModel is returned for images of a real source if no model is configured.
var ErrNoModel = errors.New("no model is set (edge-infer model pull people fetches yolox-s for people, vehicles and animals: --model yolox-s; " +
	"--model demo knows the machine parts of the demo camera only)")

// ErrNoCamera is a configuration without cameras, with which a run does not start.
var ErrNoCamera = errors.New("no camera: use --camera 0 for the first one, --camera demo, or cameras in the configuration file")

// HasModel reports whether a model is configured, as a file or on inference servers.
func (c *Config) HasModel() bool { return c.Model.Path != "" || c.Engine.OnServers() }

// CheckModel returns an error that wraps ErrNoModel if a camera other than demo has no model. The embedded model would report machine parts
// in any scene.
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
