package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
)

// Validate reports the first setting of a scope that cannot work, by its key.
func (c *Config) Validate(scope Scope) error {
	for _, s := range settings(c) {
		if s.check == nil || !scope.has(s.section()) {
			continue
		}
		if err := s.check(); err != nil {
			return wrong(s.key, err)
		}
	}
	if scope.has("mqtt") && (c.MQTT.Certificate == "") != (c.MQTT.Key == "") {
		return errors.New("mqtt.certificate and mqtt.key: one needs the other")
	}
	if scope.has("web") {
		if err := c.Web.validate(); err != nil {
			return err
		}
	}
	if scope.has("cameras") {
		return c.validateCameras()
	}
	return nil
}

func (c *Config) validateCameras() error {
	seen := map[string]bool{}
	for i, camera := range c.Cameras {
		key := fmt.Sprintf("cameras[%d]", i)
		switch {
		case camera.URI == "":
			return wrong(key+".uri", must("", "must be an address, a file, a device number or demo"))
		case camera.Name == "" || strings.ContainsAny(camera.Name, "+/# \x00"):
			return wrong(key+".name", must(camera.Name, "must be a name without + / # and spaces"))
		case seen[camera.Name]:
			return wrong(key+".name", must(camera.Name, "is used twice"))
		case camera.Interval < 0:
			return wrong(key+".interval", must(camera.Interval, "must be 1 or more"))
		case camera.Stall < 0:
			return wrong(key+".stall", must(camera.Stall, "must be positive"))
		case camera.MaxPixels < 0 || camera.MaxPixels > capture.MaxPixels:
			return wrong(key+".max_pixels", must(camera.MaxPixels, fmt.Sprintf("must be 0 to %d", capture.MaxPixels)))
		}
		seen[camera.Name] = true
		if _, err := capture.ParseURI(camera.URI); err != nil {
			return fmt.Errorf("camera %s: %w", camera.Name, err)
		}
	}
	return nil
}

func (w *Web) validate() error {
	switch {
	case (w.Certificate == "") != (w.Key == ""):
		return errors.New("web.certificate and web.key: one needs the other")
	case (w.User == "") != (w.PasswordFile == ""):
		return errors.New("web.user and web.password_file: one needs the other")
	case w.User != "" && w.TokenFile != "":
		return errors.New("web.user and web.token_file: only one of them can be")
	}
	return nil
}

// wrong puts a setting's key before what is wrong with it.
func wrong(key string, err error) error {
	if errors.As(err, new(mustError)) {
		return fmt.Errorf("%s %w", key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}
