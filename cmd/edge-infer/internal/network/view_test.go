package network

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func TestACamerasOwnSettingsGoFirst(t *testing.T) {
	c := config.Default()
	c.Detect.Profile, c.Detect.Confidence = "low-rate", 0.5
	assert.Equal(t, "low-rate", Profile(c, &config.Camera{}))
	assert.Equal(t, "ptz", Profile(c, &config.Camera{Profile: "ptz"}))
	assert.InDelta(t, 0.5, Confidence(c, &config.Camera{}), 1e-9)
	assert.InDelta(t, 0.3, Confidence(c, &config.Camera{Confidence: 0.3}), 1e-9)
}
