package motion_test

import (
	"fmt"
	"math/rand/v2"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

const rate = 10 // frames per second

// video is a still image with the noise of a sensor, over which a test draws.
type video struct {
	still, now engine.Image
	random     *rand.Rand
	noise      []byte // 0 to 2*spread, a long row to begin anywhere in
	spread     int
	at         int64
}

func newVideo(still engine.Image, spread int) *video {
	f := &video{still: still, now: still, random: rand.New(rand.NewPCG(1, 2)), spread: spread, at: int64(time.Hour)}
	f.now.Data = make([]byte, len(still.Data))
	f.noise = make([]byte, 1<<20)
	for i := range f.noise {
		f.noise[i] = byte((f.random.IntN(2*spread+1) + f.random.IntN(2*spread+1)) / 2)
	}
	return f
}

// next gives the still image with other noise.
func (f *video) next() *engine.Image {
	f.at += int64(time.Second) / rate
	from := f.random.IntN(1 << 19)
	for i, value := range f.still.Data {
		f.now.Data[i] = byte(min(255, max(0, int(value)+int(f.noise[(from+i)&(1<<20-1)])-f.spread)))
	}
	return &f.now
}

func grey(width, height int) engine.Image {
	im := engine.Image{Width: width, Height: height, Stride: 3 * width, Format: engine.BGR, Data: make([]byte, 3*width*height)}
	for i := range im.Data {
		im.Data[i] = byte(90 + i%width*40/width)
	}
	return im
}

// square draws one that is so much lighter.
func square(im *engine.Image, x, y, side, lighter int) {
	for row := max(y, 0); row < min(y+side, im.Height); row++ {
		line := im.Data[row*im.Stride:]
		for i := 3 * max(x, 0); i < 3*min(x+side, im.Width); i++ {
			line[i] = byte(min(255, int(line[i])+lighter))
		}
	}
}

func gate(s motion.Settings) *motion.Gate {
	g := new(motion.Gate)
	s.Enabled = true
	g.Set(s)
	return g
}

// stills counts the still ones of so many images.
func stills(g *motion.Gate, f *video, images int, draw func(number int, im *engine.Image)) (count int) {
	for i := range images {
		im := f.next()
		if draw != nil {
			draw(i, im)
		}
		if g.Still(*im, f.at) {
			count++
		}
	}
	return count
}

func TestStillScene(t *testing.T) {
	for _, spread := range []int{1, 4, 12} {
		f := newVideo(grey(320, 180), spread)
		g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
		stills(g, f, 3*rate, nil)
		assert.Equal(t, 40*rate, stills(g, f, 40*rate, nil), "noise of %d", spread)
	}
}

func TestGateDetectsMotion(t *testing.T) {
	f := newVideo(grey(640, 360), 3)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	stills(g, f, 10*rate, nil)
	seen := 0
	for i := range 5 * rate {
		im := f.next()
		square(im, 40+6*i, 150, 24, 30)
		if !g.Still(*im, f.at) {
			seen++
		}
	}
	assert.Equal(t, 5*rate, seen, "from its first image on")
	// It stays: at first it is motion, later part of the background.
	rest := func(_ int, im *engine.Image) { square(im, 40+6*5*rate, 150, 24, 30) }
	assert.Less(t, stills(g, f, rate/2, rest), rate/2, "what comes to rest is looked at once more")
	stills(g, f, 20*rate, rest)
	assert.Equal(t, rate, stills(g, f, rate, rest))
	// It goes.
	assert.Zero(t, stills(g, f, rate/2, nil), "what has gone is seen")
}

func TestGateAnalysesRegionOnly(t *testing.T) {
	for _, format := range []engine.PixelFormat{engine.BGR, engine.NV12, engine.YUYV} {
		im := engine.Image{Width: 640, Height: 360, Stride: format.RowBytes(640), Format: format}
		im.Data = make([]byte, im.Stride*format.Rows(360))
		f := newVideo(im, 0)
		for i := range f.still.Data {
			f.still.Data[i] = 100
		}
		g := gate(motion.Settings{Sensitivity: 1, X: 0.5, Y: 0.5, Width: 0.5, Height: 0.5})
		stills(g, f, 3*rate, nil)
		bright := func(x, y int) func(int, *engine.Image) {
			return func(n int, im *engine.Image) {
				for row := y; row < y+60; row++ {
					line := im.Data[row*im.Stride:][format.RowBytes(x):format.RowBytes(x+60)]
					for i := range line {
						line[i] = byte(200 + n)
					}
				}
			}
		}
		assert.Equal(t, rate, stills(g, f, rate, bright(100, 60)), "%v: outside", format)
		assert.Zero(t, stills(g, f, rate, bright(400, 240)), "%v: inside", format)
	}
}

// TestGateRegionOfDeviceImage: only the region of an image in a GPU's memory is analysed, and copied.
func TestGateRegionOfDeviceImage(t *testing.T) {
	const width, height = 640, 360
	memory := &enginetest.DeviceMemory{Data: make([]byte, width*height*3/2)}
	img := memory.Image(engine.NV12, width, height, width)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity, X: 0.5, Y: 0.5, Width: 0.5, Height: 0.5})
	at := int64(time.Hour)
	still := func() bool {
		at += int64(time.Second) / rate
		return g.Still(img, at)
	}
	for range 10 * rate {
		still()
	}
	assert.True(t, still())
	fill := func(x, y int, value byte) {
		for row := y; row < y+60; row++ {
			for column := x; column < x+60; column++ {
				memory.Data[row*width+column] = value
			}
		}
	}
	fill(100, 60, 200)
	assert.True(t, still(), "outside")
	fill(400, 240, 200)
	assert.False(t, still(), "inside")
	before := memory.Copied
	still()
	assert.LessOrEqual(t, memory.Copied-before, width/2*height/2)
}

func TestDisabledGateReportsMotion(t *testing.T) {
	f := newVideo(grey(64, 64), 1)
	assert.Zero(t, stills(new(motion.Gate), f, 5*rate, nil))
	g := gate(motion.Settings{})
	g.Set(motion.Settings{})
	assert.Zero(t, stills(g, f, 5*rate, nil))
}

func TestChangeOfLightIsMotionOnce(t *testing.T) {
	f := newVideo(grey(320, 180), 2)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	stills(g, f, 5*rate, nil)
	for i := range f.still.Data {
		f.still.Data[i] += 60
	}
	assert.Zero(t, stills(g, f, rate/2, nil))
	stills(g, f, 3*rate, nil)
	assert.Equal(t, 10*rate, stills(g, f, 10*rate, nil))
}

func TestInvalidImageIsNotStill(t *testing.T) {
	f := newVideo(grey(320, 180), 2)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	require.Positive(t, stills(g, f, 5*rate, nil))
	im := f.now
	im.Data = im.Data[:10]
	assert.False(t, g.Still(im, f.at))
}

// Parts of the demo belt slide one after another over a belt that stands still, with pauses between. None of 500 may come in unseen.
func TestGateMissesNoPartOfDemoBelt(t *testing.T) {
	const entries = 500
	s := scene.Scene{Width: 320, Height: 180, Rate: rate, Seed: 5}
	require.NoError(t, s.Open())
	drawn := engine.Image{Width: s.Width, Height: s.Height, Stride: 3 * s.Width, Format: engine.BGR, Data: make([]byte, 3*s.Width*s.Height)}
	parts, err := s.Draw(0, drawn.Data, drawn.Stride, nil)
	require.NoError(t, err)
	still := drawn
	still.Data = append([]byte(nil), drawn.Data...)
	f := newVideo(still, 3)
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	present := map[int64]int{} // images in which a part was visible, and images that were not still
	looked := map[int64]int{}
	total, inferred, idle := 0, 0, 0
	for number := 1; len(present) < entries; number++ {
		parts, err = s.Draw(number, drawn.Data, drawn.Stride, parts[:0])
		require.NoError(t, err)
		im := f.next()
		moving := number/(4*rate)%2 == 0 // parts come for 4 s, none for 4 s
		for _, p := range parts {
			if !moving {
				break
			}
			x0, y0, x1, y1 := max(0, int(p.X0)), max(0, int(p.Y0)), min(s.Width, int(p.X1)), min(s.Height, int(p.Y1))
			for y := y0; y < y1; y++ {
				copy(im.Data[y*im.Stride+3*x0:y*im.Stride+3*x1], drawn.Data[y*im.Stride+3*x0:])
			}
			if p.Visible > 0.5 {
				present[p.ID]++
			}
		}
		isStill := g.Still(*im, f.at)
		total++
		if !isStill {
			inferred++
		}
		for _, p := range parts {
			if moving && p.Visible > 0.5 && !isStill {
				looked[p.ID]++
			}
		}
		if !moving && isStill {
			idle++
		}
	}
	missed, late := 0, 0
	for id, images := range present {
		if looked[id] == 0 {
			missed++
		}
		late += images - looked[id]
	}
	t.Logf("%d entries, %d missed, %d of their images not looked at; %d of %d images looked at, %d still", len(present), missed, late,
		inferred, total, idle)
	assert.Zero(t, missed)
	assert.Zero(t, late, "a part is looked at in every image")
	assert.Positive(t, idle)
}

func TestStillNoAllocations(t *testing.T) {
	g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
	im := grey(1920, 1080)
	assert.Zero(t, testing.AllocsPerRun(20, func() { g.Still(im, 1) }))
}

func FuzzStill(f *testing.F) {
	f.Add(uint8(0), 64, 48, 200, 9600, 0.1, 0.1, 0.5, 0.5)
	f.Add(uint8(2), 2, 2, 2, 6, 0.9, 0.9, 0.2, 0.2)
	f.Fuzz(func(t *testing.T, format uint8, width, height, stride, bytes int, x, y, w, h float64) {
		if !(x >= 0 && y >= 0 && w >= 0 && h >= 0 && x+w <= 1 && y+h <= 1) {
			return // refused by the configuration
		}
		g := gate(motion.Settings{Sensitivity: 0.5, X: x, Y: y, Width: w, Height: h})
		im := engine.Image{Width: width, Height: height, Stride: stride, Format: engine.PixelFormat(format)}
		im.Data = make([]byte, min(max(bytes, 0), 1<<20))
		for i := range 15 {
			assert.False(t, g.Still(im, int64(i)))
		}
	})
}

// cpuTime returns the CPU time of this thread in nanoseconds, which does not depend on the load of the machine.
func cpuTime(b *testing.B) int64 {
	var spent unix.Timespec
	require.NoError(b, unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent))
	return spent.Nano()
}

func BenchmarkStill1080p(b *testing.B) {
	for _, format := range []engine.PixelFormat{engine.BGR, engine.NV12} {
		b.Run(fmt.Sprint(format), func(b *testing.B) {
			frames := make([]engine.Image, 8) // more than the caches hold
			for i := range frames {
				frames[i] = engine.Image{Width: 1920, Height: 1080, Stride: format.RowBytes(1920), Format: format}
				frames[i].Data = make([]byte, frames[i].Stride*format.Rows(1080))
				for j := range frames[i].Data {
					frames[i].Data[j] = byte(100 + (j*7+i)%5)
				}
			}
			g := gate(motion.Settings{Sensitivity: motion.DefaultSensitivity})
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			before := cpuTime(b)
			for i := 0; b.Loop(); i++ {
				g.Still(frames[i%len(frames)], int64(i)*int64(time.Second/30))
			}
			b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e3, "cpu-us/op")
		})
	}
}
