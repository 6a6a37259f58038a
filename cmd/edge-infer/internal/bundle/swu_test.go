package bundle

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// image makes a bundle in an image of SWUpdate.
func image(t *testing.T, change func(*Make)) []byte {
	data, err := os.ReadFile(make4(t, func(m *Make) {
		m.Output = filepath.Join(t.TempDir(), "belt.swu")
		if change != nil {
			change(m)
		}
	}))
	require.NoError(t, err)
	return data
}

// TestImagesOfSWUpdate: the bundle in one is that of the same contents in a plain file.
func TestImagesOfSWUpdate(t *testing.T) {
	plain, err := os.ReadFile(make4(t, nil))
	require.NoError(t, err)
	data := image(t, nil)
	require.Zero(t, len(data)%cpioAlign)
	inner, size, err := unwrapSWU(bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	text, err := io.ReadAll(io.NewSectionReader(inner, 0, size))
	require.NoError(t, err)
	require.True(t, bytes.Equal(plain, text))
	require.Contains(t, string(data[:300]), "sw-description\x00")
	require.Contains(t, string(data[:300]), `version = "4";`)
	same, size, err := unwrapSWU(bytes.NewReader(plain), int64(len(plain)))
	require.NoError(t, err)
	require.EqualValues(t, len(plain), size)
	require.Equal(t, bytes.NewReader(plain), same)

	// Two bundles, none, and an archive that is cut off anywhere in it.
	end := bytes.Index(data, []byte(cpioEnd)) - cpioHeader
	two := append(bytes.Clone(data[:end]), data...)
	none := bytes.Replace(bytes.Clone(data), []byte("belt.tar\x00"), []byte("belt.txt\x00"), 1)
	for _, broken := range [][]byte{two, none, data[:end], data[:len(data)/2], data[:200], data[:len(data)-40]} {
		_, err := pull(t, store(t), write(t, "belt.swu", broken), nil)
		require.ErrorContains(t, err, "it is not an image of SWUpdate with one .tar in it")
	}
}

// FuzzSWU: whatever an image is, the bundle found in it is inside of it.
func FuzzSWU(f *testing.F) {
	var small bytes.Buffer
	w := &swuWriter{to: &small}
	require.NoError(f, w.begin(&Info{Name: "belt", Version: 1}, 5))
	_, err := w.Write([]byte("hello"))
	require.NoError(f, err)
	require.NoError(f, w.end())
	f.Add(small.Bytes())
	f.Add([]byte(cpioNewc))
	f.Fuzz(func(t *testing.T, data []byte) {
		inner, size, err := unwrapSWU(bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		n, err := io.Copy(io.Discard, io.NewSectionReader(inner, 0, size))
		require.NoError(t, err)
		require.Equal(t, size, n)
	})
}
