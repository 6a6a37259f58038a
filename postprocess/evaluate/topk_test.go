package evaluate

import (
	"image"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
)

func TestTopK(t *testing.T) {
	var r TopK
	first, five := r.Accuracy()
	require.Zero(t, first+five)
	found := func(classes ...int) (all []postprocess.Detection) {
		for _, class := range classes {
			all = append(all, postprocess.Detection{Class: class})
		}
		return all
	}
	r.Add(3, found(3, 1, 2, 4, 5))
	r.Add(3, found(1, 2, 4, 5, 3))
	r.Add(3, found(1, 2, 4, 5, 6, 3))
	r.Add(3, nil)
	first, five = r.Accuracy()
	require.Equal(t, []float64{0.25, 0.5}, []float64{first, five})
}

func TestReadDirsOfClasses(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"val/cat/1.png", "val/cat/2.png", "val/dog/1.png", "train/cat/1.png", "train/dog/1.png"} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		file, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, png.Encode(file, image.NewGray(image.Rect(0, 0, 8, 6))))
		require.NoError(t, file.Close())
	}
	d, err := ReadDataset(dir, "")
	require.NoError(t, err)
	require.True(t, d.ClassDirectories)
	require.Len(t, d.Images, 3, "the part of validation is the default")
	require.NoError(t, d.Relabel([]string{"bird", "dog", "cat"}, nil))
	require.Equal(t, 2, d.Images[0].Truths[0].Class)
	require.Equal(t, postprocess.Box{X2: 8, Y2: 6}, d.Images[0].Truths[0].Box)

	d, err = ReadDataset(dir, "train")
	require.NoError(t, err)
	require.Len(t, d.Images, 2)
	require.NoError(t, d.Relabel([]string{"n02121808", "n02084071"}, nil), "as many other names are in the same order")
	require.Equal(t, 1, d.Images[1].Truths[0].Class)
}
