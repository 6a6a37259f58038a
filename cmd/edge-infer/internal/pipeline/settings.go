package pipeline

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Settings can be changed on a running camera.
type Settings struct {
	// Detect off leaves the camera's frames without inference.
	Detect bool
	// Confidence is the camera's reported threshold; the decoded one is the lowest that works.
	Confidence float32
	// Interval runs the network on every Interval-th frame, 1 or more.
	Interval int
	// Classes are the labels reported, all when nil.
	Classes []string

	classes []bool // by class number, nil for all
}

// wants reports whether the settings let a detection through.
func (s *Settings) wants(d *postprocess.Detection) bool {
	return d.Score >= s.Confidence && s.wantsClass(d.Class)
}

func (s *Settings) wantsClass(class int) bool {
	return s.classes == nil || class < len(s.classes) && s.classes[class]
}

// Settings returns a camera's current settings; false for an unknown camera.
func (c *cameraSet) Settings(camera string) (Settings, bool) {
	found := c.stream(camera)
	if found == nil {
		return Settings{}, false
	}
	return *found.settings.Load(), true
}

// SetSettings replaces the settings of a camera from its next frame on. The error names the value that is out of range; nothing changes
// then.
func (c *cameraSet) SetSettings(camera string, s Settings) error {
	found := c.stream(camera)
	if found == nil {
		return fmt.Errorf("no camera %q", camera)
	}
	if err := c.complete(&s, c.Model().Metadata.Labels); err != nil {
		return err
	}
	found.settings.Store(&s)
	return nil
}

func (c *cameraSet) stream(camera string) *stream {
	for _, found := range *c.streams.Load() {
		if found.Name == camera {
			return found
		}
	}
	return nil
}

// complete checks settings and fills in what follows from them and the model's class names.
func (c *cameraSet) complete(s *Settings, labels []string) error {
	switch {
	case s.Interval < 1:
		return fmt.Errorf("interval %d is less than 1", s.Interval)
	case !(s.Confidence >= c.minScore && s.Confidence <= 1):
		return fmt.Errorf("threshold %.3g is not between %.3g and 1", s.Confidence, c.minScore)
	}
	s.classes = nil
	if s.Classes == nil {
		return nil
	}
	s.classes = make([]bool, len(labels))
	for _, label := range s.Classes {
		class := slices.Index(labels, label)
		if class < 0 {
			return fmt.Errorf("label %q is not one of the model's", label)
		}
		s.classes[class] = true
	}
	return nil
}
