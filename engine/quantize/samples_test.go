package quantize

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// TestChooseImagesFollowsLinks to directories, also where they lead back.
func TestChooseImagesFollowsLinks(t *testing.T) {
	data, elsewhere := t.TempDir(), t.TempDir()
	for _, path := range []string{filepath.Join(data, "a.jpg"), filepath.Join(elsewhere, "b.PNG"), filepath.Join(elsewhere, "labels.txt")} {
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(data, "images")))
	require.NoError(t, os.Symlink(data, filepath.Join(elsewhere, "back")))
	require.NoError(t, os.Symlink("/none", filepath.Join(data, "broken")))
	files, err := ChooseImages(data, 0, 1)
	require.NoError(t, err)
	assert.Equal(t, []string{filepath.Join(data, "a.jpg"), filepath.Join(data, "images", "b.PNG")}, files)
	linked := filepath.Join(t.TempDir(), "link")
	require.NoError(t, os.Symlink(elsewhere, linked))
	files, err = ChooseImages(linked, 0, 1)
	require.NoError(t, err)
	assert.Contains(t, files, filepath.Join(linked, "b.PNG"))
	_, err = ChooseImages(filepath.Join(data, "none"), 0, 1)
	require.ErrorContains(t, err, "(give a directory that exists and is readable)")
}
