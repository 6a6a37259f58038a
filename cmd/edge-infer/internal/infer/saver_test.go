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
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func grey(width, height int, position time.Duration) *capture.Frame {
	return &capture.Frame{
		Data: make([]byte, 3*width*height), Width: width, Height: height, Stride: 3 * width, Format: engine.BGR, Position: position,
	}
}

func listed(t *testing.T, folder string) (names []string) {
	entries, err := os.ReadDir(folder)
	require.NoError(t, err)
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

// TestAFilmIsSavedWholeOrNotAtAll: under its name it stands when it is finished, and nothing stays of one that is given up.
func TestAFilmIsSavedWholeOrNotAtAll(t *testing.T) {
	folder := t.TempDir()
	s, err := newSaver(folder, FilmAVI, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	for number := range 3 {
		path, err := s.save("/films/a.mp4", number, grey(64, 48, time.Duration(number)*40*time.Millisecond), &predict.Picture{}, nil)
		require.NoError(t, err)
		require.Equal(t, filepath.Join(folder, "a.avi"), path)
		require.NoFileExists(t, path)
	}
	path, err := s.save("/more/a.mkv", 0, grey(32, 32, 0), &predict.Picture{}, nil) // of one picture, which tells no rate
	require.NoError(t, err)
	require.Equal(t, filepath.Join(folder, "a-2.avi"), path)
	require.Equal(t, []string{"a.avi"}, listed(t, folder), "the one before is finished by the next one")
	_, err = s.save("/films/b.png", 0, grey(16, 16, 0), &predict.Picture{}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a-2.avi", "a.avi", "b.png"}, listed(t, folder))

	for number, width := range []int{64, 64, 48} {
		_, err = s.save("/films/c.mp4", number, grey(width, 48, time.Duration(number)*40*time.Millisecond), &predict.Picture{}, nil)
		if width == 48 {
			require.EqualError(t, err, "save /films/c.mp4: picture 2 is 48x48, those before were 64x48")
		}
	}
	require.NoError(t, s.abandon("/films/other.mp4"))
	require.Contains(t, listed(t, folder), ".partial.c.avi", "so that other runs may save here at the same time")
	require.NoError(t, s.abandon("/films/c.mp4"))
	require.NoError(t, s.abandon(""))
	require.NoError(t, s.finish())
	require.Equal(t, []string{"a-2.avi", "a.avi", "b.png"}, listed(t, folder))
}

// TestFilmsAreMP4WhereTheyCanBe: whole, at their rate, and without the odd row and column that encoders refuse.
func TestFilmsAreMP4WhereTheyCanBe(t *testing.T) {
	folder := t.TempDir()
	c, err := chooseCodec(folder, FilmAuto)
	require.NoError(t, err)
	if !c.even() {
		t.Skip("nothing here writes MP4: install gstreamer1.0-plugins-ugly")
	}
	require.Empty(t, listed(t, folder), "the trial leaves nothing")
	s, err := newSaver(folder, FilmMP4, nil, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	const frames = 12
	for number := range frames {
		_, err := s.save("/films/a b.mkv", number, grey(321, 241, time.Duration(number)*100*time.Millisecond), &predict.Picture{}, nil)
		require.NoError(t, err)
	}
	require.NoError(t, s.finish())
	require.Equal(t, []string{"a b.mp4"}, listed(t, folder))
	film, err := gocv.VideoCaptureFile(filepath.Join(folder, "a b.mp4"))
	require.NoError(t, err)
	defer film.Close()
	require.InDelta(t, 10, film.Get(gocv.VideoCaptureFPS), 0.01)
	picture := gocv.NewMat()
	defer picture.Close()
	seen := 0
	for film.Read(&picture) {
		require.Equal(t, []int{240, 320}, picture.Size())
		seen++
	}
	require.Equal(t, frames, seen)
}

// TestACopyTakesAsLongAsItsFilm, whose pictures stand for different times: at the rate that the file tells, if that is one.
func TestACopyTakesAsLongAsItsFilm(t *testing.T) {
	for name, c := range map[string]struct {
		told   float64
		at     []int // ms
		rate   float64
		frames int
	}{
		"even":                 {10, []int{0, 100, 200, 300}, 10, 4},
		"begins late":          {10, []int{700, 800, 900}, 10, 3},
		"a picture stands":     {10, []int{0, 100, 600, 700}, 10, 8},
		"a clock, not a rate":  {1000, []int{0, 40, 80, 160}, 25, 5},
		"nothing is told":      {0, []int{0, 50, 100}, 20, 3},
		"no times either":      {0, []int{0, 0, 0}, unknownRate, 3},
		"times of two hours":   {2, []int{0, 7200000, 7200500}, 2, 20 + 2},
		"times that go back":   {10, []int{200, 300, 0, 0}, 10, 4},
		"the only one":         {10, []int{0}, 10, 1},
		"more often than told": {10, []int{0, 50, 100, 150}, 10, 4},
	} {
		folder := t.TempDir()
		s, err := newSaver(folder, FilmAVI, nil, slog.New(slog.DiscardHandler))
		require.NoError(t, err)
		for number, at := range c.at {
			frame := grey(64, 48, time.Duration(at)*time.Millisecond)
			frame.Rate = c.told
			_, err := s.save("/films/a.mp4", number, frame, &predict.Picture{}, nil)
			require.NoError(t, err, name)
		}
		require.NoError(t, s.finish(), name)
		film, err := gocv.VideoCaptureFileWithAPI(filepath.Join(folder, "a.avi"), gocv.VideoCaptureOpencvMjpeg)
		require.NoError(t, err, name)
		picture, seen := gocv.NewMat(), 0
		for film.Read(&picture) {
			seen++
		}
		require.Equal(t, c.frames, seen, name)
		require.InDelta(t, c.rate, film.Get(gocv.VideoCaptureFPS), 0.01, name)
		require.NoError(t, picture.Close())
		require.NoError(t, film.Close())
	}
}
