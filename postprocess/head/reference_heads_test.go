package head

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// goldenHead is a network of heads.json: the outputs of one image and what the project's own postprocessing makes of them.
type goldenHead struct {
	Name            string
	Layout          Layout
	Labels          int
	Preset          string // that the file names
	Confidence, IoU float32
	MultiLabel      bool `json:"multi_label"`
	Selected        bool // the layout is never recognised
	Outputs         []struct {
		Name, Type string
		Shape      []int64
	}
	Detections []goldenDetection
}

func readHeads(t testing.TB) []goldenHead {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "heads.json"))
	require.NoError(t, err)
	var all []goldenHead
	require.NoError(t, json.Unmarshal(text, &all))
	require.NotEmpty(t, all)
	return all
}

// open is the model of a case and what it gave.
func (c *goldenHead) open(t testing.TB, size int, transform engine.Transform) (*engine.Model, *engine.Result) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", c.Name+".bin"))
	require.NoError(t, err)
	m := described(c.Labels)
	m.Metadata.Preprocess.Preset = c.Preset
	m.Width, m.Height = size, size
	given := result(transform)
	types := map[string]engine.DataType{"float32": engine.Float32, "int32": engine.Int32, "int64": engine.Int64}
	for _, o := range c.Outputs {
		kind, known := types[o.Type]
		require.True(t, known, o.Type)
		bytes := kind.Size() * int(engine.Elements(o.Shape))
		m.Outputs = append(m.Outputs, engine.TensorInfo{Name: o.Name, Type: kind, Shape: o.Shape})
		given.Outputs = append(given.Outputs, engine.Tensor{Name: o.Name, Type: kind, Shape: o.Shape, Data: aligned(raw[:bytes])})
		raw = raw[bytes:]
	}
	require.Empty(t, raw)
	return m, given
}

// Each head is recognised by what its network gives, and finds in it what the project's own program finds.
func TestHeadsFindWhatTheirReferenceFinds(t *testing.T) {
	g := readGolden(t)
	transform := engine.Transform{ScaleX: g.Transform.Scale, ScaleY: g.Transform.Scale, PadX: g.Transform.Pad[0], PadY: g.Transform.Pad[1]}
	for _, c := range readHeads(t) {
		t.Run(c.Name, func(t *testing.T) {
			m, given := c.open(t, g.Transform.Size, transform)
			o := Options{MinScore: c.Confidence, IoU: c.IoU, MultiLabel: c.MultiLabel}
			if c.Selected {
				o.Layout = c.Layout
			}
			d := openDecoder(t, m, o)
			assert.Equal(t, c.Layout, d.Recognised().Layout)
			width, height := g.Transform.Source[0], g.Transform.Source[1]
			got, stats, err := d.Decode(given, 0, width, height, nil)
			require.NoError(t, err)
			require.Len(t, got, len(c.Detections))
			assert.Zero(t, stats.Invalid)
			for i, want := range c.Detections {
				assert.Equal(t, want.Class, got[i].Class, "detection %d", i)
				assert.InDelta(t, want.Score, got[i].Score, 1e-6, "detection %d", i)
				if want.Keypoints != nil {
					assertKeypoints(t, want.Keypoints, got[i].Detail)
				}
				for j, edge := range [4]float32{got[i].X1, got[i].Y1, got[i].X2, got[i].Y2} {
					assert.InDelta(t, want.Box[j], edge, 5e-3, "detection %d, edge %d", i, j)
				}
			}
			impossible, err := d.CountBadScores(given, 0)
			require.NoError(t, err)
			assert.Zero(t, impossible)
			assert.Zero(t, testing.AllocsPerRun(10, func() { got, _, _ = d.Decode(given, 0, width, height, got[:0]) }))

			named := openDecoder(t, m, Options{Layout: c.Layout, MinScore: c.Confidence, IoU: c.IoU, MultiLabel: c.MultiLabel})
			again, _, err := named.Decode(given, 0, width, height, nil)
			require.NoError(t, err)
			assert.Equal(t, got, again, "the layout by name")
		})
	}
}

// assertKeypoints compares keypoints and their scores with those of a reference.
func assertKeypoints(t *testing.T, want [][3]float32, got *postprocess.Detail) {
	t.Helper()
	require.NotNil(t, got)
	require.Len(t, got.Keypoints, len(want))
	require.Len(t, got.Skeleton.Names, len(want))
	for i, p := range got.Keypoints {
		assert.InDelta(t, want[i][0], p.X, 5e-3, "keypoint %d", i)
		assert.InDelta(t, want[i][1], p.Y, 5e-3, "keypoint %d", i)
		assert.InDelta(t, want[i][2], p.Score, 1e-4, "keypoint %d", i)
	}
}
