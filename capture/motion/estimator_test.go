package motion_test

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/engine"
)

// wall is an image without end: waves of many lengths and directions.
type wall struct{ waves [14][4]float64 }

func newWall() *wall {
	w, random := &wall{}, rand.New(rand.NewPCG(1, 9))
	for i := range w.waves {
		length, angle := 25+120*random.Float64(), 2*math.Pi*random.Float64()
		sin, cos := math.Sincos(angle)
		w.waves[i] = [4]float64{2 * math.Pi * cos / length, 2 * math.Pi * sin / length, 2 * math.Pi * random.Float64(), 6 + 12*random.Float64()}
	}
	return w
}

func (w *wall) grey(x, y float64) byte {
	sum := 128.0
	for i := range w.waves {
		v := &w.waves[i]
		sum += v[3] * math.Sin(v[0]*x+v[1]*y+v[2])
	}
	return byte(max(0, min(255, sum)))
}

const wide, high = 480, 270

// seen draws the wall as it is after the camera's motion, with noise, and with blocks of something else that moves by itself.
func (w *wall) seen(m motion.Affine, random *rand.Rand, blocks []motion.Box) engine.Image {
	im := engine.Image{Data: make([]byte, wide*high), Width: wide, Height: high, Stride: wide, Format: engine.GRAY8}
	determinant := m.A*m.E - m.B*m.D
	for y := range high {
		for x := range wide {
			u, v := float64(x)+0.5-m.C, float64(y)+0.5-m.F
			grey := int(w.grey((m.E*u-m.B*v)/determinant, (m.A*v-m.D*u)/determinant)) + random.IntN(5) - 2
			im.Data[y*wide+x] = byte(max(0, min(255, grey)))
		}
	}
	for _, b := range blocks {
		for y := max(0, int(b.Y1)); y < min(high, int(b.Y2)); y++ {
			for x := max(0, int(b.X1)); x < min(wide, int(b.X2)); x++ {
				im.Data[y*wide+x] = byte((x - int(b.X1)) * (y - int(b.Y1)) / 9)
			}
		}
	}
	return im
}

// still is the map of a camera that does not move.
var still = motion.Affine{A: 1, E: 1}

func TestEstimate(t *testing.T) {
	wall, random := newWall(), rand.New(rand.NewPCG(3, 4))
	for name, want := range map[string]motion.Affine{
		"still":  still,
		"pan":    {A: 1, C: 18.5, E: 1, F: -6.25},
		"roll":   {A: 0.9998, B: -0.02, C: 4, D: 0.02, E: 0.9998, F: -3.5},
		"zoom":   {A: 1.04, C: -9.5, E: 1.04, F: -5},
		"tremor": {A: 1, C: 0.4, E: 1, F: 0.3},
	} {
		t.Run(name, func(t *testing.T) {
			for _, crowded := range []bool{false, true} {
				var before, after []motion.Box
				if crowded { // a sixth of the image goes another way
					for i := range 4 {
						x := float32(60 + 100*i)
						before = append(before, motion.Box{X1: x, Y1: 30, X2: x + 28, Y2: 240})
						after = append(after, motion.Box{X1: x - 10, Y1: 30, X2: x + 18, Y2: 240})
					}
				}
				var camera motion.Estimator
				first, second := wall.seen(still, random, before), wall.seen(want, random, after)
				_, ok := camera.Estimate(&first, nil)
				require.False(t, ok, "one image has no motion")
				got, ok := camera.Estimate(&second, before)
				require.True(t, ok)
				for _, p := range [][2]float64{{0, 0}, {wide, 0}, {wide / 2, high / 2}, {0, high}, {wide, high}} {
					assert.InDelta(t, want.A*p[0]+want.B*p[1]+want.C, got.A*p[0]+got.B*p[1]+got.C, 0.8, "%v %+v", p, got)
					assert.InDelta(t, want.D*p[0]+want.E*p[1]+want.F, got.D*p[0]+got.E*p[1]+got.F, 0.8, "%v %+v", p, got)
				}
			}
		})
	}
}

func TestEstimateNeedsCorners(t *testing.T) {
	flat := func(width, height int) engine.Image {
		return engine.Image{Data: make([]byte, width*height), Width: width, Height: height, Stride: width, Format: engine.GRAY8}
	}
	var camera motion.Estimator
	moved := func(im engine.Image, hidden ...motion.Box) bool {
		_, ok := camera.Estimate(&im, hidden)
		return ok
	}
	require.False(t, moved(flat(wide, high)))
	require.False(t, moved(flat(wide, high)), "nothing to hold on to")
	require.False(t, moved(flat(8, 8)))
	require.False(t, moved(flat(8, 8)), "too small for a window")
	random, wall := rand.New(rand.NewPCG(3, 4)), newWall()
	require.False(t, moved(wall.seen(still, random, nil)), "an image of another size is a first one")
	require.False(t, moved(wall.seen(still, random, nil), motion.Box{X2: wide, Y2: high}), "everything moves by itself")
	require.True(t, moved(wall.seen(still, random, nil)))
	other := newWall()
	other.waves[0][2]++
	for i := range other.waves {
		other.waves[i][0], other.waves[i][1] = other.waves[i][1], -other.waves[i][0]
	}
	require.False(t, moved(other.seen(still, random, nil)), "a cut to another place is no motion")
	camera.Reset()
	require.False(t, moved(other.seen(still, random, nil)))
	broken := flat(wide, high)
	broken.Data = broken.Data[:10]
	require.False(t, moved(broken))
}

func TestEstimateNoAllocations(t *testing.T) {
	wall, random := newWall(), rand.New(rand.NewPCG(3, 4))
	images := []engine.Image{wall.seen(still, random, nil), wall.seen(motion.Affine{A: 1, C: 5, E: 1, F: 3}, random, nil)}
	var camera motion.Estimator
	n := 0
	assert.Zero(t, testing.AllocsPerRun(20, func() {
		camera.Estimate(&images[n%2], nil)
		n++
	}))
}

func BenchmarkEstimate1080p(b *testing.B) {
	wall, random := newWall(), rand.New(rand.NewPCG(3, 4))
	var images []engine.Image
	for i := range 2 {
		small := wall.seen(motion.Affine{A: 1, C: float64(5 * i), E: 1, F: 3}, random, nil)
		large := engine.Image{Data: make([]byte, 3*1920*1080), Width: 1920, Height: 1080, Stride: 3 * 1920, Format: engine.BGR}
		for p := range 1920 * 1080 {
			grey := small.Data[p/1920/4*wide+p%1920/4]
			large.Data[3*p], large.Data[3*p+1], large.Data[3*p+2] = grey, grey, grey
		}
		images = append(images, large)
	}
	var camera motion.Estimator
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	before := cpuTime(b)
	for i := 0; b.Loop(); i++ {
		camera.Estimate(&images[i%2], nil)
	}
	b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e3, "cpu-us/op")
}
