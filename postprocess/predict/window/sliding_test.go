package window

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

// filter is a network that takes the mean of an element and its neighbours within a radius along every axis, with zeros around the input,
// as a convolution with padding does; each element comes out so many times along the last axis.
type filter struct {
	radius, times int64
	batches       []int64
}

func (*filter) Model() engine.Model { return engine.Model{} }

func (f *filter) Tensors(inputs ...engine.Tensor) (*engine.Result, error) {
	in := inputs[0]
	f.batches = append(f.batches, in.Shape[0])
	shape := append([]int64{}, in.Shape...)
	last := len(shape) - 1
	shape[last] *= f.times
	out := tensor(shape...)
	from, to := in.Float32s(), out.Float32s()
	sides := in.Shape[2:]
	block := engine.Elements(sides)
	at := make([]int64, len(sides))
	for first := int64(0); first < int64(len(from)); first += block {
		for i := range block {
			rest := i
			for d := len(sides) - 1; d >= 0; d-- {
				at[d], rest = rest%sides[d], rest/sides[d]
			}
			value := f.mean(from[first:first+block], sides, at)
			for k := range f.times {
				to[(first+i)*f.times+k] = value
			}
		}
	}
	return &engine.Result{Outputs: []engine.Tensor{out}}, nil
}

func (f *filter) mean(from []float32, sides, at []int64) float32 {
	sum, wide := float32(0), 2*f.radius+1
	around := int64(math.Round(math.Pow(float64(wide), float64(len(sides)))))
	for n := range around {
		place, inside, rest := int64(0), true, n
		for d := range sides {
			offset := at[d] + rest%wide - f.radius
			rest /= wide
			inside = inside && offset >= 0 && offset < sides[d]
			place = place*sides[d] + offset
		}
		if inside {
			sum += from[place]
		}
	}
	return sum / float32(around)
}

func tensor(shape ...int64) engine.Tensor {
	return engine.Tensor{Name: "x", Type: engine.Float32, Shape: shape, Data: make([]byte, 4*engine.Elements(shape))}
}

// TestAWindowGivesWhatTheWholeGives: over random sizes, windows and overlaps, as long as the margin is what the network's padding reaches,
// also where the window is larger than the input.
func TestAWindowGivesWhatTheWholeGives(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 5))
	for range 60 {
		volume := random.IntN(2) == 0
		shape := []int64{1 + random.Int64N(2), 1 + random.Int64N(2), 9 + random.Int64N(12), 9 + random.Int64N(12)}
		sides := []int64{6 + random.Int64N(4), 6 + random.Int64N(4)}
		if volume {
			shape, sides = append(shape, 8+random.Int64N(6)), append(sides, 6+random.Int64N(2))
		}
		for d := range sides {
			if random.IntN(4) == 0 {
				sides[d] += shape[d+2]
			}
		}
		in := tensor(shape...)
		for i := range in.Float32s() {
			in.Float32s()[i] = random.Float32()*2 - 1
		}
		network := &filter{radius: random.Int64N(2), times: 1 + random.Int64N(2)}
		whole, err := network.Tensors(in)
		require.NoError(t, err)
		s := Sliding{
			Model: network, Window: sides, Overlap: 0.34 + random.Float64()*0.3, Margin: network.radius, Batch: 1 + random.IntN(3),
			Blend: []Blend{Gaussian, Linear}[random.IntN(2)],
		}
		network.batches = nil
		got, err := s.Run(in)
		require.NoError(t, err)
		require.Equal(t, whole.Outputs[0].Shape, got[0].Shape)
		for i, want := range whole.Outputs[0].Float32s() {
			require.InDelta(t, want, got[0].Float32s()[i], 1e-5, "%v under %v", shape, sides)
		}
		for _, batch := range network.batches {
			require.EqualValues(t, s.Batch, batch, "every request is as large as the plan")
		}
	}
}

func TestSharesAddUp(t *testing.T) {
	for _, blend := range []Blend{Gaussian, Linear} {
		a, err := newAxis(100, 16, 0.5, -1, blend)
		require.NoError(t, err)
		sums := make([]float64, 100)
		for w, start := range a.starts {
			for i, share := range a.shares[w] {
				sums[start+int64(i)] += float64(share)
			}
		}
		for _, sum := range sums {
			require.InDelta(t, 1, sum, 1e-6)
		}
		require.Zero(t, a.shares[1][1], "of what the padding reaches")
		require.NotZero(t, a.shares[0][0], "at the border of the input that is the network's own way")
	}
}

func TestWhatCannotSlide(t *testing.T) {
	for want, s := range map[string]Sliding{
		"a window of 1 sides, must be 2 for images or 3 for volumes":                               {Window: []int64{4}},
		"windows that overlap by 1, must be 0 to 0.75":                                             {Window: []int64{4, 4}, Overlap: 1},
		`blend "none" must be gaussian or linear`:                                                  {Window: []int64{4, 4}, Blend: "none"},
		"a margin of 2 at both sides of a seam, where windows of 4 share 2 (overlap them more)":    {Window: []int64{4, 4}, Overlap: 0.5, Margin: 2},
		"slide: input [1 1 8 8] under a window of [4 4 4]: it needs a batch, channels and 3 sides": {Window: []int64{4, 4, 4}},
		"slide: input and outputs take 0 MiB, the bound is 0 (raise --memory, or cut the input)":   {Window: []int64{4, 4}, MaxMemory: 100},
		"slide: input and outputs take 3 MiB, the bound is 2 (raise --memory": {
			Window:    []int64{400, 400},
			MaxMemory: 2 << 20,
		},
		"padded with zeros for the window [400 400] takes 0 MiB (name a smaller window)": {
			Window:    []int64{400, 400},
			MaxMemory: 1 << 18,
		},
		"a window of [65536 65536], must be 268435456 elements at most": {Window: []int64{65536, 65536}},
	} {
		s.Model = &filter{times: 1}
		_, err := s.Run(tensor(1, 1, 8, 8))
		require.ErrorContains(t, err, want)
	}
	empty := Sliding{Model: &filter{times: 1}, Window: []int64{4, 4}}
	_, err := empty.Run(tensor(1, 1, 0, 8))
	require.ErrorContains(t, err, "slide: input [1 1 0 8] has no elements")
	_, err = (&Sliding{Model: &filter{times: 1}, Window: []int64{1 << 12, 1 << 16}}).Run(tensor(1, 1, 1<<17, 1))
	require.ErrorContains(t, err, "takes 32768 MiB (name a smaller window)")
}
