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

// Scenes renders labelled images of the demo scene into a shared directory.
func Scenes(t testing.TB, count int, seed uint64) string {
	return Shared(t, fmt.Sprintf("scenes-%d-%d", count, seed), func(dir string) error {
		return scene.WriteDataset(t.Context(), dir, scene.DatasetOptions{Count: count, Seed: seed, Width: 640, Height: 360})
	})
}

// WriteImage writes a PNG of one colour.
func WriteImage(t testing.TB, path string, pixel color.Color) {
	img := image.NewRGBA(image.Rect(0, 0, 64, 48))
	for y := range 48 {
		for x := range 64 {
			img.Set(x, y, pixel)
		}
	}
	file, err := os.Create(path)
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, img))
	require.NoError(t, file.Close())
}
