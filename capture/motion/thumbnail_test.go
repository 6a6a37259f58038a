package motion_test

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/motion"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
)

var formats = []engine.PixelFormat{engine.BGR, engine.BGRx, engine.NV12, engine.YUYV, engine.GRAY8}

// drawn makes an image whose grey values are those of shade, with rows that are padded by rubbish.
func drawn(format engine.PixelFormat, width, height int, shade func(x, y int) byte) engine.Image {
	const padding = 6
	im := engine.Image{Width: width, Height: height, Stride: format.RowBytes(width) + padding, Format: format}
	im.Data = make([]byte, im.Stride*format.Rows(height))
	for i := range im.Data {
		im.Data[i] = byte(i * 7)
	}
	for y := range height {
		row := im.Data[y*im.Stride:]
		for x := range width {
			value := shade(x, y)
			switch format {
			case engine.BGR:
				row[3*x], row[3*x+1], row[3*x+2] = value, value, value
			case engine.BGRx:
				row[4*x], row[4*x+1], row[4*x+2] = value, value, value
			case engine.YUYV:
				row[2*x] = value
			default:
				row[x] = value
			}
		}
	}
	return im
}

func TestThumbnailsOfAllFormatsAreEqual(t *testing.T) {
	shade := func(x, y int) byte { return byte(x*160/1280 + y*90/720) }
	for _, format := range formats {
		t.Run(format.String(), func(t *testing.T) {
			im := drawn(format, 1280, 720, shade)
			small, err := new(motion.Reducer).Reduce(&im)
			require.NoError(t, err)
			require.Equal(t, []int{160, 90, 160 * 90}, []int{small.Width, small.Height, len(small.Pix)})
			assert.InDelta(t, 8, small.ScaleX, 1e-9)
			assert.InDelta(t, 8, small.ScaleY, 1e-9)
			for y := range small.Height {
				for x := range small.Width {
					require.InDelta(t, x+y, int(small.Pix[y*small.Width+x]), 1, "%d,%d", x, y)
				}
			}
		})
	}
}

func TestThumbnailKeepsBlackAndWhite(t *testing.T) {
	for _, format := range formats {
		for _, value := range []byte{0, 1, 127, 254, 255} {
			for samples := 1; samples <= 5; samples++ {
				im := drawn(format, 334, 202, func(int, int) byte { return value })
				small, err := (&motion.Reducer{Samples: samples, LongestSide: 40}).Reduce(&im)
				require.NoError(t, err)
				for _, pixel := range small.Pix {
					require.Equal(t, value, pixel, "%v with %d samples", format, samples)
				}
			}
		}
	}
}

func TestThumbnailSizes(t *testing.T) {
	for _, c := range []struct{ width, height, longest, wantWidth, wantHeight int }{
		{1920, 1080, 0, 160, 90},
		{1080, 1920, 0, 90, 160},
		{640, 480, 320, 320, 240},
		{64, 48, 160, 64, 48}, // never larger than the source
		{1, 1, 160, 1, 1},
		{32768, 2, 160, 160, 1},
	} {
		im := drawn(engine.GRAY8, c.width, c.height, func(int, int) byte { return 9 })
		small, err := (&motion.Reducer{LongestSide: c.longest}).Reduce(&im)
		require.NoError(t, err)
		assert.Equal(t, []int{c.wantWidth, c.wantHeight}, []int{small.Width, small.Height}, fmt.Sprint(c))
	}
}

func TestReducerFollowsChangedSources(t *testing.T) {
	var r motion.Reducer
	for i, format := range formats {
		im := drawn(format, 320+32*i, 240, func(int, int) byte { return byte(i) })
		small, err := r.Reduce(&im)
		require.NoError(t, err)
		assert.EqualValues(t, i, small.Pix[0])
		assert.InDelta(t, float64(im.Width)/float64(small.Width), small.ScaleX, 1e-9)
	}
}

func TestReduceRefusesInvalidImages(t *testing.T) {
	im := drawn(engine.BGR, 64, 48, func(int, int) byte { return 1 })
	im.Data = im.Data[:100]
	_, err := new(motion.Reducer).Reduce(&im)
	require.ErrorIs(t, err, engine.ErrShape)
}

func TestReduceNoAllocations(t *testing.T) {
	for _, format := range formats {
		im := drawn(format, 1920, 1080, func(x, y int) byte { return byte(x ^ y) })
		var r motion.Reducer
		assert.Zero(t, testing.AllocsPerRun(10, func() { _, _ = r.Reduce(&im) }), format)
	}
}

func FuzzReduce(f *testing.F) {
	f.Add(uint8(0), 64, 48, 200, 9300, 10, 2)
	f.Add(uint8(2), 2, 2, 2, 6, 1, 1)
	f.Fuzz(func(t *testing.T, format uint8, width, height, stride, bytes, longest, samples int) {
		im := engine.Image{Width: width, Height: height, Stride: stride, Format: engine.PixelFormat(format)}
		im.Data = make([]byte, min(max(bytes, 0), 1<<20))
		small, err := (&motion.Reducer{LongestSide: min(longest, 4096), Samples: samples}).Reduce(&im)
		if err != nil {
			require.Error(t, im.Check())
			return
		}
		require.Len(t, small.Pix, small.Width*small.Height)
	})
}

func BenchmarkReduce1080p(b *testing.B) {
	for _, format := range formats {
		for _, samples := range []int{2, 4} {
			b.Run(fmt.Sprintf("%v/samples=%d", format, samples), func(b *testing.B) {
				frames := make([]engine.Image, 8) // more than the caches hold
				for i := range frames {
					frames[i] = drawn(format, 1920, 1080, func(x, y int) byte { return byte(x + y + i) })
				}
				r := motion.Reducer{Samples: samples}
				runtime.LockOSThread()
				defer runtime.UnlockOSThread()
				before := cpuTime(b)
				for i := 0; b.Loop(); i++ {
					_, _ = r.Reduce(&frames[i%len(frames)])
				}
				b.ReportMetric(float64(cpuTime(b)-before)/float64(b.N)/1e3, "cpu-us/op")
			})
		}
	}
}

// A thumbnail of an image in a GPU's memory is that of the same image in host memory; of even rows only those that are sampled are copied.
func TestThumbnailOfDeviceImage(t *testing.T) {
	for size, copied := range map[[2]int]int{{1920, 1080}: 1920 * 180, {640, 360}: 640 * 180, {322, 242}: 322 * 242, {4, 2}: 4 * 2} {
		width, height := size[0], size[1]
		memory := &enginetest.DeviceMemory{Data: make([]byte, (width+32)*height*3/2)}
		for i := range memory.Data {
			memory.Data[i] = byte(i * i >> 7)
		}
		onDevice := memory.Image(engine.NV12, width, height, width+32)
		onHost := onDevice
		onHost.Data, onHost.Device = memory.Data, engine.Device{}
		var a, b motion.Reducer
		want, err := a.Reduce(&onHost)
		require.NoError(t, err)
		for range 2 {
			got, err := b.Reduce(&onDevice)
			require.NoError(t, err)
			assert.Equal(t, want, got)
		}
		assert.Equal(t, 2*copied, memory.Copied, "%v", size)
	}
}
