package samples

import (
	"archive/tar"
	"bytes"
	"context"
	"fmt"
	"image/jpeg"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

var start = time.Date(2026, 11, 29, 1, 2, 3, 0, time.UTC)

// result is a frame at a time after the start, with objects of some scores.
func result(at time.Duration, scores ...float32) *pipeline.Result {
	const width, height = 64, 48
	r := &pipeline.Result{
		Camera: "gate/1", Time: start.Add(at), Captured: int64(time.Hour + at), Width: width, Height: height, Labels: []string{"nut", "bolt"},
		Frame: &capture.Frame{
			Width: width, Height: height, Stride: 3 * width, Format: engine.BGR, Data: bytes.Repeat([]byte{200}, 3*width*height),
		},
	}
	for i, score := range scores {
		r.Detections = append(r.Detections, postprocess.Detection{
			Box: postprocess.Box{X1: 8, Y1: 12, X2: 40, Y2: 36}, Class: i % 2, Score: score,
		})
	}
	return r
}

func recorder(t *testing.T) *Recorder {
	r := &Recorder{
		Directory: filepath.Join(t.TempDir(), "samples"), Threshold: func(string) float32 { return 0.25 }, Logger: slog.New(slog.DiscardHandler),
	}
	r.Open(Settings{Enabled: true, MaxBytes: 1 << 20, PerHour: 60})
	return r
}

// running runs the recorder until the end of the test.
func running(t *testing.T, r *Recorder) {
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, r.Run(ctx))
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
	})
}

func images(t *testing.T, r *Recorder) (names []string) {
	paths, err := filepath.Glob(filepath.Join(r.Directory, imagesDir, "*"))
	require.NoError(t, err)
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	return names
}

func TestUnsureScores(t *testing.T) {
	for want, scores := range map[string][]float32{"no": {}, "no ": {0.2, 0.9}, "no  ": {0.37}, "yes": {0.25}, "yes ": {0.9, 0.36}} {
		assert.Equal(t, strings.HasPrefix(want, "yes"), isUnsure(result(0, scores...), 0.25), scores)
	}
	assert.False(t, isUnsure(result(0, 1), 1))
}

// TestLostObjects: only one that was followed, is not found in the next frame, and is not at the edge.
func TestLostObjects(t *testing.T) {
	middle, edge := postprocess.Box{X1: 20, Y1: 20, X2: 30, Y2: 30}, postprocess.Box{X1: 1, Y1: 20, X2: 30, Y2: 30}
	track := func(box postprocess.Box, hits, index int) *pipeline.Result {
		r := result(0)
		r.Tracks = []postprocess.Track{{ID: 7, Detection: postprocess.Detection{Box: box}, Hits: hits, Index: index}}
		return r
	}
	for _, test := range []struct {
		name          string
		before, after *pipeline.Result
		lost          bool
	}{
		{"lost", track(middle, 20, 0), track(middle, 20, -1), true},
		{"at the edge", track(edge, 20, 0), track(edge, 20, -1), false},
		{"seen too shortly", track(middle, 5, 0), track(middle, 5, -1), false},
		{"still there", track(middle, 20, 0), track(middle, 21, 0), false},
		{"lost before", track(middle, 20, -1), track(middle, 20, -1), false},
		{"gone at once", track(middle, 20, 0), result(0), false},
	} {
		var c choice
		assert.False(t, c.lost(test.before), test.name)
		assert.Equal(t, test.lost, c.lost(test.after), test.name)
		assert.False(t, c.lost(test.after), "%s: once", test.name)
	}
}

// TestFramesAreADataSet: with a pause between them, and labels that a reader of such data sets understands.
func TestFramesAreADataSet(t *testing.T) {
	r := recorder(t)
	running(t, r)
	kept := func(count int) {
		t.Helper()
		require.Eventually(t, func() bool { return r.Status().Frames == count }, patience, time.Millisecond)
	}
	r.Frame(result(0, 0.9))
	r.Frame(result(time.Second, 0.3, 0.9))
	kept(1)
	r.Frame(result(2*time.Second, 0.3))
	r.Frame(result(62*time.Second, 0.3))
	kept(2)
	assert.Equal(t, []string{"20261129T010204.000_gate_1_unsure.jpg", "20261129T010305.000_gate_1_unsure.jpg"}, images(t, r))
	set, err := evaluate.ReadDataset(filepath.Join(r.Directory, description), "val")
	require.NoError(t, err)
	require.Len(t, set.Images, 2)
	truths := set.Images[0].Truths
	require.Len(t, truths, 2)
	assert.Equal(t, 1, truths[1].Class)
	for i, side := range []float32{truths[0].Box.X1, truths[0].Box.Y1, truths[0].Box.X2, truths[0].Box.Y2} {
		assert.InDelta(t, []float32{8, 12, 40, 36}[i], side, 0.01)
	}

	r.Set(Settings{MaxBytes: 1 << 20, PerHour: 60})
	assert.Nil(t, r.Status())
	r.Frame(result(time.Hour, 0.3))
	r.Set(Settings{Enabled: true, MaxBytes: r.status.Bytes, PerHour: 60})
	r.Frame(result(2*time.Hour, 0.3))
	newest := func() bool { return len(images(t, r)) == 2 && strings.Contains(images(t, r)[1], "T030203") }
	require.Eventually(t, newest, patience, time.Millisecond, "the oldest makes room, and nothing was kept while it was off")
	labels, err := filepath.Glob(filepath.Join(r.Directory, labelsDir, "*"))
	require.NoError(t, err)
	assert.Len(t, labels, 2)
}

// TestOtherClasses: another network's classes are added, and a restart goes on with what is there.
func TestOtherClasses(t *testing.T) {
	dir, at := t.TempDir(), start
	keep := func(labels ...string) error {
		s := &sample{camera: "a", reason: unsure, time: at, width: 10, height: 10, labels: labels}
		s.objects = []object{{1, postprocess.Box{X1: 1, Y1: 1, X2: 5, Y2: 5}}}
		at = at.Add(time.Second)
		return (&dataset{directory: dir}).add(s, []byte("jpeg"), 1<<20)
	}
	require.NoError(t, keep("nut", "bolt"))
	require.NoError(t, keep("screw", "nut"))
	require.NoError(t, keep("nut", "screw"))
	text, err := os.ReadFile(filepath.Join(dir, description))
	require.NoError(t, err)
	assert.Contains(t, string(text), "0: nut\n  1: bolt\n  2: screw\n")
	paths, err := filepath.Glob(filepath.Join(dir, labelsDir, "*"))
	require.NoError(t, err)
	var classes string
	for _, path := range paths {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		classes += string(text[:1])
	}
	assert.Equal(t, "102", classes)

	require.NoError(t, os.WriteFile(filepath.Join(dir, description), []byte("names: {1: a}"), 0o600))
	require.ErrorContains(t, keep("nut"), "class 0 has no name (move the directory away to begin anew)")
}

// TestAnUnusableDirectory: frames are not waited for, the failure is reported, and it ends by itself.
func TestAnUnusableDirectory(t *testing.T) {
	r := recorder(t)
	require.NoError(t, os.WriteFile(r.Directory, nil, 0o600))
	running(t, r)
	r.Frame(result(0, 0.3))
	require.Eventually(t, func() bool { return r.Status().Failures == 1 }, patience, time.Millisecond)
	assert.Contains(t, r.Status().Error, "samples")
	require.NoError(t, os.Remove(r.Directory))
	r.Frame(result(time.Minute, 0.3))
	require.Eventually(t, func() bool { return r.Status().Frames == 1 }, patience, time.Millisecond)
	assert.Empty(t, r.Status().Error)
}

// TestADiskThatHangsStopsNoFrame: what finds the queue full is dropped.
func TestADiskThatHangsStopsNoFrame(t *testing.T) {
	r := recorder(t) // nobody writes
	for i := range 10 {
		r.Frame(result(time.Duration(i)*time.Minute, 0.3))
	}
	assert.Len(t, r.full, queue)
}

// TestPrivatePartsAreHidden, as in every image.
func TestPrivatePartsAreHidden(t *testing.T) {
	r := recorder(t)
	running(t, r)
	in := result(0, 0.3)
	for i := range in.Frame.Data {
		in.Frame.Data[i] = byte(255 * (i / 3 % 2)) // stripes
	}
	in.Hidden = &pipeline.Hidden{Regions: [][]zone.Point{{{X: 0, Y: 0}, {X: 1, Y: 0}, {X: 1, Y: 1}, {X: 0, Y: 1}}}}
	r.Frame(in)
	require.Eventually(t, func() bool { return r.Status().Frames == 1 }, patience, time.Millisecond)
	data, err := os.ReadFile(filepath.Join(r.Directory, imagesDir, images(t, r)[0]))
	require.NoError(t, err)
	img, err := jpeg.Decode(bytes.NewReader(data))
	require.NoError(t, err)
	one, _, _, _ := img.At(30, 20).RGBA()
	other, _, _, _ := img.At(31, 20).RGBA()
	assert.InDelta(t, one>>8, other>>8, 40, "no stripes")
}

func TestFramesThatAreNotKeptCostNoMemory(t *testing.T) {
	r := recorder(t)
	in := result(0, 0.9, 0.8)
	in.Tracks = []postprocess.Track{{ID: 7, Hits: 20}, {ID: 8, Hits: 20}}
	r.Frame(in)
	r.Frame(in)
	assert.Zero(t, testing.AllocsPerRun(100, func() { r.Frame(in) }))
}

func TestExport(t *testing.T) {
	r := recorder(t)
	running(t, r)
	r.Frame(result(0, 0.3))
	require.Eventually(t, func() bool { return r.Status().Frames == 1 }, patience, time.Millisecond)
	var out bytes.Buffer
	require.NoError(t, Export(r.Directory, &out))
	archive := tar.NewReader(&out)
	var names []string
	for {
		head, err := archive.Next()
		if err == io.EOF {
			break
		}
		require.NoError(t, err)
		names = append(names, head.Name)
	}
	base := "20261129T010203.000_gate_1_unsure"
	assert.Equal(t, []string{"samples/data.yaml", "samples/labels/" + base + ".txt", "samples/images/" + base + ".jpg"}, names)
	require.NoError(t, Export(t.TempDir(), &out), "nothing is kept yet")
}

// FuzzDescription: whatever is in data.yaml, frames are kept or the reason is one line.
func FuzzDescription(f *testing.F) {
	f.Add([]byte("names: {0: nut}"))
	f.Add([]byte("names: [nut]"))
	f.Fuzz(func(t *testing.T, text []byte) {
		dir := t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(dir, description), text, 0o600))
		d := &dataset{directory: dir}
		s := &sample{camera: "a", reason: lost, time: start, width: 10, height: 10, labels: []string{"bolt"}}
		if err := d.add(s, []byte("jpeg"), 1<<20); err == nil {
			require.Contains(t, fmt.Sprint(d.labels), "bolt")
		}
	})
}
