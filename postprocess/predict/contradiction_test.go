package predict

import (
	"cmp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// see runs images one by one until the network contradicts its head, and returns after how many. invalid is the number of images with an
// error of their own.
func see(t *testing.T, n *Network, images ...engine.Image) (number, invalid int, c *Contradiction) {
	t.Helper()
	for i, img := range images {
		require.NoError(t, n.Submit(i%2, []engine.Image{img}))
		result, err := n.Wait(i % 2)
		require.NoError(t, err)
		if result.Results[0].Err != nil {
			var wrong *InvalidOutput
			require.ErrorAs(t, result.Results[0].Err, &wrong)
			invalid++
		}
		if result.Contradiction != nil {
			return i + 1, invalid, result.Contradiction
		}
	}
	return 0, invalid, nil
}

func times(count int, img engine.Image) (all []engine.Image) {
	for range count {
		all = append(all, img)
	}
	return all
}

func TestContradiction(t *testing.T) {
	none, odd, some := shows(), shows(150), shows(50)
	const scores = "model scripted.onnx is not yolov8: 30 images in a row had scores that are not from 0 to 1 " +
		"(select another --layout; edge-infer inspect shows the outputs)"
	const boxes = "model scripted.onnx is not yolov8: 30 images in a row had boxes outside the image or of no size " +
		"(select another --layout; edge-infer inspect shows the outputs)"
	for _, c := range []struct {
		name    string
		shares  bool // as in scripted
		floor   float32
		images  []engine.Image
		after   int
		invalid int // those of a network that was right before
		strict  int // those of cameras; 0 for invalid
		want    string
	}{
		{name: "right", images: times(100, some)},
		{name: "empty for ever", images: times(3000, none)},
		{name: "empty for ever, in corners that mean nothing", shares: true, images: times(300, none)},
		{name: "scores over 1", images: times(100, odd), after: 30, strict: 30, want: scores},
		{
			name: "empty images between say nothing", images: append(append(times(20, odd), times(50, none)...), times(20, odd)...),
			after: 80, strict: 30, want: scores,
		},
		{name: "wrong after a right image", images: append(append(times(29, odd), some), times(100, odd)...), invalid: 100, strict: 129},
		{name: "right again", images: append(append(times(9, some), times(50, odd)...), times(9, some)...), invalid: 50},
		{name: "some right scores after a right image", images: append(times(9, some), times(50, shows(50, 150))...)},
		{name: "some right scores in each", images: times(100, shows(50, 150)), after: 30, strict: 30, want: scores},
		{name: "logits, of which none is high", floor: -4, images: times(100, none), after: 30, strict: 30, want: scores},
		{name: "a little under 0 as quantized networks end", floor: -0.01, images: times(100, none)},
		{name: "shares read as pixels", shares: true, images: times(100, some), after: 30, strict: 30, want: boxes},
		{
			name: "shares, with empty images", shares: true, images: append(times(29, some), append(times(9, none), some)...),
			after: 39, strict: 30, want: boxes,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			e := newScripted(1)
			e.floor, e.shares = c.floor, c.shares
			n := wrap(t, e, Decoding{})
			after, invalid, contradiction := see(t, n, c.images...)
			assert.Equal(t, c.after, after)
			assert.Equal(t, c.invalid, invalid)
			forCameras := wrap(t, e, Decoding{})
			forCameras.evidence.strict = true
			_, invalid, _ = see(t, forCameras, c.images...)
			assert.Equal(t, cmp.Or(c.strict, c.invalid), invalid)
			if c.want == "" {
				assert.Nil(t, contradiction)
				return
			}
			require.EqualError(t, contradiction, c.want)
			after, _, again := see(t, n, some)
			assert.Equal(t, 1, after, "it stays so")
			assert.Same(t, contradiction, again)
		})
	}
}

// An engine that lists boxes on its device tells of the scores that it passed over.
func TestContradictionOfTheDevice(t *testing.T) {
	e := newScripted(1)
	e.listed = true
	n := wrap(t, e, Decoding{})
	e.impossible = 7
	after, _, c := see(t, n, times(100, shows(50))...)
	assert.Equal(t, ContradictionImages, after)
	require.ErrorContains(t, c, "scores that are not from 0 to 1")
}

// The cameras of a batch are all evidence.
func TestContradictionInBatches(t *testing.T) {
	n := wrap(t, newScripted(8), Decoding{})
	for range 3 {
		require.NoError(t, n.Submit(0, times(8, shows(150))))
		result, err := n.Wait(0)
		require.NoError(t, err)
		require.Nil(t, result.Contradiction)
	}
	require.NoError(t, n.Submit(0, times(8, shows(150))))
	result, err := n.Wait(0)
	require.NoError(t, err)
	require.NotNil(t, result.Contradiction)
}

// Few images are judged by what each of them shows; images that decide nothing are told apart from right ones.
func TestFindContradiction(t *testing.T) {
	for reason, stats := range map[string]head.Stats{
		noScores:  {Candidates: 1, BadScores: 1, Invalid: 1},
		noBoxes:   {Candidates: 2, OutsideInput: 2},
		noCentres: {Candidates: 3, Suppressed: 1, LikeCorners: 2, Overhanging: 1},
		noMaps:    {HeatMaps: 1},
	} {
		found, open := FindContradiction(&stats)
		assert.Equal(t, reason, found)
		assert.False(t, open)
	}
	found, _ := FindContradiction(&head.Stats{Candidates: 2, Invalid: 3})
	assert.Equal(t, noBoxes, found, "most boxes of no size: centre and sides as corners")
	for want, stats := range map[bool]head.Stats{
		true:  {Candidates: 2, LikeCorners: 2},
		false: {Candidates: 2, LikeCorners: 1, Overhanging: 1},
	} {
		found, open := FindContradiction(&stats)
		assert.Empty(t, found)
		assert.Equal(t, want, open)
	}
}
