package nvdec

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/decodertest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// TestMain gives the tests a driver and a decoder library that run on any machine; see testdata/libnvcuvid.c for its videos.
func TestMain(m *testing.M) {
	if os.Getenv(fake.GPUEnvironment) != "" {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "nvdec")
	if err != nil {
		panic(err)
	}
	driver, err := fake.Build(dir, 0)
	if err != nil {
		panic(err)
	}
	library, err := fake.Compile(filepath.Join(dir, "libnvcuvid.so.1"), append([]string{
		"-std=gnu11", "-fvisibility=hidden", "-Wall", "-Werror", "testdata/libnvcuvid.c", driver,
	}, ffmpegFlags()...)...)
	if err != nil {
		panic(err)
	}
	os.Setenv(cuda.LibraryEnvironment, driver)
	os.Setenv(LibraryEnvironment, library)
	code := m.Run()
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// withoutFFmpeg is for machines on which this test binary runs only for its GPU.
var withoutFFmpeg = []string{"-DWITHOUT_FFMPEG"}

// ffmpegFlags are the compiler's flags with which the stand-in decodes real video, or those without FFmpeg's library.
func ffmpegFlags() []string {
	flags, err := exec.Command("pkg-config", "--cflags", "--libs", "libavcodec", "libavutil").Output()
	if err != nil {
		return withoutFFmpeg
	}
	return strings.Fields(string(flags))
}

// TestStandInDecoder: the decoder passes the tests of all decoders with a stand-in for the library.
func TestStandInDecoder(t *testing.T) {
	onStandIn(t)
	require.NotEqual(t, withoutFFmpeg, ffmpegFlags(), "libavcodec-dev is not installed: run make deps")
	t.Setenv("FAKE_NVCUVID", "large")
	decodertest.Run(t, decodertest.Subject{Open: open})
}

// open opens a decoder for the tests of all decoders.
func open(codec capture.Codec) (capture.Decoder, error) {
	return Open(Options{Codec: codec, MaxPixels: capture.DefaultMaxPixels})
}

// onStandIn skips a test that describes the stand-in's video.
func onStandIn(t *testing.T) {
	if os.Getenv(fake.GPUEnvironment) != "" {
		t.Skip("is about the stand-in")
	}
}

// moreSurfaces is MORE_SURFACES of decoder.c.
const moreSurfaces = 2

const small, wide = "S\x08\x06\x00\x01\x04", "S\x10\x06\x00\x01\x04" // 16x12 and 32x12 pixels, 4 surfaces

// openStandIn opens a decoder, which the test closes.
func openStandIn(t *testing.T, copied *atomic.Int64) *Decoder {
	onStandIn(t)
	d, err := Open(Options{Codec: capture.H264, MaxPixels: 32 * 12, Copied: copied})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, d.Close()) })
	return d
}

// seen is what a test sees of an image.
type seen struct {
	width, height int
	luma          byte
	position      time.Duration
}

// drain returns the images that are ready.
func drain(t *testing.T, d *Decoder, pool *capture.Pool) (all []seen, damaged int) {
	for {
		f, found, err := d.Next(pool)
		if errors.Is(err, capture.ErrImage) {
			damaged++
			continue
		}
		if errors.Is(err, io.EOF) {
			return all, damaged
		}
		require.NoError(t, err)
		if !found {
			return all, damaged
		}
		img := f.Image()
		require.NoError(t, img.Check())
		require.True(t, img.OnDevice())
		require.Equal(t, engine.NV12, img.Format)
		host, err := img.ToHost(make([]byte, img.HostBytes()))
		require.NoError(t, err)
		assert.Equal(t, host.Data[0], host.Data[f.Width*f.Height-1])
		assert.Equal(t, byte(128), host.Data[f.Width*f.Height])
		all = append(all, seen{f.Width, f.Height, host.Data[0], f.Position})
		f.Release()
	}
}

func submit(t *testing.T, d *Decoder, at time.Duration, data string) {
	require.NoError(t, d.Submit(&capture.Unit{Codec: capture.H264, Data: []byte(data), PTS: at, Received: 1}))
}

func TestOrderAndSizes(t *testing.T) {
	var copied atomic.Int64
	d := openStandIn(t, &copied)
	var pool capture.Pool
	defer pool.Close()
	submit(t, d, 1, small+"P1")
	submit(t, d, 2, "B2")
	submit(t, d, 3, "P3")
	submit(t, d, 4, "D4")
	submit(t, d, 5, wide+"P5") // while images of the other size wait
	all, damaged := drain(t, d, &pool)
	assert.Equal(t, []seen{{16, 12, '1', 1}, {16, 12, '3', 3}, {16, 12, '2', 2}, {32, 12, '5', 5}}, all)
	assert.Equal(t, 1, damaged)
	submit(t, d, 6, "B6")
	all, _ = drain(t, d, &pool)
	assert.Empty(t, all)
	require.NoError(t, d.Submit(&capture.Unit{Codec: capture.H264}))
	require.NoError(t, d.End())
	all, _ = drain(t, d, &pool)
	assert.Equal(t, []seen{{32, 12, '6', 6}}, all)
	assert.Equal(t, int64(3*16*12*3/2+2*32*12*3/2), copied.Load())
}

// TestImagesThatAreNotTaken: the GPU goes on, and the images are counted.
func TestImagesThatAreNotTaken(t *testing.T) {
	d := openStandIn(t, nil)
	var pool capture.Pool
	defer pool.Close()
	submit(t, d, 0, small)
	const images = 20
	for i := range images {
		submit(t, d, time.Duration(i), "P"+string(rune('a'+i)))
	}
	all, _ := drain(t, d, &pool)
	assert.Len(t, all, 4+moreSurfaces)
	assert.Equal(t, seen{16, 12, 'a' + images - 1, images - 1}, all[len(all)-1])
}

// noBuffer is a lender whose buffers are all lent.
type noBuffer struct{ capture.Pool }

func (*noBuffer) DeviceFrame(capture.DeviceAlloc, engine.PixelFormat, int, int) (capture.Frame, error) {
	return capture.Frame{}, capture.ErrNoBuffer
}

func TestNoBuffer(t *testing.T) {
	d := openStandIn(t, nil)
	submit(t, d, 0, small+"P1P2")
	for range 2 {
		_, found, err := d.Next(&noBuffer{})
		require.ErrorIs(t, err, capture.ErrNoBuffer)
		assert.True(t, found)
	}
	_, found, err := d.Next(&noBuffer{})
	require.NoError(t, err)
	assert.False(t, found)
}

func TestUnsupported(t *testing.T) {
	for unit, want := range map[string]string{
		"S\x08\x06\x00\x02\x04P1": "this GPU does not decode the video's profile to NV12 (8 bits, chroma format 2)",
		"S\x10\x07\x00\x01\x04P1": "video of 32x14 exceeds the limit of 384 pixels",
		"S\x02\x06\x00\x01\x04P1": "this GPU decodes 8x8 to 400x400 pixels, not 4x12",
		"S\x00\x00\x00\x01\x04P1": "video of 0x0",
	} {
		d := openStandIn(t, nil)
		err := d.Submit(&capture.Unit{Codec: capture.H264, Data: []byte(unit)})
		require.ErrorIs(t, err, capture.ErrFormat)
		assert.EqualError(t, err, "decode: NVDEC: "+want)
	}
	_, err := Open(Options{Codec: capture.MJPEG})
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.EqualError(t, err, "open: NVDEC is used for H.264 and H.265, not for MJPEG")
	t.Setenv("FAKE_NVCUVID", "unsupported")
	_, err = Open(Options{Codec: capture.H264})
	assert.EqualError(t, err, "open: NVDEC: this GPU has no decoder for the codec")
}

// TestFailures: whatever fails gives an error with the driver's text, and nothing is left behind, which the stand-ins check.
func TestFailures(t *testing.T) {
	onStandIn(t)
	for function, want := range map[string]string{
		"cuvidGetDecoderCaps":    "open: NVDEC: ask for the decoder's abilities: out of memory (2)",
		"cuvidCreateVideoParser": "open: NVDEC: open a decoder: out of memory (2)",
		"cuvidCreateDecoder":     "decode: NVDEC: create a decoder: out of memory (2)",
		"cuvidParseVideoData":    "decode: NVDEC: read an access unit: out of memory (2)",
		"cuvidDecodePicture":     "decode: NVDEC: decode an image: out of memory (2)",
		"cuvidMapVideoFrame64":   "decode: NVDEC: map an image: out of memory (2)",
	} {
		t.Run(function, func(t *testing.T) {
			t.Setenv("FAKE_NVCUVID", "fail="+function+":2")
			var pool capture.Pool
			defer pool.Close()
			d, err := Open(Options{Codec: capture.H264, MaxPixels: 384})
			if err == nil {
				defer func() { require.NoError(t, d.Close()) }()
				err = d.Submit(&capture.Unit{Codec: capture.H264, Data: []byte(small + "P1")})
			}
			if err == nil {
				_, _, err = d.Next(&pool)
			}
			require.ErrorIs(t, err, capture.ErrUnavailable)
			assert.EqualError(t, err, want)
			assert.Zero(t, pool.Lent())
		})
	}
}

// TestFramesOutliveTheirDecoder: the pool frees their memory.
func TestFramesOutliveTheirDecoder(t *testing.T) {
	d := openStandIn(t, nil)
	var pool capture.Pool
	submit(t, d, 0, small+"P7")
	f, found, err := d.Next(&pool)
	require.NoError(t, err)
	require.True(t, found)
	require.NoError(t, d.Close())
	img := f.Image()
	host, err := img.ToHost(make([]byte, img.HostBytes()))
	require.NoError(t, err)
	assert.Equal(t, byte('7'), host.Data[0])
	require.NoError(t, pool.Close())
	f.Release()
	require.ErrorIs(t, d.Submit(&capture.Unit{Data: []byte("P1")}), errClosed)
	_, found, err = d.Next(&pool)
	require.NoError(t, err)
	assert.False(t, found)
}
