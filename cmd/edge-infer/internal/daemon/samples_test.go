package daemon

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// TestUnsureFramesAreKept: their labels are the boxes that were published, a reload switches it on and off, and the page has the archive.
func TestUnsureFramesAreKept(t *testing.T) {
	t.Parallel()
	directory := t.TempDir()
	file, kept := filepath.Join(directory, "edge-infer.yaml"), filepath.Join(directory, "kept")
	settings := func(enabled bool) {
		text := fmt.Sprintf("detect: {confidence: 0.5}\nsamples: {enabled: %v, directory: %q, per_hour: 3600}\n", enabled, kept)
		require.NoError(t, os.WriteFile(file+".new", []byte(text), 0o600))
		require.NoError(t, os.Rename(file+".new", file))
	}
	settings(false)
	page := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	p := programtest.StartWith(t, []string{"XDG_STATE_HOME=" + directory}, "--config", file,
		"--camera", "belt=demo?width=320&height=240&fps=10", "--mqtt", "off", "--web", page, "--json")
	readFrames(t, p, 20)
	assert.NoDirExists(t, kept)
	client := programtest.Visitor(t)
	code, _ := programtest.Get(t, client, "http://"+page+"/api/samples.tar")
	assert.Equal(t, http.StatusNotFound, code)

	settings(true)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	boxes := map[string]int{} // of the published frames, by time
	images := func() []string {
		paths, err := filepath.Glob(filepath.Join(kept, "images", "*"))
		require.NoError(t, err)
		return paths
	}
	for begun := time.Now(); len(images()) < 2; {
		require.Less(t, time.Since(begun), programtest.Patience, "%s", p.Stderr)
		frame, more := p.Frame()
		require.True(t, more, "%s", p.Stderr)
		boxes[frame.Time.UTC().Format("20060102T150405.000")] = len(frame.Detections)
	}
	set, err := evaluate.ReadDataset(filepath.Join(kept, "data.yaml"), "val")
	require.NoError(t, err)
	compared := 0
	for _, image := range set.Images {
		at, _, _ := strings.Cut(filepath.Base(image.Path), "_")
		if count, published := boxes[at]; published {
			assert.Len(t, image.Truths, count, image.Path)
			compared++
		}
	}
	assert.Positive(t, compared)
	code, archive := programtest.Get(t, client, "http://"+page+"/api/samples.tar")
	assert.Equal(t, http.StatusOK, code)
	assert.Contains(t, string(archive), "samples/data.yaml")

	settings(false)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	require.Eventually(t, func() bool { return strings.Count(p.Stderr.String(), `msg="configuration changed"`) == 2 }, programtest.Patience,
		10*time.Millisecond, "%s", p.Stderr)
	count := len(images())
	readFrames(t, p, 30)
	assert.LessOrEqual(t, len(images()), count+2, "those that were under way")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
