package head

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// goldenTask is a network of tasks.json: the outputs of one image and what its project makes of them.
type goldenTask struct {
	Name            string
	Layout          Layout
	Labels          int
	Confidence, IoU float32
	Keypoints       [2]int // points and numbers of each
	Shapes          [][]int64
	Outputs         []string // their names, of a network that stretches its images and says nothing of itself
	Detections      []struct {
		Box       [4]float32 // of an oriented box the centre and sides
		Score     float32
		Class     int
		Keypoints [][]float32
		Mask      string
		Angle     float32
	}
}

func readTasks(t testing.TB) []goldenTask {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "tasks.json"))
	require.NoError(t, err)
	var all []goldenTask
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all)
	return all
}

// open is the model of a case as its file would describe it, and what it gave for the same image twice.
func (c *goldenTask) open(t testing.TB, size int, transform engine.Transform) (*engine.Model, *engine.Result) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", c.Name+".bin"))
	require.NoError(t, err)
	m := described(c.Labels, c.Shapes...)
	m.Width, m.Height = size, size
	task, ended := strings.CutSuffix(string(c.Layout), "-end2end")
	m.Metadata.Task, m.Metadata.EndToEnd = engine.Task(task), ended
	if c.Outputs != nil {
		m.Metadata.Task = ""
	}
	m.Metadata.Keypoints, m.Metadata.KeypointNumbers = c.Keypoints[0], c.Keypoints[1]
	given := result(transform)
	given.Transforms = append(given.Transforms, transform)
	for i, shape := range c.Shapes {
		if c.Outputs != nil {
			m.Outputs[i].Name = c.Outputs[i]
		}
		bytes := 4 * int(engine.Elements(shape))
		twice := append(append([]byte{}, raw[:bytes]...), raw[:bytes]...)
		given.Outputs = append(given.Outputs, engine.Tensor{
			Name: m.Outputs[i].Name, Shape: append([]int64{2}, shape[1:]...), Data: aligned(twice),
		})
		raw = raw[bytes:]
	}
	require.Empty(t, raw)
	return m, given
}

func TestTasksFindWhatTheirProjectsFind(t *testing.T) {
	g := readGolden(t)
	transform := engine.Transform{ScaleX: g.Transform.Scale, ScaleY: g.Transform.Scale, PadX: g.Transform.Pad[0], PadY: g.Transform.Pad[1]}
	width, height := g.Transform.Source[0], g.Transform.Source[1]
	for _, c := range readTasks(t) {
		t.Run(c.Name, func(t *testing.T) {
			transform := transform
			if c.Outputs != nil {
				transform = engine.Transform{ScaleX: float32(g.Transform.Size) / float32(width), ScaleY: float32(g.Transform.Size) / float32(height)}
			}
			m, given := c.open(t, g.Transform.Size, transform)
			d := openDecoder(t, m, Options{MinScore: c.Confidence, IoU: c.IoU})
			require.Equal(t, c.Layout, d.Recognised().Layout)
			require.Nil(t, d.Filter(), "boxes alone are not enough")
			got, stats, err := d.Decode(given, 0, width, height, nil)
			require.NoError(t, err)
			require.Zero(t, stats.Invalid)
			require.Len(t, got, len(c.Detections))
			for i := range c.Detections {
				c.compare(t, i, &got[i], width, height)
			}
			kept := make([]postprocess.Detection, len(got))
			for i := range got {
				kept[i] = got[i].Clone()
			}
			second, _, err := d.Decode(given, 1, width, height, nil)
			require.NoError(t, err)
			require.Equal(t, kept, second, "the other image of the request shows the same")
			impossible, err := d.CountBadScores(given, 0)
			require.NoError(t, err)
			require.Zero(t, impossible)
			require.Equal(t, kept, got, "neither call has touched the first image's details")
			require.Zero(t, testing.AllocsPerRun(10, func() { got, _, _ = d.Decode(given, 0, width, height, got[:0]) }))
		})
	}
}

// compare holds a detection against the reference's.
func (c *goldenTask) compare(t *testing.T, i int, got *postprocess.Detection, width, height int) {
	t.Helper()
	want := &c.Detections[i]
	assert.Equal(t, want.Class, got.Class, "detection %d", i)
	assert.InDelta(t, want.Score, got.Score, 1e-5, "detection %d", i)
	require.NotNil(t, got.Detail)
	place := [4]float32{got.X1, got.Y1, got.X2, got.Y2}
	if o := got.Detail.Oriented; o != nil {
		place = [4]float32{o.X, o.Y, o.Width, o.Height}
		assert.InDelta(t, want.Angle, o.Angle, 1e-5, "detection %d", i)
	}
	for k, v := range place {
		assert.InDelta(t, want.Box[k], v, 5e-3, "detection %d, number %d", i, k)
	}
	require.Len(t, got.Detail.Keypoints, len(want.Keypoints))
	for k, p := range got.Detail.Keypoints {
		assert.InDelta(t, want.Keypoints[k][0], p.X, 5e-3, "detection %d, point %d", i, k)
		assert.InDelta(t, want.Keypoints[k][1], p.Y, 5e-3, "detection %d, point %d", i, k)
		score := float32(1)
		if c.Keypoints[1] == 3 {
			score = want.Keypoints[k][2]
		}
		assert.InDelta(t, score, p.Score, 1e-5, "detection %d, point %d", i, k)
	}
	require.Equal(t, want.Mask != "", got.Detail.Mask != nil)
	if want.Mask != "" {
		theirs, err := postprocess.ParseCounts([]byte(want.Mask))
		require.NoError(t, err)
		overlap := got.Detail.Mask.AppendRuns(nil, width, height).IoU(theirs, false)
		if theirs.Area() > 0 {
			assert.GreaterOrEqual(t, overlap, 0.999, "mask of detection %d", i)
		}
	}
}
