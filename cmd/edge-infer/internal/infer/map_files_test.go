package infer

import (
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/postprocess"
)

// What is written of a map is as large as the image.
func TestMapFiles(t *testing.T) {
	o := Record{Format: MapFiles, Path: filepath.Join(t.TempDir(), "maps")}
	require.NoError(t, o.Check())
	r, err := o.open(nil, true)
	require.NoError(t, err)
	require.False(t, r.has("/images/a.jpg"))
	m := &postprocess.DenseMap{Width: 2, Height: 1, StepX: .5, StepY: .5, X: -.25, Y: -.25, Classes: []uint8{7, postprocess.NoClass}}
	require.NoError(t, r.add(&Seen{File: "/images/a.jpg", Width: 4, Height: 2, Semantic: &payload.Map{}, denseMap: m}))
	require.True(t, r.has("/images/a.jpg"))
	file, err := os.Open(filepath.Join(o.Path, "a.png"))
	require.NoError(t, err)
	defer file.Close()
	img, err := png.Decode(file)
	require.NoError(t, err)
	require.Equal(t, []int{4, 2}, []int{img.Bounds().Dx(), img.Bounds().Dy()})
	red, _, _, _ := img.At(1, 1).RGBA()
	require.Equal(t, uint32(7), red>>8)
	red, _, _, _ = img.At(2, 0).RGBA()
	require.Equal(t, uint32(postprocess.NoClass), red>>8)

	m.Classes, m.Depths = nil, []float32{1, 3}
	require.NoError(t, r.add(&Seen{File: "/videos/b.mp4", Frame: 12, Width: 4, Height: 2, Depth: &payload.Map{}, denseMap: m}))
	array, err := os.Open(filepath.Join(o.Path, "b_000012.npy"))
	require.NoError(t, err)
	defer array.Close()
	tensor, err := engine.ReadNPY(array)
	require.NoError(t, err)
	require.Equal(t, []int64{2, 4}, tensor.Shape)
	require.Equal(t, []float32{1, 1.5, 2.5, 3}, tensor.Float32s()[:4])
	require.False(t, r.has("/videos/b.mp4"), "the video may have more images")
	require.EqualError(t, r.add(&Seen{File: "/images/c.jpg"}),
		"--format map is for semantic segmentation and depth networks, this one detects objects")
	require.NoError(t, r.close(true))
	none := Record{Format: MapFiles}
	require.EqualError(t, none.Check(), "--format map writes a file per image: set the directory with --output DIR")
}
