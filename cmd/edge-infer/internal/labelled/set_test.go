package labelled

import (
	"image"
	"image/jpeg"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// dataset writes images with one object each, of class 1, in Ultralytics' layout.
func dataset(t *testing.T, count int) string {
	dir := t.TempDir()
	for _, name := range []string{"images", "labels"} {
		require.NoError(t, os.Mkdir(filepath.Join(dir, name), 0o700))
	}
	require.NoError(t, os.WriteFile(filepath.Join(dir, "data.yaml"), []byte("path: .\nval: images\nnames: [nut, bolt]\n"), 0o600))
	for i := range count {
		name := string(rune('a' + i))
		file, err := os.Create(filepath.Join(dir, "images", name+".jpg"))
		require.NoError(t, err)
		require.NoError(t, jpeg.Encode(file, image.NewGray(image.Rect(0, 0, 40, 20)), nil))
		require.NoError(t, file.Close())
		require.NoError(t, os.WriteFile(filepath.Join(dir, "labels", name+".txt"), []byte("1 0.5 0.5 0.5 0.5\n"), 0o600))
	}
	return dir
}

// TestSetsAreReadAsWritten, and their classes are those of a model by their names.
func TestSetsAreReadAsWritten(t *testing.T) {
	s, err := Read(dataset(t, 2))
	require.NoError(t, err)
	data, err := s.Marshal()
	require.NoError(t, err)
	got, err := Parse(data)
	require.NoError(t, err)
	require.Equal(t, s, got)
	assert.Equal(t, []Object{{Class: 1, Box: [4]float32{10, 5, 30, 15}}}, got.Images[1].Objects)
	truths, err := got.Truths([]string{"bolt", "washer"})
	require.NoError(t, err)
	require.Len(t, truths, 2)
	assert.Equal(t, 0, truths[1][0].Class)
	_, err = got.Truths([]string{"washer"})
	require.ErrorContains(t, err, `objects labelled "bolt", which the model does not have`)

	for want, broken := range map[string][]byte{
		"it is cut off": data[:len(data)-1], "it has more bytes than images": append(data[:len(data):len(data)], 0),
		"it is not a set of labelled images": []byte("{}"), "it has 0 images": []byte("{}\n"),
		"it has 134217729 bytes": make([]byte, 2*MaxBytes+1),
		"an object of class 7":   []byte(`{"labels": ["a"], "images": [{"bytes": 1, "objects": [{"class": 7}]}]}` + "\n."),
	} {
		_, err := Parse(broken)
		require.ErrorContains(t, err, want)
	}
	_, err = Read(t.TempDir())
	require.Error(t, err)
}

// FuzzParse: whatever a file is, its images are inside of it.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"labels": ["a"], "images": [{"bytes": 1, "width": 1, "height": 1, "objects": [{"class": 0, "box": [0, 0, 1, 1]}]}]}` + "\n."))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Parse(data)
		if err != nil {
			return
		}
		total := 0
		for i := range s.Images {
			total += len(s.Images[i].Data)
		}
		require.Less(t, total, len(data))
		_, _ = s.Truths([]string{"a"})
	})
}
