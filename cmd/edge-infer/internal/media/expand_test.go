package media

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
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

// A directory with images of formats that are not read alone is refused with their number.
func TestExpandCountsWhatIsLeftOut(t *testing.T) {
	t.Chdir(t.TempDir())
	touch(t, "a.gif", "b.GIF", "c.avif", ".hidden.gif", "readme.txt")
	require.NoError(t, os.Mkdir("d.gif", 0o700))
	_, err := Expand(".")
	require.ErrorContains(t, err, "in this directory itself", "there is a subdirectory")
	require.NoError(t, os.Remove("d.gif"))
	_, err = Expand(".")
	require.EqualError(t, err, ".: no image or video of a format that is read in this directory, 3 (1 .avif, 2 .gif) of others "+
		"(convert them to JPEG or PNG)")
	touch(t, "e.jpg")
	require.Equal(t, []string{"e.jpg"}, files(t, "."))
}

// What is left out because of its format is logged with its number, once for each directory.
func TestWarnUnread(t *testing.T) {
	t.Chdir(t.TempDir())
	touch(t, "d/a.gif", "d/b.jp2", "d/c.jpg", "d/below/e.avif", "d/below/f.gif", "d/.git/g.gif", "plain/a.jpg", "plain/notes.txt")
	warned := func(nested bool, directories ...string) string {
		var log bytes.Buffer
		WarnUnread(slog.New(slog.NewTextHandler(&log, nil)), nested, directories...)
		return log.String()
	}
	const line = `msg="files of formats that are not read are left out" directory=d files=`
	require.Contains(t, warned(false, "d"), line+`"2 (1 .gif, 1 .jp2)"`)
	require.Contains(t, warned(true, "d", "d"), line+`"4 (1 .avif, 2 .gif, 1 .jp2)"`)
	require.Equal(t, 1, strings.Count(warned(true, "d", "d", "plain", "", "nowhere", "d/a.gif"), "msg="))
	require.Empty(t, warned(true, "plain"))
}
