package infer

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/annotate"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func grey(width, height int, position time.Duration) *capture.Frame {
	return &capture.Frame{
		Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR, Position: position,
	}
}

func listed(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestAFilmIsSavedWholeOrNotAtAll: under its name it stands when it is finished, and nothing stays of one that is given up.
func TestAVideoIsSavedWholeOrNotAtAll(t *testing.T) {
	dir := t.TempDir()
	s, err := newSaver(dir, annotate.AVI, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for number := range 3 {
		path, err := s.save("/videos/a.mp4", number, grey(64, 48, time.Duration(number)*40*time.Millisecond), &predict.Result{}, tracking{}, nil)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(dir, "a.avi"), path)
		require.NoFileExists(t, path)
	}
	path, err := s.save("/more/a.mkv", 0, grey(32, 32, 0), &predict.Result{}, tracking{}, nil) // of one image, which tells no rate
	require.NoError(t, err)
	require.Equal(t, filepath.Join(dir, "a-2.avi"), path)
	require.Equal(t, []string{"a.avi"}, listed(t, dir), "the one before is finished by the next one")
	_, err = s.save("/videos/b.png", 0, grey(16, 16, 0), &predict.Result{}, tracking{}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a-2.avi", "a.avi", "b.png"}, listed(t, dir))

	for number, width := range []int{64, 64, 48} {
		_, err = s.save("/videos/c.mp4", number, grey(width, 48, time.Duration(number)*40*time.Millisecond), &predict.Result{}, tracking{}, nil)
		if width == 48 {
			require.EqualError(t, err, "save /videos/c.mp4: frame 2 is 48x48, previous frames are 64x48")
		}
	}
	require.NoError(t, s.abandon("/videos/other.mp4"))
	require.Contains(t, listed(t, dir), ".partial.c.avi", "so that other runs may save here at the same time")
	require.NoError(t, s.abandon("/videos/c.mp4"))
	require.NoError(t, s.abandon(""))
	require.NoError(t, s.finish())
	require.Equal(t, []string{"a-2.avi", "a.avi", "b.png"}, listed(t, dir))
}

// TestFilmsAreMP4WhereTheyCanBe: whole, at their rate, and without the odd row and column that encoders refuse.
func TestVideosAreMP4WhereTheyCanBe(t *testing.T) {
	dir := t.TempDir()
	c, err := annotate.ChooseCodec(dir, annotate.Auto)
	require.NoError(t, err)
	require.True(t, c.Suffix == ".mp4", "nothing here writes MP4: gstreamer1.0-plugins-ugly is not installed, run make deps")
	require.Empty(t, listed(t, dir), "the trial leaves nothing")
	s, err := newSaver(dir, annotate.MP4, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const frames = 12
	for number := range frames {
		frame := grey(321, 241, time.Duration(number)*100*time.Millisecond)
		_, err := s.save("/videos/a b.mkv", number, frame, &predict.Result{}, tracking{}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.finish())
	require.Equal(t, []string{"a b.mp4"}, listed(t, dir))
	video, err := gocv.VideoCaptureFile(filepath.Join(dir, "a b.mp4"))
	require.NoError(t, err)
	defer video.Close()
	require.InDelta(t, 10, video.Get(gocv.VideoCaptureFPS), 0.01)
	img := gocv.NewMat()
	defer img.Close()
	seen := 0
	for video.Read(&img) {
		require.Equal(t, []int{240, 320}, img.Size())
		seen++
	}
	require.Equal(t, frames, seen)
}

// TestACopyTakesAsLongAsItsVideo, whose images stand for different times: at the rate that the file tells, if that is one.
func TestACopyTakesAsLongAsItsVideo(t *testing.T) {
	for name, c := range map[string]struct {
		told   float64
		at     []int // ms
		rate   float64
		frames int
	}{
		"even":                 {10, []int{0, 100, 200, 300}, 10, 4},
		"begins late":          {10, []int{700, 800, 900}, 10, 3},
		"an image stands":      {10, []int{0, 100, 600, 700}, 10, 8},
		"a clock, not a rate":  {1000, []int{0, 40, 80, 160}, 25, 5},
		"nothing is told":      {0, []int{0, 50, 100}, 20, 3},
		"no times either":      {0, []int{0, 0, 0}, annotate.UnknownRate, 3},
		"times of two hours":   {2, []int{0, 7200000, 7200500}, 2, 20 + 2},
		"times that go back":   {10, []int{200, 300, 0, 0}, 10, 4},
		"the only one":         {10, []int{0}, 10, 1},
		"more often than told": {10, []int{0, 50, 100, 150}, 10, 4},
	} {
		dir := t.TempDir()
		s, err := newSaver(dir, annotate.AVI, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		for number, at := range c.at {
			frame := grey(64, 48, time.Duration(at)*time.Millisecond)
			frame.FPS = c.told
			_, err := s.save("/videos/a.mp4", number, frame, &predict.Result{}, tracking{}, nil)
			require.NoError(t, err, name)
		}
		require.NoError(t, s.finish(), name)
		video, err := gocv.VideoCaptureFileWithAPI(filepath.Join(dir, "a.avi"), gocv.VideoCaptureOpencvMjpeg)
		require.NoError(t, err, name)
		img, seen := gocv.NewMat(), 0
		for video.Read(&img) {
			seen++
		}
		require.Equal(t, c.frames, seen, name)
		require.InDelta(t, c.rate, video.Get(gocv.VideoCaptureFPS), 0.01, name)
		require.NoError(t, img.Close())
		require.NoError(t, video.Close())
	}
}
