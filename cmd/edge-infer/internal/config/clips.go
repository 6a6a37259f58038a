package config

import (
	"fmt"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/capture"
)

// Clips configures the video files around events.
type Clips struct {
	Enabled   bool          `yaml:"enabled"`
	Directory string        `yaml:"directory"`
	Before    time.Duration `yaml:"before"`
	After     time.Duration `yaml:"after"`
	Cooldown  time.Duration `yaml:"cooldown"`
	MaxMB     int           `yaml:"max_mb"`
	Days      int           `yaml:"days"`
	Sync      bool          `yaml:"sync"`
}

// CameraClips holds a camera's own settings.
type CameraClips struct {
	Enabled    *bool    `yaml:"enabled,omitempty"`    // nil: as for all cameras
	Classes    []string `yaml:"classes,omitempty"`    // whose objects are recorded; empty for all
	Zones      []string `yaml:"zones,omitempty"`      // objects outside of these are not; empty for the whole image
	Continuous bool     `yaml:"continuous,omitempty"` // all of the video is recorded as well
}

func defaultClips() Clips {
	return Clips{Before: 5 * time.Second, After: 10 * time.Second, MaxMB: 2048, Days: 14, Sync: true}
}

func (c *Clips) settings() []setting {
	return []setting{
		{"clips.enabled", "clips", yes(&c.Enabled), nil, "record video clips of events; a camera can have its own settings"},
		{"clips.directory", "", text(&c.Directory), nil, "directory of the clips; empty: clips in the state directory"},
		{"clips.before", "", span(&c.Before), spanWithin(&c.Before, 0, 30*time.Second), "recorded time before an event, up to 30s"},
		{
			"clips.after", "", span(&c.After), spanWithin(&c.After, time.Second, 5*time.Minute),
			"recorded time after an object has stopped or left",
		},
		{
			"clips.cooldown", "", span(&c.Cooldown), spanWithin(&c.Cooldown, 0, 24*time.Hour),
			"time after a clip in which events of its camera begin no other clip",
		},
		{
			"clips.max_mb", "", whole(&c.MaxMB), within(&c.MaxMB, 16, 1<<24),
			"megabytes of all clips, open ones included; above that the oldest are removed",
		},
		{"clips.days", "", whole(&c.Days), within(&c.Days, 0, 3660), "days that clips are kept; 0: as long as there is room"},
		{"clips.sync", "", yes(&c.Sync), nil, "write clips through to the disk every second; off: a power cut loses the last half minute"},
	}
}

// spanWithin checks that a duration is in a range.
func spanWithin(target *time.Duration, low, high time.Duration) check {
	return func() error {
		if *target >= low && *target <= high {
			return nil
		}
		return must(*target, "must be "+low.String()+" to "+high.String())
	}
}

// ClipsEnabled reports whether clips of a camera's events are recorded.
func (c *Config) ClipsEnabled(camera *Camera) bool {
	if camera.Clips != nil && camera.Clips.Enabled != nil {
		return *camera.Clips.Enabled
	}
	return c.Clips.Enabled
}

// AnyClips reports whether clips of any camera's events are recorded.
func (c *Config) AnyClips() bool {
	return slices.ContainsFunc(c.Cameras, func(camera Camera) bool { return c.ClipsEnabled(&camera) })
}

// AnyVideo reports whether any camera is recorded: clips of its events, or continuously.
func (c *Config) AnyVideo() bool {
	return c.AnyClips() || slices.ContainsFunc(c.Cameras, func(camera Camera) bool { return camera.Clips != nil && camera.Clips.Continuous })
}

// checkRecord validates the address of the recorded stream.
func (c *Camera) checkRecord(e *element) {
	if c.Record == "" {
		return
	}
	uri, err := capture.ParseURI(c.Record)
	switch {
	case err != nil:
		e.found = append(e.found, mistake{[]string{e.key + ".record"}, fmt.Errorf("camera %s: record: %w", c.Name, err)})
	case uri.Kind != capture.RTSP:
		e.must(false, "record", capture.Redact(c.Record), "must begin with rtsp:// or rtsps://")
	case uri.Decoder != "" || uri.LowLatency:
		e.must(false, "record", capture.Redact(c.Record), "must have no #decoder= and no #latency=, because it is not decoded")
	case c.Record == c.URI:
		e.must(false, "record", capture.Redact(c.Record), "is the same as uri, which is recorded without it")
	}
}

// checkClips validates a camera's own settings.
func (c *Camera) checkClips(e *element) {
	if c.Clips == nil {
		return
	}
	for _, name := range c.Clips.Zones {
		known := false
		for i := range c.Analytics.Zones {
			known = known || c.Analytics.Zones[i].Name == name
		}
		e.must(known, "clips.zones", name, "must be the name of a zone of this camera")
	}
}
