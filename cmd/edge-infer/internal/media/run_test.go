package media

import (
	"errors"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// recorder is a predictor that notes how large each request is, and finds an image with a red corner unbearable.
type recorder struct {
	batch    int
	requests []int
	result   predict.BatchResult
}

func (r *recorder) Model() predict.Model {
	return predict.Model{Model: engine.Model{MaxBatch: r.batch}}
}
func (*recorder) Slots() int                  { return 2 }
func (*recorder) Tune(predict.Decoding) error { return nil }
func (*recorder) Close() error                { return nil }
func (*recorder) Alloc(size int) (*engine.Buffer, error) {
	return &engine.Buffer{Data: make([]byte, size)}, nil
}

func (r *recorder) Submit(_ int, images []engine.Image) error {
	r.requests = append(r.requests, len(images))
	r.result.Results = make([]predict.Result, len(images))
	for i := range images {
		if images[i].Data[2] == 255 && images[i].Data[1] == 0 {
			r.result.Results[i].Err = errors.New("too red")
		}
	}
	return nil
}

func (r *recorder) Wait(int) (*predict.BatchResult, error) { return &r.result, nil }

// directory holds count images of different sizes; those of red are red, those of broken are no images.
func dir(t *testing.T, count int, red, broken int) string {
	directory := t.TempDir()
	for i := range count {
		path := filepath.Join(directory, fmt.Sprintf("%02d.png", i))
		if i == broken {
			require.NoError(t, os.WriteFile(path, []byte("no image"), 0o600))
			continue
		}
		img := image.NewRGBA(image.Rect(0, 0, 8+i%3, 6))
		if i == red {
			for k := range img.Pix {
				img.Pix[k] = []byte{255, 0, 0, 255}[k%4]
			}
		}
		img.Set(7, 5, color.White)
		file, err := os.Create(path)
		require.NoError(t, err)
		require.NoError(t, png.Encode(file, img))
		require.NoError(t, file.Close())
	}
	return directory
}

func files(t *testing.T, dir string) []string {
	all, err := Expand(dir)
	require.NoError(t, err)
	return all
}

// TestAFolderIsRunInWholeBatches, and one bad image costs the others nothing.
func TestADirIsRunInWholeBatches(t *testing.T) {
	predictor := &recorder{batch: 4}
	var seen, failed []string
	run := &Run{
		Predictors: []predict.Predictor{predictor},
		Each: func(path string, number int, frame *capture.Frame, _ *predict.Result, _ engine.Timing) error {
			require.Zero(t, number)
			require.Equal(t, 6, frame.Height)
			seen = append(seen, filepath.Base(path))
			return nil
		},
		Failed: func(path string, rest bool, err error) {
			require.False(t, rest)
			failed = append(failed, fmt.Sprintf("%s: %v", filepath.Base(path), errors.Unwrap(err)))
		},
	}
	require.NoError(t, run.Files(t.Context(), files(t, dir(t, 11, 3, 5))))
	require.Equal(t, []int{4, 4, 2}, predictor.requests)
	require.Equal(t, []string{"00.png", "01.png", "02.png", "04.png", "06.png", "07.png", "08.png", "09.png", "10.png"}, seen)
	require.Len(t, failed, 2)
	require.Contains(t, failed[0]+failed[1], "03.png: too red")

	run.Failed = nil
	err := run.Files(t.Context(), append(files(t, dir(t, 3, 1, -1)), filepath.Join(t.TempDir(), "none.png")))
	require.ErrorContains(t, err, "01.png: too red")
	require.ErrorContains(t, err, "none.png")

	stop := errors.New("no space left on device")
	run.Each = func(string, int, *capture.Frame, *predict.Result, engine.Timing) error { return stop }
	require.ErrorIs(t, run.Files(t.Context(), files(t, dir(t, 6, -1, -1))), stop)
}
