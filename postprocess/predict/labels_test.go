package predict

import (
	"encoding/binary"
	"log/slog"
	"math"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

func TestEveryClassHasALabelOfItsOwn(t *testing.T) {
	for _, test := range [][2][]string{
		{nil, nil},
		{{"bolt", "nut"}, {"bolt", "nut"}},
		{{"N/A", "person", "N/A", "N/A"}, {"N/A", "person", "N/A 2", "N/A 3"}},
		{{"x", "x", "x 2"}, {"x", "x 3", "x 2"}},
		{{"", "x", ""}, {"class 0", "x", "class 2"}},
		{{"", "class 0"}, {"class 0 2", "class 0"}},
	} {
		require.Equal(t, test[1], distinctLabels(test[0]), "%q", test[0])
	}
}

// TestClassWithoutName: detections of classes that the names do not reach are kept, and one warning names the file.
func TestClassWithoutName(t *testing.T) {
	for file, hint := range map[string]string{
		"":         "the names in rows.onnx are too few: provide all of them with --labels FILE",
		"bolt.txt": "add the missing names to bolt.txt",
	} {
		e := &rows{scripted: newScripted(1)}
		e.model.Outputs = []engine.TensorInfo{{Name: "output0", Shape: []int64{1, 2, 6}}}
		n, err := Wrap(e, Decoding{Layout: head.LayoutEnd2End})
		require.NoError(t, err)
		var log strings.Builder
		o := Options{LabelsFile: file, Log: slog.New(slog.NewTextHandler(&log, nil))}
		o.Path = "rows.onnx"
		n.unnamed.warn = o.warnUnnamed
		for range 3 {
			require.NoError(t, n.Submit(0, []engine.Image{shows(90)}))
			result, err := n.Wait(0)
			require.NoError(t, err)
			require.NoError(t, result.Results[0].Err)
			require.Len(t, result.Results[0].Detections, 2)
			require.Equal(t, 5, result.Results[0].Detections[0].Class)
			require.Zero(t, result.Results[0].Stats.BadScores)
		}
		require.Equal(t, 1, strings.Count(log.String(), "\n"), log.String())
		require.Contains(t, log.String(), `msg="class number beyond the names" model=rows.onnx class=5 names=2 hint="`+hint+`"`)
	}
}

// rows is an engine with two end-to-end rows for every image, of classes 5 and 1.
type rows struct{ *scripted }

func (r *rows) Wait(int) (*engine.Result, error) {
	data := []float32{4, 4, 20, 20, 0.9, 5, 30, 30, 50, 50, 0.8, 1}
	out := engine.Tensor{Name: "output0", Shape: []int64{1, 2, 6}}
	for _, v := range data {
		out.Data = binary.LittleEndian.AppendUint32(out.Data, math.Float32bits(v))
	}
	return &engine.Result{Outputs: []engine.Tensor{out}, Transforms: []engine.Transform{{ScaleX: 1, ScaleY: 1}}}, nil
}
