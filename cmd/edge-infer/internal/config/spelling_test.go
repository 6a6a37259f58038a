package config_test

import (
	"testing"

	"github.com/stretchr/testify/assert"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func TestNearest(t *testing.T) {
	words := []string{"cameras", "camera", "model"}
	assert.Equal(t, "cameras", config.NearestName("camras", words))
	assert.Equal(t, "model", config.NearestName("modle", words))
	assert.Empty(t, config.NearestName("zzz", words))
	assert.Equal(t, "output", config.NearestName("out", []string{"output-dir", "output", "model"}))
	assert.Empty(t, config.NearestName("o", []string{"output"}), "one letter says nothing")
}
