package config

import "cmp"

// Motion configures the motion filter, which skips frames in which nothing moves.
type Motion struct {
	Enabled     bool    `yaml:"enabled"`
	Sensitivity float64 `yaml:"sensitivity"`
	MinRate     float64 `yaml:"min_rate"` // inferences per second while nothing moves
}

// CameraMotion holds a camera's own settings; a sensitivity or minimum rate of 0 selects the value for all cameras.
type CameraMotion struct {
	Enabled     bool    `yaml:"enabled"`
	Sensitivity float64 `yaml:"sensitivity,omitempty"`
	MinRate     float64 `yaml:"min_rate,omitempty"`
	ROI         *Area   `yaml:"roi,omitempty"` // where motion counts
}

// Area is a part of an image, as shares of its sides from 0 to 1.
type Area struct {
	X      float64 `yaml:"x"`
	Y      float64 `yaml:"y"`
	Width  float64 `yaml:"width"`
	Height float64 `yaml:"height"`
}

const (
	defaultSensitivity = 0.5
	defaultMinRate     = 1
)

func (m *Motion) settings() []setting {
	return []setting{
		{
			"motion.enabled", "motion", yes(&m.Enabled), nil,
			"skip frames without motion; the last detections stay valid. A camera can have its own settings",
		},
		{"motion.sensitivity", "", number(&m.Sensitivity), share(&m.Sensitivity), "sensitivity, over 0 to 1; at 1 a bird counts as motion"},
		{"motion.min_rate", "", number(&m.MinRate), within(&m.MinRate, 0.01, 1000), "inferences per second while nothing moves"},
	}
}

// MotionOf returns the motion settings in force for a camera.
func (c *Config) MotionOf(camera *Camera) CameraMotion {
	all := CameraMotion{Enabled: c.Motion.Enabled}
	if camera.Motion != nil {
		all = *camera.Motion
	}
	all.Sensitivity, all.MinRate = cmp.Or(all.Sensitivity, c.Motion.Sensitivity), cmp.Or(all.MinRate, c.Motion.MinRate)
	return all
}

// mistake returns an error unless the area is nil or lies within the image.
func (a *Area) mistake() error {
	if a == nil || a.X >= 0 && a.Y >= 0 && a.Width > 0 && a.Height > 0 && a.X+a.Width <= 1+1e-9 && a.Y+a.Height <= 1+1e-9 {
		return nil
	}
	return must(*a, "must lie within the image: x, y, width and height are shares of its sides from 0 to 1")
}
