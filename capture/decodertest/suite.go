// Package decodertest has the tests that every capture.Decoder passes.
package decodertest

import (
	"bytes"
	"errors"
	"io"
	"maps"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
)

// Subject is a kind of decoder.
type Subject struct {
	// Open opens a decoder of a codec, for images of any size.
	Open func(codec capture.Codec) (capture.Decoder, error)
	// Deinterlaces is set if the images of interlaced video are not FFmpeg's, which have the lines of both fields.
	Deinterlaces bool
	// Check, if not nil, is called when all that was opened is closed.
	Check func(t *testing.T)
}

// patience is how long a test waits for what must come.
const patience = time.Minute

// Run runs all tests.
func Run(t *testing.T, s Subject) {
	for _, test := range []struct {
		name string
		run  func(*testing.T, Subject)
	}{
		{"Pixels", testPixels},
		{"Latency", testLatency},
		{"Sizes", testSizes},
		{"AnotherCodec", testAnotherCodec},
		{"Interlaced", testInterlaced},
		{"UnusualProfile", testUnusualProfile},
		{"Damage", testDamage},
		{"Noise", testNoise},
		{"NoBuffer", testNoBuffer},
		{"Close", testClose},
		{"NothingLeft", testNothingLeft},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.run(t, s)
			if s.Check != nil {
				s.Check(t)
			}
		})
	}
}

// result is what came out of a decoder.
type result struct {
	images  map[time.Duration][]byte // as NV12 in host memory, by the time of their unit
	order   []time.Duration          // of the images
	damaged int
	lost    int
	err     error // after which the decoder had to be closed; nil at the end of the stream
}

// decode decodes all units and takes all images.
func (s *Subject) decode(t *testing.T, units []capture.Unit) result {
	t.Helper()
	d, err := s.Open(units[0].Codec)
	require.NoError(t, err)
	pool := &capture.Pool{}
	r := result{images: map[time.Duration][]byte{}}
	if background, ok := d.(capture.BackgroundDecoder); ok {
		r.background(t, background, pool, units)
	} else {
		r.foreground(t, d, pool, units)
	}
	r.lost = int(d.Lost())
	require.NoError(t, d.Close())
	assert.Zero(t, pool.Lent())
	require.NoError(t, pool.Close())
	return r
}

func (r *result) foreground(t *testing.T, d capture.Decoder, pool *capture.Pool, units []capture.Unit) {
	for i := range units {
		err := d.Submit(&units[i])
		if errors.Is(err, capture.ErrImage) {
			r.damaged++
		} else if err != nil {
			r.err = err
			return
		}
		if !r.drain(t, d, pool, units) {
			return
		}
	}
	require.NoError(t, d.End())
	require.False(t, r.drain(t, d, pool, units), "the end is reported")
}

func (r *result) background(t *testing.T, d capture.BackgroundDecoder, pool *capture.Pool, units []capture.Unit) {
	var feeding sync.WaitGroup
	var refused error
	feeding.Go(func() {
		for i := range units {
			refused = d.Submit(&units[i])
			if refused != nil {
				break
			}
		}
		_ = d.End() // Next returns the error
	})
	for r.drain(t, d, pool, units) && d.Await(patience) {
	}
	if r.err != nil {
		_ = d.Close()
	}
	feeding.Wait()
	if r.err == nil {
		r.err = refused
	}
}

// drain takes the images that are ready. It returns false at the end of the stream and after an error.
func (r *result) drain(t *testing.T, d capture.Decoder, pool *capture.Pool, units []capture.Unit) bool {
	for {
		f, found, err := d.Next(pool)
		switch {
		case errors.Is(err, capture.ErrImage):
			r.damaged++
		case errors.Is(err, io.EOF):
			return false
		case err != nil:
			r.err = err
			return false
		case !found:
			return true
		default:
			r.take(t, f, units)
		}
	}
}

// take copies a frame and checks that its times are those of a unit.
func (r *result) take(t *testing.T, f capture.Frame, units []capture.Unit) {
	defer f.Release()
	at := slices.IndexFunc(units, func(u capture.Unit) bool { return u.PTS == f.Position })
	if assert.GreaterOrEqual(t, at, 0, "no unit is of %v", f.Position) {
		assert.Equal(t, units[at].Received, f.Captured)
		assert.Equal(t, units[at].Camera, f.Time)
		assert.Equal(t, !units[at].Camera.IsZero(), f.CameraTime)
	}
	assert.False(t, r.images[f.Position] != nil, "the image of %v comes twice", f.Position)
	img := f.Image()
	require.NoError(t, img.Check())
	data, err := hostBytes(&img)
	require.NoError(t, err)
	r.images[f.Position] = data
	r.order = append(r.order, f.Position)
}

// hostBytes returns a copy of an image in host memory, without padding of its rows.
func hostBytes(img *engine.Image) ([]byte, error) {
	if !img.OnDevice() {
		return bytes.Clone(img.Data), nil
	}
	host, err := img.ToHost(make([]byte, img.HostBytes()))
	return host.Data, err
}

// displayed returns the times of units in the order of display.
func displayed(units []capture.Unit) []time.Duration {
	var all []time.Duration
	for i := range units {
		all = append(all, units[i].PTS)
	}
	slices.Sort(all)
	return all
}

// difference returns the largest and the mean difference of two images.
func difference(a, b []byte) (largest int, mean float64) {
	sum := 0
	for i := range a {
		d := max(int(a[i])-int(b[i]), int(b[i])-int(a[i]))
		largest = max(largest, d)
		sum += d
	}
	return largest, float64(sum) / float64(len(a))
}

// complete checks that all images came in order, equal to FFmpeg's within the tolerance.
func (r *result) complete(t *testing.T, v Video, tolerance int) {
	t.Helper()
	require.NoError(t, r.err)
	assert.Zero(t, r.damaged)
	assert.Zero(t, r.lost)
	require.Equal(t, displayed(v.Units), r.order)
	worst := 0
	for i, at := range r.order {
		require.Len(t, r.images[at], len(v.Images[i]))
		largest, _ := difference(r.images[at], v.Images[i])
		worst = max(worst, largest)
	}
	assert.LessOrEqual(t, worst, tolerance)
}

// testPixels: images are FFmpeg's, those of 10 bits within rounding, in the order of display and with the times of their units.
func testPixels(t *testing.T, s Subject) {
	for name, tolerance := range map[string]int{
		"baseline": 0, "bframes": 0, "slices": 0, "fullhd": 0, "hevc": 0, "opengop": 0, "tenbits": 1,
	} {
		t.Run(name, func(t *testing.T) {
			v := Load(t, name)
			for i := range v.Units {
				v.Units[i].PTS -= time.Second // a camera may begin before its clock does
				v.Units[i].Camera = time.Unix(1e9, int64(i))
			}
			r := s.decode(t, v.Units)
			r.complete(t, v, tolerance)
		})
	}
}

// testLatency: without B-frames each unit's image comes before the next unit is there.
func testLatency(t *testing.T, s Subject) {
	v := Load(t, "baseline")
	d, err := s.Open(capture.H264)
	require.NoError(t, err)
	pool := &capture.Pool{}
	for i := range v.Units {
		require.NoError(t, d.Submit(&v.Units[i]))
		if background, ok := d.(capture.BackgroundDecoder); ok {
			require.True(t, background.Await(patience), "image %d", i)
		}
		f, found, err := d.Next(pool)
		require.NoError(t, err)
		require.True(t, found, "image %d", i)
		assert.Equal(t, v.Units[i].PTS, f.Position)
		f.Release()
	}
	require.NoError(t, d.Close())
	require.NoError(t, pool.Close())
}

// joined is several videos, one after the other.
func joined(t *testing.T, names ...string) Video {
	var all Video
	for _, name := range names {
		v := Load(t, name)
		offset := time.Duration(len(all.Units)) * time.Second / rate
		for _, unit := range v.Units {
			unit.PTS += offset
			unit.Received += int64(len(all.Images))
			all.Units = append(all.Units, unit)
		}
		all.Images = append(all.Images, v.Images...)
	}
	return all
}

// testSizes: the resolution changes while the video runs.
func testSizes(t *testing.T, s Subject) {
	v := joined(t, "baseline", "slices", "bframes", "baseline")
	r := s.decode(t, v.Units)
	r.complete(t, v, 0)
}

// testAnotherCodec: a decoder refuses video of another codec, and decodes what came before.
func testAnotherCodec(t *testing.T, s Subject) {
	v := joined(t, "baseline", "hevc")
	r := s.decode(t, v.Units)
	require.ErrorIs(t, r.err, capture.ErrFormat)
	assert.ErrorContains(t, r.err, "the video changed from H.264 to H.265")
}

// testInterlaced: an image comes for each unit.
func testInterlaced(t *testing.T, s Subject) {
	v := Load(t, "interlaced")
	r := s.decode(t, v.Units)
	if !s.Deinterlaces {
		r.complete(t, v, 0)
		return
	}
	require.NoError(t, r.err)
	require.Equal(t, displayed(v.Units), r.order)
	for i, at := range r.order {
		_, mean := difference(r.images[at], v.Images[i])
		assert.Less(t, mean, 16.0, "image %d", i)
	}
}

// testUnusualProfile: video with other colours than 4:2:0 is decoded or refused.
func testUnusualProfile(t *testing.T, s Subject) {
	v := Load(t, "chroma422")
	r := s.decode(t, v.Units)
	if r.err != nil {
		require.ErrorIs(t, r.err, capture.ErrFormat)
		return
	}
	assert.Equal(t, displayed(v.Units), r.order)
}

// damages are what happens to the units of a video before the last key frame. Each reports whether the unit arrives.
var damages = map[string]func(number int, unit *capture.Unit) bool{
	"bytes": func(number int, unit *capture.Unit) bool {
		for i := 60; i < len(unit.Data) && number%5 == 3; i += 97 {
			unit.Data[i] ^= byte(i)
		}
		return true
	},
	"truncated": func(number int, unit *capture.Unit) bool {
		if number%5 == 3 {
			unit.Data = unit.Data[:len(unit.Data)/2]
		}
		return true
	},
	"cut to nothing": func(number int, unit *capture.Unit) bool {
		if number%5 == 3 {
			unit.Data = unit.Data[:min(len(unit.Data), number)]
		}
		return true
	},
	"packets": func(number int, unit *capture.Unit) bool { // a part from the middle
		if number%5 == 3 {
			third := len(unit.Data) / 3
			unit.Data = slices.Concat(unit.Data[:third], unit.Data[2*third:])
		}
		return true
	},
	"missing":       func(number int, _ *capture.Unit) bool { return number%5 != 3 },
	"key frame":     func(number int, _ *capture.Unit) bool { return number != gop },
	"late start":    func(number int, _ *capture.Unit) bool { return number > 2 },
	"all but a few": func(number int, _ *capture.Unit) bool { return number%7 == 0 },
}

// damaged returns a video's units with damage in front of the last key frame.
func damaged(v Video, name string) (units []capture.Unit) {
	last := len(v.Units) - gop
	for number, unit := range v.Units {
		unit.Data = bytes.Clone(unit.Data)
		if number >= last || damages[name](number, &unit) {
			units = append(units, unit)
		}
	}
	return units
}

// testDamage: damaged and missing units cost images, which are counted, never the decoder: what follows the next key frame is whole.
func testDamage(t *testing.T, s Subject) {
	for _, file := range []string{"bframes", "hevc", "slices"} {
		whole := Load(t, file)
		for _, name := range slices.Sorted(maps.Keys(damages)) {
			t.Run(file+" "+name, func(t *testing.T) {
				units := damaged(whole, name)
				r := s.decode(t, units)
				t.Logf("%d units, %d images, %d damaged, %d lost, %v", len(units), len(r.images), r.damaged, r.lost, r.err)
				require.NoError(t, r.err)
				images := 0
				for i := range units {
					if len(units[i].Data) > 8 { // more than a delimiter
						images++
					}
				}
				assert.Equal(t, images, len(r.images)+r.damaged+r.lost, "each unit gives an image, an error or is lost")
				times := displayed(whole.Units)
				for i := len(times) - gop; i < len(times); i++ {
					if assert.True(t, r.images[times[i]] != nil, "image %d", i) {
						largest, _ := difference(r.images[times[i]], whole.Images[i])
						assert.Zero(t, largest, "image %d", i)
					}
				}
			})
		}
	}
}

// testNoise: a stream of noise gives no image, and no error of the decoder but one that reports it.
func testNoise(t *testing.T, s Subject) {
	for _, file := range []string{"bframes", "hevc"} {
		v := Load(t, file)
		for number := range v.Units {
			data := v.Units[number].Data
			for i := 6; i < len(data); i++ {
				data[i] = byte(i*i*31 + number)
			}
		}
		r := s.decode(t, v.Units)
		t.Logf("%s: %d images, %d damaged, %d lost, %v", file, len(r.images), r.damaged, r.lost, r.err)
		require.NoError(t, r.err)
	}
}

// noBuffer is a lender whose buffers are all lent.
type noBuffer struct{}

func (noBuffer) Frame(engine.PixelFormat, int, int) (capture.Frame, error) {
	return capture.Frame{}, capture.ErrNoBuffer
}

func (noBuffer) DeviceFrame(capture.DeviceAlloc, engine.PixelFormat, int, int) (capture.Frame, error) {
	return capture.Frame{}, capture.ErrNoBuffer
}

// testNoBuffer: an image for which there is no buffer is lost, and decoding goes on.
func testNoBuffer(t *testing.T, s Subject) {
	v := Load(t, "baseline")
	d, err := s.Open(capture.H264)
	require.NoError(t, err)
	pool := &capture.Pool{}
	for i := range v.Units {
		require.NoError(t, d.Submit(&v.Units[i]))
		if background, ok := d.(capture.BackgroundDecoder); ok {
			require.True(t, background.Await(patience))
		}
		if i%2 == 0 {
			_, found, err := d.Next(noBuffer{})
			require.ErrorIs(t, err, capture.ErrNoBuffer)
			require.True(t, found)
			continue
		}
		f, found, err := d.Next(pool)
		require.NoError(t, err)
		require.True(t, found)
		assert.Equal(t, v.Units[i].PTS, f.Position)
		f.Release()
	}
	assert.Zero(t, d.Lost(), "the lender knows")
	require.NoError(t, d.Close())
	require.NoError(t, pool.Close())
}

// testClose: Close is idempotent, ends what waits, and leaves frames as they are.
func testClose(t *testing.T, s Subject) {
	v := Load(t, "baseline")
	d, err := s.Open(capture.H264)
	require.NoError(t, err)
	pool := &capture.Pool{}
	require.NoError(t, d.Submit(&v.Units[0]))
	background, ok := d.(capture.BackgroundDecoder)
	if ok {
		require.True(t, background.Await(patience))
	}
	f, found, err := d.Next(pool)
	require.NoError(t, err)
	require.True(t, found)
	var waiting sync.WaitGroup
	if ok {
		waiting.Go(func() { background.Await(24 * time.Hour) })
	}
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	waiting.Wait()
	require.Error(t, d.Submit(&v.Units[1]))
	_, found, _ = d.Next(pool)
	assert.False(t, found)
	img := f.Image()
	data, err := hostBytes(&img)
	require.NoError(t, err)
	largest, _ := difference(data, v.Images[0])
	assert.Zero(t, largest)
	require.NoError(t, pool.Close())
	f.Release()
}

// testNothingLeft: opening and closing leaves no goroutine.
func testNothingLeft(t *testing.T, s Subject) {
	v := Load(t, "bframes")
	before := 0
	for round := range 12 {
		d, err := s.Open(capture.H264)
		require.NoError(t, err)
		if round%2 == 0 { // closed with images that nobody has taken
			require.NoError(t, d.Submit(&v.Units[0]))
			require.NoError(t, d.Submit(&v.Units[1]))
		}
		require.NoError(t, d.Close())
		if round == 3 {
			before = runtime.NumGoroutine()
		}
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), before)
}
