package accuracy

import (
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"gocv.io/x/gocv"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// levels is a classifier of 40 shades of gray, none of which it is ever sure of; shift moves every answer by that many shades.
func levels(t *testing.T, shift int) []byte {
	const classes = 40
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, 32, 32)
	x = b.Node("Flatten", "/flat", []string{b.Node("GlobalAveragePool", "/pool", []string{x})})
	weights, bias := make([]float32, 3*classes), make([]float32, classes)
	for class := range classes { // -(level - shade)^2 without the part that all classes have
		shade := (float32((class+classes-shift)%classes) + 0.5) / classes
		for channel := range 3 {
			weights[channel*classes+class] = 200 * 2 * shade / 3
		}
		bias[class] = -200 * shade * shade
	}
	x = b.Node("MatMul", "/dot", []string{x, b.Floats("weights", weights, 3, classes)})
	x = b.Node("Add", "/add", []string{x, b.Floats("bias", bias, classes)})
	b.Output(b.Rename(b.Node("Softmax", "/softmax", []string{x}), "scores"), 1, classes)
	m := b.Model(17)
	m.SetMetadata("task", "classify")
	data, err := proto.Marshal(m.Proto)
	require.NoError(t, err)
	return data
}

// TestTheGateOfAClassifierIsItsBestClass: whether both networks choose the same, however little any of the classes scores.
func TestTheGateOfAClassifierIsItsBestClass(t *testing.T) {
	dir := t.TempDir()
	var files []string
	for i := range 24 {
		gray := float64(10*i + 8)
		img := gocv.NewMatWithSizeFromScalar(gocv.NewScalar(gray, gray, gray, 0), 40, 60, gocv.MatTypeCV8UC3)
		files = append(files, filepath.Join(dir, fmt.Sprintf("%d.png", i)))
		require.True(t, gocv.IMWrite(files[i], img))
		require.NoError(t, img.Close())
	}
	g := NewGate(files, Limits{MatchRate: 0.97, MaxLoss: 0.01}, nil)
	defer g.Close()
	require.NoError(t, g.Refer(t.Context(), engine.Options{Path: "levels.onnx", Bytes: levels(t, 0)}, nil))
	for shift, passes := range []bool{true, false} {
		candidate, err := OnCPU("levels.onnx", levels(t, shift), 1)
		require.NoError(t, err)
		verdict, err := g.Judge(t.Context(), candidate)
		require.NoError(t, err)
		require.Equal(t, passes, verdict.Passed, "%+v", verdict)
		require.Equal(t, 24, verdict.Comparison.Reference, "every image has a best class")
		if passes {
			require.Equal(t, 24, verdict.Comparison.Matched)
		} else {
			require.Equal(t, 24, verdict.Comparison.Flipped)
		}
	}
}
