package media

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func touch(t *testing.T, paths ...string) {
	for _, path := range paths {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o700))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
}

func TestExpandFollowsLinksToFiles(t *testing.T) {
	dir, elsewhere := t.TempDir(), t.TempDir()
	touch(t, filepath.Join(elsewhere, "a.jpg"))
	require.NoError(t, os.Symlink(filepath.Join(elsewhere, "a.jpg"), filepath.Join(dir, "a.jpg")))
	require.NoError(t, os.Symlink(elsewhere, filepath.Join(dir, "directory.jpg")))
	require.NoError(t, os.Symlink("nowhere", filepath.Join(dir, "nowhere.jpg")))
	require.Equal(t, []string{filepath.Join(dir, "a.jpg"), filepath.Join(dir, "nowhere.jpg")}, files(t, dir))
	require.False(t, Nested(dir))
}

// TestFilesOfAFolderAreFiles, even if their names begin like those of a list, a pipeline or the demo.
func TestFilesOfADirAreFiles(t *testing.T) {
	t.Chdir(t.TempDir())
	touch(t, "@list.jpg", "demo?x.jpg", "gst:x.jpg", "http:x.jpg", "plain.jpg", "._plain.jpg", "below/deep.jpg",
		".git/x.jpg", "deeper/below/x.jpg")
	require.Equal(t, []string{"@list.jpg", "./demo?x.jpg", "./gst:x.jpg", "http:x.jpg", "plain.jpg"}, files(t, "."))
	require.True(t, Nested("."))
	require.Equal(t, []string{"below/deep.jpg"}, files(t, "below"))
	require.False(t, Nested("below"))
	_, err := Expand("deeper")
	require.EqualError(t, err, "deeper: no image or video in this directory itself (name those in it, or list all files: "+
		"find deeper -name '*.jpg' | edge-infer infer @-)")

	require.NoError(t, os.WriteFile("list", []byte("below\n@list.jpg\n"), 0o600))
	require.Equal(t, []string{"below/deep.jpg", "@list.jpg"}, files(t, "@list"), "a list names files and directories, no lists")
	require.NoError(t, os.WriteFile("list", []byte("plain.jpg\ndeeper\n"), 0o600))
	_, err = Expand("@list")
	require.ErrorContains(t, err, "list of files list: deeper: no image")
}
