package media

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func TestReaderNamesWhatItCannotRead(t *testing.T) {
	var reader Reader
	defer reader.Close()
	path := filepath.Join(t.TempDir(), "cut.jpg")
	require.NoError(t, os.WriteFile(path, []byte("\xff\xd8\xff\xe0cut"), 0o600))
	for _, path := range []string{path, path + ".absent.jpg"} {
		_, err := reader.Read(path)
		assert.ErrorContains(t, err, path)
	}
}

// TestAFilmThatEndsEarlyIsTold, and has its images all the same.
func TestAVideoThatEndsEarlyIsTold(t *testing.T) {
	path := filepath.Join(t.TempDir(), "video.avi")
	writer, err := gocv.VideoWriterFileWithAPI(path, gocv.VideoCaptureOpencvMjpeg, "MJPG", 10, 64, 48, true)
	require.NoError(t, err)
	img := gocv.NewMatWithSize(48, 64, gocv.MatTypeCV8UC3)
	defer img.Close()
	for range 40 {
		require.NoError(t, writer.Write(img))
	}
	require.NoError(t, writer.Close())
	seen, short := 0, 0
	run := &Run{
		Predictors: []predict.Predictor{&recorder{batch: 1}},
		Each: func(string, int, *capture.Frame, *predict.Result, engine.Timing) error {
			seen++
			return nil
		},
		Failed: func(string, bool, error) {}, // the image that is cut
		Short: func(of string, reached, told time.Duration) {
			require.Equal(t, path, of)
			require.Less(t, reached, told)
			short++
		},
	}
	require.NoError(t, run.Files(t.Context(), []string{path}))
	require.Equal(t, []int{40, 0}, []int{seen, short})
	video, err := os.ReadFile(path)
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(path, video[:len(video)/2], 0o600))
	seen = 0
	require.NoError(t, run.Files(t.Context(), []string{path}))
	require.Greater(t, seen, 5)
	require.Less(t, seen, 30)
	require.Equal(t, 1, short)
}
