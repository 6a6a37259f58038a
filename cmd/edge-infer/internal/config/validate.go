package config

import (
	"errors"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/capture"
)

// mistake is an error in settings; its text begins with the key of the first one. The others contribute to it.
type mistake struct {
	keys []string
	error
}

// Unwrap returns the wrapped error.
func (m mistake) Unwrap() error { return m.error }

// mistakes are all settings of a scope that cannot work.
func (c *Config) mistakes(scope Scope) (found []mistake) {
	for _, s := range settings(c) {
		if s.check == nil || !scope.has(s.section()) {
			continue
		}
		if err := s.check(); err != nil {
			found = append(found, mistake{[]string{s.key}, settingError(s.key, err)})
		}
	}
	for _, against := range c.contradictions() {
		if against.is && !slices.ContainsFunc(against.keys, func(key string) bool { return !scope.has(section(key)) }) {
			found = append(found, mistake{against.keys, errors.New(against.text)})
		}
	}
	if scope.has("cameras") {
		found = append(found, c.cameraMistakes()...)
	}
	if scope.has("cascade") {
		found = append(found, c.cascadeMistakes()...)
	}
	if scope.has("webhooks") {
		found = append(found, c.webhookMistakes()...)
	}
	return found
}

// contradiction is settings that cannot be together, or not one without the other.
type contradiction struct {
	is   bool
	keys []string
	text string
}

// contradictions are all there may be.
func (c *Config) contradictions() []contradiction {
	m, w, r := &c.MQTT, &c.Web, &c.Remote
	return slices.Concat([]contradiction{
		pair("mqtt.certificate", m.Certificate, "mqtt.key", m.Key),
		pair("remote.certificate", r.Certificate, "remote.key", r.Key),
		{
			r.User != "" && (r.TokenFile != "" || r.Token != ""),
			[]string{"remote.user", "remote.token_file"},
			"remote.user and a token: only one of them can be",
		},
		{r.User == "" && r.PasswordFile != "", []string{"remote.password_file", "remote.user"}, "remote.password_file needs remote.user"},
		{
			r.Fallback == Local && c.Engine.OnServers() && c.Model.Path == "",
			[]string{"remote.fallback", "engine.backend", "model.path"},
			"remote.fallback local needs model.path: the file of the model that the servers run (demo for the embedded one)",
		},
		pair("web.certificate", w.Certificate, "web.key", w.Key),
		pair("upload.endpoint", c.Upload.Endpoint, "upload.bucket", c.Upload.Bucket),
		{
			c.Upload.Endpoint != "" && c.Events.Directory == Off,
			[]string{"upload.endpoint", "events.directory"},
			"upload.endpoint needs events.directory: what waits is stored there",
		},
		pair("web.user", w.User, "web.password_file", w.PasswordFile),
		{
			w.User != "" && w.TokenFile != "",
			[]string{"web.user", "web.token_file"},
			"web.user and web.token_file: only one of them can be",
		},
		{
			len(c.Cascade) > 0 && !c.Detect.Track,
			[]string{"cascade", "detect.track", "cameras"},
			"cascade: secondary networks need tracked objects, so detect.track must be true",
		},
		{
			c.AnyClips() && !c.Detect.Track,
			[]string{"clips.enabled", "detect.track", "cameras"},
			"clips.enabled: events need tracked objects, so detect.track must be true",
		},
		{
			c.AnyVideo() && c.Events.Directory == Off,
			[]string{"clips.enabled", "events.directory", "cameras"},
			"clips: the index of the files is in the event store, so events.directory must not be off",
		},
		{
			c.Samples.Enabled && c.Samples.Directory == "",
			[]string{"samples.enabled", "samples.directory"},
			"samples.directory must be set, because there is no state directory",
		},
		{
			c.AnyVideo() && c.Clips.Directory == "",
			[]string{"clips.enabled", "clips.directory", "cameras"},
			"clips.directory must be set, because there is no state directory",
		},
	}, c.verifyContradictions(), c.bundleContradictions())
}

// pair is the error of a setting that needs another one. It is reported at the one that is set.
func pair(one, its, other, others string) contradiction {
	keys := []string{one, other}
	if its == "" {
		slices.Reverse(keys)
	}
	return contradiction{(its == "") != (others == ""), keys, one + " and " + other + ": one needs the other"}
}

// element collects the errors of one element of a list.
type element struct {
	key   string // as in cameras[0]
	found []mistake
}

// must adds a setting whose value does not fit.
func (e *element) must(fits bool, name string, value any, want string) {
	if !fits {
		e.add(name, must(value, want))
	}
}

// add adds a setting that something is wrong with.
func (e *element) add(name string, err error) {
	if err != nil {
		key := e.key + "." + name
		e.found = append(e.found, mistake{[]string{key}, settingError(key, err)})
	}
}

// cameraMistakes returns the errors in the cameras' own settings.
func (c *Config) cameraMistakes() (found []mistake) {
	seen := map[string]bool{}
	for i := range c.Cameras {
		camera, e := &c.Cameras[i], element{key: fmt.Sprintf("cameras[%d]", i)}
		camera.check(&e, seen)
		if camera.Model != nil && c.Engine.OnServers() {
			e.add("model", errors.New("the servers of engine.backend run one model, that of all cameras"))
		}
		found = append(found, e.found...)
		seen[camera.Name] = true
	}
	return found
}

// check validates a camera; seen holds the names of the cameras before it.
func (c *Camera) check(e *element, seen map[string]bool) {
	if c.URI == "" {
		e.add("uri", must("", "must be an address, a file, a device number or demo"))
	} else if _, err := capture.ParseURI(c.URI); err != nil {
		e.found = append(e.found, mistake{[]string{e.key + ".uri"}, fmt.Errorf("camera %s: %w", c.Name, err)})
	}
	c.checkRecord(e)
	want := checkCameraName(c.Name)
	e.must(want == "", "name", c.Name, want)
	e.must(c.Name == "" || !seen[c.Name], "name", c.Name, "is used twice")
	e.must(c.Interval >= 0, "interval", c.Interval, "must be 1 or more")
	e.must(c.Rate >= 0 && c.Rate <= 1000, "rate", c.Rate, "must be 0 to 1000 a second")
	e.must(c.Priority >= 0 && c.Priority <= 100, "priority", c.Priority, "must be 1 to 100")
	e.must(c.Deadline >= 0, "deadline", c.Deadline, "must not be negative")
	e.add("roi", c.ROI.mistake())
	e.must(c.Stall >= 0, "stall", c.Stall, "must not be negative")
	e.must(c.MaxPixels >= 0 && c.MaxPixels <= capture.MaxPixels, "max_pixels", c.MaxPixels, fmt.Sprintf("must be 0 to %d", capture.MaxPixels))
	c.checkView(e)
	e.add("analytics.ground", c.Analytics.ValidateGround())
	if m := c.Motion; m != nil {
		e.must(m.Sensitivity >= 0 && m.Sensitivity <= 1, "motion.sensitivity", m.Sensitivity, "must be over 0 and at most 1")
		e.must(m.MinRate == 0 || m.MinRate >= 0.01 && m.MinRate <= 1000, "motion.min_rate", m.MinRate, "must be 0.01 to 1000")
		e.add("motion.roi", m.ROI.mistake())
	}
	c.checkClips(e)
	c.checkPrivacy(e)
}

// settingError prefixes an error with a setting's key.
func settingError(key string, err error) error {
	if errors.As(err, new(mustError)) {
		return fmt.Errorf("%s %w", key, err)
	}
	return fmt.Errorf("%s: %w", key, err)
}
