package programtest

import (
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
)

// Scenes draws labelled pictures of the demo's belt, which tests share.
func Scenes(t testing.TB, count int, seed uint64) string {
	return Shared(t, fmt.Sprintf("scenes-%d-%d", count, seed), func(folder string) error {
		return scene.WriteDataset(t.Context(), folder, scene.DatasetOptions{Count: count, Seed: seed, Width: 640, Height: 360})
	})
}

// WritePicture writes a picture of one colour.
func WritePicture(t testing.TB, path string, pixel color.Color) {
	picture := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			picture.Set(x, y, pixel)
		}
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, picture))
	require.NoError(t, file.Close())
}
