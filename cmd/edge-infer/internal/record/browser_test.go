package record

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/jpeg"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

var playedClips = flag.String("play", "", "directory of more files for TestClipsPlayInChromium, such as that of -keep; H.265 is left out")

// playback is what a video element reports after playing a file to its end.
type playback struct {
	Error             string `json:"error"`
	Duration, Current float64
	Width             int
	Frames, Dropped   int
}

// playAll plays a file as fast as Chromium can.
const playAll = `new Promise(done => {
	const video = document.createElement("video")
	const result = () => {
		const quality = video.getVideoPlaybackQuality()
		done({
			error: video.error ? video.error.message : "", Duration: video.duration, Current: video.currentTime, Width: video.videoWidth,
			Frames: quality.totalVideoFrames, Dropped: quality.droppedVideoFrames,
		})
	}
	video.onended = result
	video.onerror = result
	video.muted = true
	document.body.append(video)
	video.src = "FILE"
	video.playbackRate = RATE
	video.play().catch(() => {})
})`

// TestClipsPlayInChromium plays files of all codecs. What Chromium cannot play is documented: docs/clips.md.
func TestClipsPlayInChromium(t *testing.T) {
	chromium := testtool.Browser(t)
	directory := t.TempDir()
	server := httptest.NewServer(http.FileServer(http.Dir(directory)))
	defer server.Close()
	require.NoError(t, os.WriteFile(filepath.Join(directory, "page.html"), []byte("<!DOCTYPE html><title>clips</title><body>"), 0o600))
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(chromium), chromedp.DisableGPU, chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()), chromedp.Flag("autoplay-policy", "no-user-gesture-required"))
	allocator, cancelAllocator := chromedp.NewExecAllocator(context.Background(), options...)
	defer cancelAllocator()
	browser, cancel := chromedp.NewContext(allocator)
	defer cancel()
	limit := 2 * time.Minute
	if *playedClips != "" {
		limit = time.Hour
	}
	browser, stop := context.WithTimeout(browser, limit)
	defer stop()
	require.NoError(t, chromedp.Do(browser, chromedp.Navigate(server.URL+"/page.html")))

	files := map[string][]byte{
		"h264":      write(t, encode(t, "libx264", 6, 2*time.Second)),
		"reordered": write(t, encode(t, "libx264", 6, 2*time.Second, "-bf", "3", "-x264-params", "b-adapt=0")),
		"h265":      write(t, encode(t, "libx265", 6, 2*time.Second)),
		"jpeg":      write(t, jpegs(t, 30)),
	}
	torn := files["h264"][:len(files["h264"])*2/3]
	found, err := readContents(bytes.NewReader(torn), int64(len(torn)))
	require.NoError(t, err)
	files["repaired"] = torn[:found.size] // as the start does after a crash
	for name, data := range files {
		t.Run(name, func(t *testing.T) {
			require.NoError(t, os.WriteFile(filepath.Join(directory, name+".mp4"), data, 0o600))
			script := strings.NewReplacer("FILE", "/"+name+".mp4", "RATE", "4").Replace(playAll)
			played, err := chromedp.Run(browser, chromedp.Evaluate[playback](script, chromedp.EvalAwaitPromise))
			require.NoError(t, err)
			t.Logf("%+v", played)
			switch name {
			case "jpeg":
				assert.NotEmpty(t, played.Error, "Chromium plays Motion JPEG now: say so in docs/clips.md")
			case "h265":
				if played.Error != "" {
					t.Skipf("this Chromium has no decoder for H.265: %s", played.Error)
				}
				fallthrough
			case "h264", "reordered":
				assert.Empty(t, played.Error)
				assert.Equal(t, 160, played.Width)
				assert.InDelta(t, 6, played.Duration, 0.2)
				assert.InDelta(t, 6, played.Current, 0.2)
			case "repaired":
				assert.Empty(t, played.Error)
				assert.Greater(t, played.Current, 2.0)
			}
		})
	}
	if *playedClips != "" {
		playKept(t, browser, directory)
	}
}

// playKept plays the files of -play.
func playKept(t *testing.T, browser context.Context, served string) {
	files, err := filepath.Glob(filepath.Join(*playedClips, "*.mp4"))
	require.NoError(t, err)
	count := 0
	for _, path := range files {
		data, err := os.ReadFile(path)
		require.NoError(t, err)
		if bytes.Contains(data, []byte("hvc1")) {
			continue
		}
		require.NoError(t, os.WriteFile(filepath.Join(served, "kept.mp4"), data, 0o600))
		script := strings.NewReplacer("FILE", fmt.Sprintf("/kept.mp4?%d", count), "RATE", "16").Replace(playAll)
		played, err := chromedp.Run(browser, chromedp.Evaluate[playback](script, chromedp.EvalAwaitPromise))
		require.NoError(t, err)
		assert.Empty(t, played.Error, path)
		assert.InDelta(t, played.Duration, played.Current, 0.2, path)
		count++
	}
	t.Logf("Chromium has played %d clips", count)
	assert.NotZero(t, count)
}

// jpegs returns access units of Motion JPEG at 5 frames per second.
func jpegs(t *testing.T, count int) (units []capture.Unit) {
	var encoded bytes.Buffer
	require.NoError(t, jpeg.Encode(&encoded, image.NewGray(image.Rect(0, 0, 160, 120)), nil))
	for i := range count {
		at := time.Duration(i) * 200 * time.Millisecond
		units = append(units, capture.Unit{Codec: capture.MJPEG, Data: encoded.Bytes(), Key: true, PTS: at, Received: int64(at)})
	}
	return units
}
