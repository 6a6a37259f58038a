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
	require.Equal(t, filepath.Join(folder, "a_2.avi"), path)
	require.Equal(t, []string{"a.avi"}, listed(t, folder), "the one before is finished by the next one")
	_, err = s.save("/films/b.png", 0, grey(16, 16, 0), &predict.Picture{}, nil)
	require.NoError(t, err)
	require.Equal(t, []string{"a.avi", "a_2.avi", "b.png"}, listed(t, folder))

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
	require.Equal(t, []string{"a.avi", "a_2.avi", "b.png"}, listed(t, folder))
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
