package gstreamer

import (
	"bytes"
	"context"
	"errors"
	"fmt"
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
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// patience is how long a test waits for what must come.
const patience = time.Minute

// needGStreamer loads GStreamer.
func needGStreamer(t testing.TB) {
	require.NoError(t, Available())
}

func openPipeline(t testing.TB, description string) *Pipeline {
	needGStreamer(t)
	p, err := Open(t.Context(), description, Options{})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Close()) })
	return p
}

func newPool(t testing.TB) *capture.Pool {
	pool := &capture.Pool{}
	t.Cleanup(func() {
		assert.Zero(t, pool.Lent())
		require.NoError(t, pool.Close())
	})
	return pool
}

func TestMissingLibraries(t *testing.T) {
	if Version() != "" {
		t.Skip("GStreamer is loaded already: run this test alone")
	}
	err := load("/nonexistent/")
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.Equal(t, "open: GStreamer cannot be used: /nonexistent/libglib-2.0.so.0: cannot open shared object file: No such file or directory "+
		"(install gstreamer1.0-plugins-base, gstreamer1.0-plugins-good, gstreamer1.0-plugins-bad and gstreamer1.0-libav)", err.Error())
	assert.Empty(t, Version())
}

func TestVersion(t *testing.T) {
	needGStreamer(t)
	assert.Regexp(t, `^GStreamer 1\.\d+\.\d+`, Version())
}

func TestErrors(t *testing.T) {
	needGStreamer(t)
	const common = "the elements have no format in common; gst-inspect-1.0 lists what each accepts"
	const format = "put 'videoconvert ! video/x-raw,format=NV12' (or BGR, BGRx, YUY2, GRAY8) before the appsink"
	none := filepath.Join(t.TempDir(), "none.mp4")
	text := filepath.Join(t.TempDir(), "text.mp4")
	require.NoError(t, os.WriteFile(text, []byte("not a video"), 0o600))
	for description, want := range map[string]struct {
		kind error
		text string
	}{
		"videotestsrc ! nosuchelement ! appsink": {capture.ErrUnavailable, `open: no element "nosuchelement"`},
		"videotestsrc pattern=none ! appsink": {
			capture.ErrUnavailable, `open: could not set property "pattern" in element "videotestsrc" to "none"`,
		},
		"videotestsrc colour=1 ! appsink": {capture.ErrUnavailable, `open: no property "colour" in element "videotestsrc"`},
		"videotestsrc ! ! appsink":        {capture.ErrUnavailable, "open: syntax error"},
		"videotestsrc ! audioconvert ! appsink": {
			capture.ErrFormat, "open: could not link videotestsrc to audioconvert (" + common + ")",
		},
		"videotestsrc ! fakesink": {capture.ErrUnavailable, "open: the pipeline has no appsink"},
		"appsink":                 {capture.ErrUnavailable, "open: a single element is not a pipeline"},
		"filesrc location=" + none + " ! decodebin ! appsink": {
			capture.ErrNotFound, `open: filesrc: Resource not found: No such file "` + none + `"`,
		},
		"filesrc location=" + text + " ! qtdemux ! avdec_h264 ! videoconvert ! appsink": {
			capture.ErrUnavailable, "read: qtdemux: This file is invalid and cannot be played: atom has bogus size",
		},
		"videotestsrc ! video/x-raw,format=Y42B ! appsink": {
			capture.ErrFormat, "read: the pipeline ends in pixel format Y42B (" + format + ")",
		},
		"videotestsrc ! video/x-raw,format=Y42B ! appsink caps=video/x-raw,format=Y42B": {
			capture.ErrFormat, "read: the pipeline ends in pixel format Y42B (" + format + ")",
		},
		"videotestsrc ! jpegenc ! appsink": {
			capture.ErrFormat, "read: the pipeline ends in pixel format image/jpeg (" + format + ")",
		},
		"filesrc name=cam1 location=" + none + " ! decodebin ! appsink": {
			capture.ErrNotFound, `open: cam1: Resource not found: No such file "` + none + `"`,
		},
		"tcpclientsrc host=127.0.0.1 port=1 ! multipartdemux ! jpegdec ! appsink": {
			capture.ErrUnavailable, "tcpclientsrc: ",
		},
		"rtspsrc location=rtsp://admin:secret@127.0.0.1:1/live?token=hidden ! decodebin ! appsink": {
			capture.ErrUnavailable, "rtspsrc: Could not open resource for reading and writing: Failed to connect",
		},
	} {
		t.Run(description, func(t *testing.T) {
			p, err := Open(t.Context(), description, Options{})
			if err == nil {
				_, err = p.Next(newPool(t), patience)
				require.NoError(t, p.Close())
			}
			var typed *capture.Error
			require.ErrorAs(t, err, &typed)
			require.ErrorIs(t, err, want.kind, err.Error())
			assert.Contains(t, err.Error(), want.text)
			assert.NotContains(t, err.Error(), "secret")
			assert.NotContains(t, err.Error(), "hidden")
		})
	}
}

// Passwords are hidden and long texts shortened, in this order.
func TestFailureText(t *testing.T) {
	long := strings.Repeat("ä", 200) + "rtsp://admin:secret@camera/"
	for _, c := range []struct {
		f    failure
		want string
	}{
		{failure{message: "no element \"x\"."}, `no element "x"`},
		{
			failure{
				element: "nvarguscamerasrc0", message: "TIMEOUT",
				debug: "gstnvarguscamerasrc.cpp(809): execute (): /GstPipeline:pipeline0:\nArgus Error Status\n  busy",
			},
			"nvarguscamerasrc0: TIMEOUT: Argus Error Status busy",
		},
		{
			failure{element: "src", message: "Cannot open rtsp://a:b@c/d.", debug: "x.c(1): f ():\nCannot open rtsp://a:b@c/d"},
			"src: Cannot open rtsp://***@c/d",
		},
		{failure{message: long}, strings.Repeat("ä", 150) + " ..."},
		{failure{message: "x: rtsp://u:" + strings.Repeat("p", 400) + "@host/"}, "x: rtsp://***@host/"},
	} {
		assert.Equal(t, c.want, c.f.text())
	}
	link := failure{message: "could not link avdec_h264-12 to cam3, cam3 can't handle caps x0"}
	assert.Equal(t, "could not link avdec_h264 to cam, cam can't handle caps x0", link.text())
	busy := failure{domain: resourceErrors, code: resourceDenied, element: "e", message: "Unauthorized"}
	require.ErrorIs(t, busy.error("read"), capture.ErrDenied)
	device := failure{caps: "NV12 (memory:NVMM)"}
	assert.EqualError(t, device.error("read"), "read: the pipeline ends in pixel format NV12 (memory:NVMM) ("+deviceHint+")")
}

// rawImages lets gst-launch write images to a file: an independent way to the same bytes, in GStreamer's layout.
func rawImages(t *testing.T, source string) []byte {
	path := filepath.Join(t.TempDir(), "raw")
	arguments := append([]string{"-q"}, strings.Fields(source+" ! filesink location="+path)...)
	output, err := exec.Command(testtool.Program(t, "gst-launch-1.0"), arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	return data
}

// unpadded removes the padding of rows to multiples of four bytes.
func unpadded(data []byte, format engine.PixelFormat, width, height int) []byte {
	row := format.RowBytes(width)
	padded := (row + 3) / 4 * 4
	var out bytes.Buffer
	for y := range format.Rows(height) {
		out.Write(data[y*padded : y*padded+row])
	}
	return out.Bytes()
}

func TestPixels(t *testing.T) {
	needGStreamer(t)
	for caps, format := range map[string]engine.PixelFormat{
		"BGR": engine.BGR, "BGRx": engine.BGRx, "BGRA": engine.BGRx, "NV12": engine.NV12, "YUY2": engine.YUYV, "GRAY8": engine.GRAY8,
	} {
		for _, size := range [][2]int{{320, 240}, {326, 242}, {2, 2}, {321, 241}} {
			if size[0]%2 == 1 && (format == engine.NV12 || format == engine.YUYV) {
				continue
			}
			t.Run(fmt.Sprint(caps, size), func(t *testing.T) {
				source := fmt.Sprintf("videotestsrc num-buffers=3 pattern=smpte100 ! video/x-raw,format=%s,width=%d,height=%d", caps, size[0], size[1])
				want := rawImages(t, source)
				p := openPipeline(t, source+" ! appsink sync=false")
				pool := newPool(t)
				for n := range 3 {
					f, err := p.Next(pool, patience)
					require.NoError(t, err)
					assert.Equal(t, format, f.Format)
					assert.Equal(t, size, [2]int{f.Width, f.Height})
					image := want[n*len(want)/3 : (n+1)*len(want)/3]
					assert.True(t, bytes.Equal(unpadded(image, format, size[0], size[1]), f.Data), "image %d", n)
					assert.Equal(t, uint64(n), f.Seq)
					assert.InDelta(t, float64(n)/30, f.Position.Seconds(), 1e-6)
					assert.InDelta(t, 30, f.FPS, 0)
					f.Release()
				}
				_, err := p.Next(pool, patience)
				require.Equal(t, io.EOF, err)
			})
		}
	}
}

// Levels of the full range become those of the limited range, which engines read, and I420 becomes NV12.
func TestRange(t *testing.T) {
	for colorimetry, want := range map[string][3]byte{"1:4:0:0": {29, 226, 30}, "bt601": {15, 240, 16}} {
		for _, format := range []string{"NV12", "I420"} {
			p := openPipeline(t, "appsrc format=time caps=video/x-raw,format="+format+",width=4,height=2,framerate=30/1,colorimetry="+colorimetry+
				" ! appsink sync=false")
			image := []byte{15, 255, 0, 128, 15, 255, 0, 128, 240, 16, 240, 16}
			if format == "I420" { // rows of colours are padded to four bytes
				image = []byte{15, 255, 0, 128, 15, 255, 0, 128, 240, 240, 99, 99, 16, 16, 99, 99}
			}
			require.NoError(t, p.Push(image, 0))
			f, err := p.Next(newPool(t), patience)
			require.NoError(t, err)
			assert.Equal(t, engine.NV12, f.Format)
			assert.Equal(t, want, [3]byte{f.Data[0], f.Data[8], f.Data[11]}, "%s %s", format, colorimetry)
			f.Release()
		}
	}
}

// An appsink without caps gets a format that engines read, without a conversion where that is possible.
func TestNegotiation(t *testing.T) {
	for source, want := range map[string]engine.PixelFormat{
		"video/x-raw,format=I420,width=64,height=48 ! videoconvert":  engine.NV12,
		"video/x-raw,format=RGB,width=64,height=48 ! videoconvert":   engine.BGRx,
		"video/x-raw,format=GRAY8,width=63,height=47":                engine.GRAY8,
		"video/x-raw,format=YUY2,width=64,height=48":                 engine.YUYV,
		"video/x-raw,format=BGRA,width=63,height=47 ! videoconvert":  engine.BGRx,
		"video/x-raw,format=NV12,width=64,height=48 ! videoconvert ": engine.NV12,
	} {
		p := openPipeline(t, "videotestsrc num-buffers=1 ! "+source+" ! appsink")
		f, err := p.Next(newPool(t), patience)
		require.NoError(t, err, source)
		assert.Equal(t, want, f.Format, source)
		f.Release()
	}
	p := openPipeline(t, "videotestsrc num-buffers=1 ! video/x-raw,format=I420,width=63,height=47 ! videoconvert ! appsink")
	f, err := p.Next(newPool(t), patience)
	require.NoError(t, err, "NV12 has no odd sides")
	assert.NotEqual(t, engine.NV12, f.Format)
	f.Release()
}

func TestSizeChangesMidStream(t *testing.T) {
	part := func(width, height int, format string) string {
		return fmt.Sprintf(" videotestsrc num-buffers=5 ! video/x-raw,format=%s,width=%d,height=%d ! c.", format, width, height)
	}
	p := openPipeline(t, "concat name=c ! appsink sync=false"+
		part(64, 48, "NV12")+part(322, 242, "NV12")+part(63, 47, "GRAY8")+part(64, 48, "BGR"))
	pool := newPool(t)
	var got []string
	for {
		f, err := p.Next(pool, patience)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		got = append(got, fmt.Sprintf("%dx%d %v", f.Width, f.Height, f.Format))
		assert.Len(t, f.Data, f.Format.RowBytes(f.Width)*f.Format.Rows(f.Height))
		f.Release()
	}
	var want []string
	for _, one := range []string{"64x48 NV12", "322x242 NV12", "63x47 GRAY8", "64x48 BGR"} {
		want = append(want, one, one, one, one, one)
	}
	assert.Equal(t, want, got)
}

func TestAwait(t *testing.T) {
	p := openPipeline(t, "videotestsrc num-buffers=30 ! video/x-raw,format=GRAY8,width=64,height=48,framerate=15/1 ! appsink sync=false")
	for range 2 {
		info, err := p.Await(patience)
		require.NoError(t, err)
		assert.Equal(t, 64, info.Width)
		assert.Equal(t, 48, info.Height)
		assert.InDelta(t, 15, info.FPS, 0)
	}
	f, err := p.Next(newPool(t), 0)
	require.NoError(t, err)
	assert.Zero(t, f.Seq)
	f.Release()
}

func TestTooLarge(t *testing.T) {
	needGStreamer(t)
	p, err := Open(t.Context(), "videotestsrc ! video/x-raw,format=GRAY8,width=640,height=480 ! appsink", Options{MaxPixels: 640*480 - 1})
	require.NoError(t, err)
	_, err = p.Await(patience)
	require.ErrorIs(t, err, capture.ErrFormat)
	assert.Contains(t, err.Error(), "open: image of 640x480 has more than 307199 pixels")
	_, err = p.Next(nil, patience)
	require.ErrorIs(t, err, capture.ErrImage, "no memory is requested")
	require.NoError(t, p.Close())
}

// raw is a pipeline that is fed by the test.
const raw = "appsrc name=src format=time caps=video/x-raw,format=GRAY8,width=8,height=4,framerate=30/1 ! appsink sync=false"

// A pipeline that stops giving images is reported after the limit, and goes on.
func TestTimeLimit(t *testing.T) {
	p := openPipeline(t, raw)
	pool := newPool(t)
	_, err := p.Next(pool, time.Millisecond)
	require.ErrorIs(t, err, capture.ErrStalled)
	require.EqualError(t, err, "read: no first image for 1ms")
	for n := range 3 {
		image := bytes.Repeat([]byte{byte(n)}, 32)
		require.NoError(t, p.Push(image, time.Duration(n)*time.Second))
		f, err := p.Next(pool, patience)
		require.NoError(t, err)
		assert.Equal(t, image, f.Data)
		assert.Equal(t, time.Duration(n)*time.Second, f.Position)
		assert.Equal(t, uint64(n), f.Seq)
		f.Release()
		_, err = p.Next(pool, time.Millisecond)
		require.EqualError(t, err, "read: no image for 1ms")
	}
	require.NoError(t, p.PushEnd())
	_, err = p.Next(pool, patience)
	require.Equal(t, io.EOF, err)
	require.EqualError(t, p.Push([]byte{1}, 0), "push: the appsrc has ended")
}

// An image whose memory is smaller than its size is damaged, and the pipeline continues.
func TestShortImage(t *testing.T) {
	p := openPipeline(t, raw)
	pool := newPool(t)
	require.NoError(t, p.Push(make([]byte, 31), 0))
	require.NoError(t, p.Push(make([]byte, 32), 0))
	_, err := p.Next(pool, patience)
	require.ErrorIs(t, err, capture.ErrImage)
	f, err := p.Next(pool, patience)
	require.NoError(t, err)
	f.Release()
}

// What a slow consumer does not take stays with the producer: a Push waits for it, until the pipeline is closed.
func TestPushIsBounded(t *testing.T) {
	blocked := openPipeline(t, "appsrc caps=video/x-raw,format=GRAY8,width=8,height=4,framerate=30/1 ! appsink max-buffers=1 sync=false")
	var pushed atomic.Int32
	result := make(chan error)
	go func() {
		for {
			if err := blocked.Push(make([]byte, 32), 0); err != nil {
				result <- err
				return
			}
			pushed.Add(1)
		}
	}()
	_, err := blocked.Await(patience)
	require.NoError(t, err)
	require.NoError(t, blocked.Close())
	require.EqualError(t, <-result, "read: the pipeline is closed")
	assert.LessOrEqual(t, pushed.Load(), int32(4), "held, queued, on the way and in the appsrc")
	without := openPipeline(t, "videotestsrc ! appsink")
	require.Equal(t, ErrNoSource, without.Push([]byte{1}, 0))
	require.Equal(t, ErrNoSource, without.PushEnd())
}

func TestNoBuffer(t *testing.T) {
	p := openPipeline(t, "videotestsrc num-buffers=3 ! video/x-raw,format=GRAY8,width=64,height=48 ! appsink")
	pool := &capture.Pool{Buffers: 1}
	defer pool.Close()
	held, err := p.Next(pool, patience)
	require.NoError(t, err)
	_, err = p.Next(pool, patience)
	require.Equal(t, capture.ErrNoBuffer, err)
	held.Release()
	f, err := p.Next(pool, patience)
	require.NoError(t, err)
	assert.Equal(t, uint64(2), f.Seq, "the image for which there was no buffer is lost")
	f.Release()
}

// Close from another goroutine ends a pull that would wait for a day, and so does the end of the context.
func TestCloseDuringPull(t *testing.T) {
	needGStreamer(t)
	for range 50 {
		p, err := Open(t.Context(), raw, Options{})
		require.NoError(t, err)
		result := make(chan error)
		go func() {
			_, err := p.Next(nil, 24*time.Hour)
			result <- err
		}()
		closed := make(chan error, 2)
		for range 2 {
			go func() { closed <- p.Close() }()
		}
		require.EqualError(t, <-result, "read: the pipeline is closed")
		require.NoError(t, <-closed)
		require.NoError(t, <-closed)
		_, err = p.Next(nil, patience)
		require.EqualError(t, err, "read: the pipeline is closed")
		require.EqualError(t, p.Push([]byte{1}, 0), "read: the pipeline is closed")
		require.NoError(t, p.Close())
	}
	ctx, cancel := context.WithCancel(t.Context())
	p, err := Open(ctx, raw, Options{})
	require.NoError(t, err)
	time.AfterFunc(time.Millisecond, cancel)
	_, err = p.Next(nil, 24*time.Hour)
	require.Equal(t, context.Canceled, err)
	require.NoError(t, p.Close())
	_, err = Open(ctx, raw, Options{})
	require.Equal(t, context.Canceled, err)
}

// An error while images are still queued comes after them.
func TestErrorAfterImages(t *testing.T) {
	p := openPipeline(t, "videotestsrc ! video/x-raw,format=GRAY8,width=64,height=48 ! identity error-after=4 ! appsink max-buffers=8 sync=false")
	pool := newPool(t)
	for range 3 {
		f, err := p.Next(pool, patience)
		require.NoError(t, err)
		f.Release()
	}
	for range 2 {
		_, err := p.Next(pool, patience)
		require.ErrorIs(t, err, capture.ErrUnavailable)
		assert.Contains(t, err.Error(), "read: identity: Failed after iterations as requested")
	}
}

// The stream has ended when its other branches have, or after the limit: a file that one of them writes is complete.
func TestEndOfBranches(t *testing.T) {
	path := filepath.Join(t.TempDir(), "raw")
	p := openPipeline(t, "videotestsrc num-buffers=20 ! video/x-raw,format=GRAY8,width=64,height=48 ! tee name=t "+
		"t. ! queue ! identity sleep-time=5000 ! filesink location="+path+" t. ! queue ! appsink sync=false")
	pool := newPool(t)
	n := 0
	for ; ; n++ {
		f, err := p.Next(pool, patience)
		if errors.Is(err, io.EOF) {
			break
		}
		require.NoError(t, err)
		f.Release()
	}
	assert.Equal(t, 20, n)
	info, err := os.Stat(path)
	require.NoError(t, err)
	assert.Equal(t, int64(20*64*48), info.Size())

	endless := openPipeline(t, "videotestsrc ! fakesink async=false "+
		"videotestsrc num-buffers=1 ! video/x-raw,format=GRAY8,width=64,height=48 ! appsink sync=false")
	f, err := endless.Next(pool, patience)
	require.NoError(t, err)
	f.Release()
	for !errors.Is(err, io.EOF) {
		_, err = endless.Next(pool, time.Millisecond)
		if !errors.Is(err, io.EOF) {
			require.ErrorIs(t, err, capture.ErrStalled)
		}
	}
}

// usage returns the resident memory in bytes and the number of threads of this process.
func usage(t *testing.T) (memory, threads int) {
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	for line := range strings.Lines(string(status)) {
		_, _ = fmt.Sscanf(line, "VmRSS: %d kB", &memory)
		_, _ = fmt.Sscanf(line, "Threads: %d", &threads)
	}
	return memory << 10, threads
}

func TestManyOpensLeakNothing(t *testing.T) {
	if testing.Short() {
		t.Skip("opens 1000 pipelines")
	}
	needGStreamer(t)
	pool := newPool(t)
	once := func(n int) {
		p, err := Open(t.Context(), "videotestsrc ! video/x-raw,width=640,height=480 ! queue ! videoconvert ! appsink name=sink", Options{})
		require.NoError(t, err)
		if n%2 == 0 {
			f, err := p.Next(pool, patience)
			require.NoError(t, err)
			f.Release()
		}
		if n%3 == 0 {
			_, err := p.Await(patience) // closed while it holds an image
			require.NoError(t, err)
		}
		require.NoError(t, p.Close())
		_, err = Open(t.Context(), "filesrc location=/nonexistent ! appsink", Options{})
		require.ErrorIs(t, err, capture.ErrNotFound)
	}
	for n := range 100 {
		once(n)
	}
	memory, threads := usage(t)
	for n := range 1000 {
		once(n)
	}
	memoryNow, threadsNow := usage(t)
	t.Logf("memory %d -> %d kB, threads %d -> %d", memory>>10, memoryNow>>10, threads, threadsNow)
	// The heaps of new threads take some megabytes; an image in 20 pipelines, or a few blocks in each, would be more. TestSanitized looks for
	// every byte.
	assert.Less(t, memoryNow-memory, 24<<20)
	assert.LessOrEqual(t, threadsNow, threads+50, "of the Go runtime")
}

func BenchmarkNext(b *testing.B) {
	p := openPipeline(b, "videotestsrc pattern=black ! video/x-raw,format=NV12,width=64,height=48 ! appsink sync=false max-buffers=4")
	pool := newPool(b)
	b.ReportAllocs()
	for b.Loop() {
		f, err := p.Next(pool, patience)
		require.NoError(b, err)
		f.Release()
	}
}
