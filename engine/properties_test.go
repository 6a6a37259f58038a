package engine

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// What is written of a model is read as the same.
func TestPropertiesAreReadAsTheyWere(t *testing.T) {
	for _, m := range []Metadata{
		{},
		{Task: Detect, Labels: []string{"wood's \"screw\"", "ß<", ""}, Stride: 32, Width: 640, Height: 384, Batch: 2, Preprocess: Preprocess{Preset: "ultralytics"}},
		{Task: Pose, Keypoints: 17, KeypointNumbers: 3, EndToEnd: true, Preprocess: Preprocess{Preset: "torchvision", Mean: []float64{.5}}},
		{Activation: Sigmoid, Preprocess: Preprocess{Range: []float64{0, 255}, Colour: BGRColour}},
	} {
		properties, err := m.Properties()
		require.NoError(t, err)
		got, err := ParseMetadata(properties)
		require.NoError(t, err)
		require.Equal(t, m, got, properties)
	}
}
