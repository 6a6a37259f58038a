package config

import (
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestACamerasOwnMotionSettingsGoFirst(t *testing.T) {
	c := Default()
	c.Motion = Motion{Enabled: true, Sensitivity: 0.7, MinRate: 2}
	assert.Equal(t, CameraMotion{Enabled: true, Sensitivity: 0.7, MinRate: 2}, c.MotionOf(&Camera{}))
	area := &Area{Width: 0.5, Height: 0.5}
	own := Camera{Motion: &CameraMotion{MinRate: 0.1, ROI: area}}
	assert.Equal(t, CameraMotion{Sensitivity: 0.7, MinRate: 0.1, ROI: area}, c.MotionOf(&own))
}

func TestMistakesOfCameras(t *testing.T) {
	const area = "must lie within the image: x, y, width and height are shares of its sides from 0 to 1"
	for _, test := range []struct {
		change func(*Camera)
		want   string
	}{
		{func(c *Camera) { c.Rate = -1 }, `cameras[0].rate "-1" must be 0 to 1000 a second`},
		{func(c *Camera) { c.Priority = 101 }, `cameras[0].priority "101" must be 1 to 100`},
		{func(c *Camera) { c.Deadline = -1 }, `cameras[0].deadline "-1ns" must not be negative`},
		{func(c *Camera) { c.ROI = &Area{X: 0.6, Width: 0.5, Height: 1} }, `cameras[0].roi "{0.6 0 0.5 1}" ` + area},
		{func(c *Camera) { c.ROI = &Area{} }, `cameras[0].roi "{0 0 0 0}" ` + area},
		{func(c *Camera) { c.Motion = &CameraMotion{Sensitivity: 2} }, `cameras[0].motion.sensitivity "2" must be over 0 and at most 1`},
		{func(c *Camera) { c.Motion = &CameraMotion{MinRate: -1} }, `cameras[0].motion.min_rate "-1" must be 0.01 to 1000`},
		{func(c *Camera) { c.Motion = &CameraMotion{ROI: &Area{X: -1, Width: 1, Height: 1}} }, `cameras[0].motion.roi "{-1 0 1 1}" ` + area},
	} {
		c := Default()
		c.Cameras = []Camera{{Name: "a", URI: "demo"}}
		test.change(&c.Cameras[0])
		require.EqualError(t, validate(c, AllSections()), test.want)
	}
}
