package config

import (
	"errors"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
)

// mistake is what is wrong with a setting; its text begins with the key.
type mistake struct {
	key string
	error
}

// Unwrap gives the error itself.
func (m mistake) Unwrap() error { return m.error }

// Validate reports the first setting of a scope that cannot work, by its key.
func (c *Config) Validate(scope Scope) error {
	if found := c.mistakes(scope); len(found) > 0 {
		return found[0].error
	}
	return nil
}

// mistakes are all settings of a scope that cannot work.
func (c *Config) mistakes(scope Scope) (found []mistake) {
	for _, s := range settings(c) {
		if s.check == nil || !scope.has(s.section()) {
			continue
		}
		if err := s.check(); err != nil {
			found = append(found, mistake{s.key, wrong(s.key, err)})
		}
	}
	if scope.has("mqtt") && (c.MQTT.Certificate == "") != (c.MQTT.Key == "") {
		found = append(found, mistake{"mqtt", errors.New("mqtt.certificate and mqtt.key: one needs the other")})
	}
	if scope.has("remote") {
		if err := c.validateRemote(); err != nil {
			found = append(found, mistake{"remote", err})
		}
	}
	if scope.has("web") {
		if err := c.Web.validate(); err != nil {
			found = append(found, mistake{"web", err})
		}
	}
	if scope.has("cameras") {
		found = append(found, c.cameraMistakes()...)
	}
	if scope.has("cascade") {
		found = append(found, c.cascadeMistakes()...)
	}
	if scope.has("cameras") && scope.has("cascade") && len(c.Cascade) > 0 && !c.Detect.Track {
		found = append(found, mistake{"cascade", errors.New("cascade: it looks at objects that are followed, so detect.track must be true")})
	}
	return found
}

// cameraMistakes gives at most one for each camera.
func (c *Config) cameraMistakes() (found []mistake) {
	seen := map[string]bool{}
	for i := range c.Cameras {
		key := fmt.Sprintf("cameras[%d]", i)
		camera := &c.Cameras[i]
		if name, err := camera.mistake(seen); err != nil {
			key += "." + name
			found = append(found, mistake{key, wrong(key, err)})
		} else if _, err := capture.ParseURI(camera.URI); err != nil {
			found = append(found, mistake{key + ".uri", fmt.Errorf("camera %s: %w", camera.Name, err)})
		} else if camera.Model != nil && c.Engine.OnServers() {
			key += ".model"
			found = append(found, mistake{key, fmt.Errorf("%s: the servers of engine.backend run one model, that of all cameras", key)})
		}
		seen[camera.Name] = true
	}
	return found
}

// mistake is the first one of a camera, with the name of its setting; seen holds the names of the cameras before it.
func (c *Camera) mistake(seen map[string]bool) (name string, err error) {
	switch {
	case c.URI == "":
		return "uri", must("", "must be an address, a file, a device number or demo")
	case c.Name == "" || strings.ContainsAny(c.Name, "+/# \x00"):
		return "name", must(c.Name, "must be a name without + / # and spaces")
	case seen[c.Name]:
		return "name", must(c.Name, "is used twice")
	case c.Interval < 0:
		return "interval", must(c.Interval, "must be 1 or more")
	case !(c.Rate >= 0 && c.Rate <= 1000):
		return "rate", must(c.Rate, "must be 0 to 1000 a second")
	case c.Priority < 0 || c.Priority > 100:
		return "priority", must(c.Priority, "must be 1 to 100")
	case c.Deadline < 0:
		return "deadline", must(c.Deadline, "must be positive")
	case c.ROI.mistake() != nil:
		return "roi", c.ROI.mistake()
	case c.Stall < 0:
		return "stall", must(c.Stall, "must be positive")
	case c.MaxPixels < 0 || c.MaxPixels > capture.MaxPixels:
		return "max_pixels", must(c.MaxPixels, fmt.Sprintf("must be 0 to %d", capture.MaxPixels))
	}
	if name, err = c.viewMistake(); err != nil {
		return name, err
	}
	return c.Motion.mistake()
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

func (c *Config) validateRemote() error {
	r := &c.Remote
	switch {
	case (r.Certificate == "") != (r.Key == ""):
		return errors.New("remote.certificate and remote.key: one needs the other")
	case r.User != "" && (r.TokenFile != "" || r.Token != ""):
		return errors.New("remote.user and a token: only one of them can be")
	case r.User == "" && r.PasswordFile != "":
		return errors.New("remote.password_file needs remote.user")
	case r.Fallback == Local && c.Engine.OnServers() && c.Model.Path == "":
		return errors.New("remote.fallback local needs model.path: the file of the model that the servers run (demo for the embedded one)")
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
