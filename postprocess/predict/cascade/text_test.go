package cascade_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/cascade"
)

// reader is a real network that reads: each third of the image's width is a step, red an R, green a G, blue a B, and black the blank.
func reader(t testing.TB) *predict.Network {
	b := testnet.NewBuilder(1)
	x := b.Input("images", 1, 3, 30, 30)
	// Means of columns of ten pixels: [1,3,1,3] over height and steps, then [1,steps,3].
	x = b.Node("AveragePool", "/pool", []string{x}, onnx.Ints("kernel_shape", 30, 10), onnx.Ints("strides", 30, 10))
	x = b.Node("Squeeze", "/line", []string{x, b.Ints("axis", 2)})
	x = b.Node("Transpose", "/steps", []string{x}, onnx.Ints("perm", 0, 2, 1))
	x = b.Node("Mul", "/sharpen", []string{x, b.Floats("sharpness", []float32{20})})
	blank := b.Node("Expand", "/blank", []string{b.Floats("ten", []float32{10}), b.Ints("blanks", 1, 3, 1)})
	b.Output(b.Rename(b.Node("Concat", "/classes", []string{x, blank}, onnx.Int("axis", 2)), "characters"), 1, 3, 4)
	m := b.Model(17)
	m.SetMetadata("names", "['R', 'G', 'B']")
	m.SetMetadata("preprocess", "{preset: ultralytics, resize: stretch}")
	return openAs(t, m, head.LayoutCTCBlankLast)
}

// write paints an object as three stripes.
func (f *video) write(track int, text string) {
	for i, letter := range text {
		colour := map[rune]string{'R': "red", 'G': "green", 'B': "blue"}[letter]
		paint(&f.img, colour, 0, 60*track+20*i, 40, 20, 60)
	}
	detection := paint(&f.img, "", 0, 0, 0, 0, 0)
	detection.X1, detection.Y1, detection.X2, detection.Y2 = float32(60*track), 40, float32(60*track+60), 100
	f.frame.Tracks[track].Detection = detection
}

// TestTextsVote: looks that misread a letter, or lose one, do not change what the others say.
func TestTextsVote(t *testing.T) {
	a := attend(t, nil, cascade.Stage{Name: "plate", Predictor: reader(t), Interval: time.Second, Votes: 5})
	defer a.Close()
	f := newVideo("gate", 1)
	read := func(text string) (value string, changed bool) {
		f.write(0, text)
		changed = len(f.next(a, time.Second)) > 0
		value, _ = known(a, "gate", 1)
		return value, changed
	}
	for i, shown := range []string{
		"RGB",
		"RGR", // as likely, and the first stays
		"RGB",
		"BGB", // one letter of four
		"RRG", // an R and a G, which is another length
	} {
		value, changed := read(shown)
		require.Equal(t, "RGB", value, "look %d", i)
		require.Equal(t, i == 0, changed, "look %d", i)
	}
	said := a.Attributes("gate", 1)
	require.Len(t, said, 1)
	require.Equal(t, -1, said[0].Class)
	require.Less(t, said[0].Score, float32(1), "looks that said otherwise count")

	// Whatever came before, five looks of one mind decide, and it is told once.
	told := 0
	for range 5 {
		if _, changed := read("BRG"); changed {
			told++
		}
	}
	value, _ := known(a, "gate", 1)
	require.Equal(t, "BRG", value)
	require.Positive(t, told)
	require.InDelta(t, 1, a.Attributes("gate", 1)[0].Score, 0.01)
}

// TestTextOfAPicture is what one look reads.
func TestTextOfAImage(t *testing.T) {
	f := newVideo("gate", 1)
	f.write(0, "GRB")
	s := &scene{}
	s.found = append(s.found, nil)
	s.found[0] = append(s.found[0], f.frame.Tracks[0].Detection)
	c := &cascade.Chained{Predictor: s, Stages: []cascade.Stage{{Name: "plate", Predictor: reader(t)}}}
	require.NoError(t, c.Open())
	require.NoError(t, c.Submit(0, []engine.Image{f.img}))
	result, err := c.Wait(0)
	require.NoError(t, err)
	require.Equal(t, "plate=GRB", values(&result.Results[0].Detections[0]))
	require.NoError(t, c.Close())
}
