package media

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// device is a predictor that finds the width of every image in it, and waits before its first request is done until it is let go on.
type device struct {
	recorder
	mu       sync.Mutex
	results  [2]predict.BatchResult
	goOn     <-chan struct{}
	answered func(requests int)
	done     int
	fails    error
}

func (d *device) Submit(slot int, images []engine.Image) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.requests = append(d.requests, len(images))
	d.results[slot].Results = d.results[slot].Results[:0]
	for _, p := range images {
		seen := predict.Result{Detections: []postprocess.Detection{{Box: postprocess.Box{X2: float32(p.Width)}}}}
		d.results[slot].Results = append(d.results[slot].Results, seen)
	}
	return nil
}

func (d *device) Wait(slot int) (*predict.BatchResult, error) {
	if d.goOn != nil {
		<-d.goOn
	}
	d.done++
	if d.answered != nil {
		d.answered(d.done)
	}
	return &d.results[slot], d.fails
}

// TestDevicesShareTheWork: while one hangs, the other one takes what is left, and everything comes out in the order of the files all the
// same.
func TestDevicesShareTheWork(t *testing.T) {
	const images, batch = 60, 2
	directory := dir(t, images, -1, 7)
	goOn := make(chan struct{})
	slow, fast := &device{goOn: goOn}, &device{}
	slow.batch, fast.batch = batch, batch
	// As many are decoded ahead as both have slots for; the slow one holds its first two requests.
	fast.answered = func(requests int) {
		if requests == 3 {
			close(goOn)
		}
	}
	var seen, failed []string
	run := &Run{
		Predictors: []predict.Predictor{slow, fast}, Ahead: true, Readers: 3,
		Each: func(path string, _ int, frame *capture.Frame, img *predict.Result, _ engine.Timing) error {
			require.Equal(t, float32(frame.Width), img.Detections[0].X2, path)
			seen = append(seen, filepath.Base(path))
			return nil
		},
		Failed: func(path string, _ bool, _ error) { failed = append(failed, filepath.Base(path)) },
	}
	require.NoError(t, run.Files(t.Context(), files(t, directory)))
	var want []string
	for i := range images {
		if i != 7 {
			want = append(want, fmt.Sprintf("%02d.png", i))
		}
	}
	require.Equal(t, want, seen)
	require.Equal(t, []string{"07.png"}, failed)
	require.Equal(t, (images-1+batch-1)/batch, len(slow.requests)+len(fast.requests))
	require.GreaterOrEqual(t, len(fast.requests), 3)
}

// TestADeviceThatFailsEndsTheRun, and nothing is left behind: images that were read ahead are given back.
func TestADeviceThatFailsEndsTheRun(t *testing.T) {
	good, bad := &device{}, &device{fails: errors.New("fell off the bus")}
	good.batch, bad.batch = 2, 2
	run := &Run{
		Predictors: []predict.Predictor{bad}, Ahead: true, Readers: 2,
		Each: func(string, int, *capture.Frame, *predict.Result, engine.Timing) error { return nil },
	}
	require.ErrorContains(t, run.Files(t.Context(), files(t, dir(t, 40, -1, -1))), "00.png: fell off the bus")

	run.Predictors = []predict.Predictor{good}
	stop := errors.New("no space left on device")
	run.Each = func(string, int, *capture.Frame, *predict.Result, engine.Timing) error { return stop }
	require.ErrorIs(t, run.Files(t.Context(), files(t, dir(t, 40, -1, -1))), stop)
}

// TestWithoutAheadNothingRunsBeside: whoever measures a request has the machine for it.
func TestWithoutAheadNothingRunsBeside(t *testing.T) {
	d := &device{}
	d.batch = 3
	delivered := 0
	d.answered = func(requests int) { require.Equal(t, 3*(requests-1), delivered, "the one before is all done") }
	run := &Run{
		Predictors: []predict.Predictor{d},
		Each: func(string, int, *capture.Frame, *predict.Result, engine.Timing) error {
			delivered++
			return nil
		},
		Skip: func(path string) bool { return strings.HasSuffix(path, "00.png") },
	}
	require.NoError(t, run.Files(t.Context(), files(t, dir(t, 11, -1, -1))))
	require.Equal(t, []int{3, 3, 3, 1}, d.requests)
	require.Positive(t, run.Waited())
}

func TestListsNameFiles(t *testing.T) {
	files, err := lines(strings.NewReader("\ufeffa.jpg\n\n  b c.png \r\n"))
	require.NoError(t, err)
	require.Equal(t, []string{"a.jpg", "b c.png"}, files)
	_, err = Expand("@" + filepath.Join(t.TempDir(), "none"))
	require.ErrorContains(t, err, "list of files: open")
}
