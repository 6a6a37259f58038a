package capture

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// drain runs a camera to its end and returns the numbers that its pictures show.
func drain(t *testing.T, c *Camera, each func(f Frame)) ([]int, error) {
	t.Helper()
	notify := make(chan struct{}, 1)
	c.Notify, c.Logger = notify, slog.New(slog.DiscardHandler)
	result := make(chan error, 1)
	go func() { result <- c.Run(t.Context()) }()
	var numbers []int
	take := func() {
		for f, ok := c.Take(); ok; f, ok = c.Take() {
			numbers = append(numbers, readBarcode(f))
			if each != nil {
				each(f)
			}
			f.Release()
		}
	}
	deadline := time.After(patience)
	for {
		select {
		case <-notify:
			take()
		case err := <-result:
			take()
			require.NoError(t, c.Close())
			return numbers, err
		case <-deadline:
			require.Fail(t, "the camera does not end", "%+v", c.Stats())
		}
	}
}

func TestLosslessFile(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 200, 160, 120, 30)
	c := &Camera{Name: "file", URI: path, Lossless: true, Buffers: 1}
	seq := uint64(0)
	numbers, err := drain(t, c, func(f Frame) {
		assert.Equal(t, seq, f.Seq)
		seq++
	})
	require.NoError(t, err)
	assert.Equal(t, upTo(200), numbers)
	stats := c.Stats()
	assert.Equal(t, Stats{
		Name: "file", URI: path, State: Ended, Captured: 200, Width: 160, Height: 120, Format: BGR, FPS: stats.FPS, Last: stats.Last,
	}, stats)
	assert.Positive(t, stats.FPS)
}

// TestFilmTime: what moves in a film keeps its speed, however fast the film is played, and time does not go back where it begins again.
func TestFilmTime(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 60, 160, 120, 4)
	for name, c := range map[string]*Camera{"lossless": {URI: path, Lossless: true}, "flat out": {URI: path, FlatOut: true}} {
		t.Run(name, func(t *testing.T) {
			var first, last Frame
			begin := time.Now()
			_, err := drain(t, c, func(f Frame) {
				if first.Time.IsZero() {
					first = f
				}
				assert.InDelta(t, float64(f.Seq-first.Seq)/4, f.Time.Sub(first.Time).Seconds(), 0.002)
				last = f
			})
			require.NoError(t, err)
			assert.Greater(t, last.Time.Sub(begin), 10*time.Second, "a film of 15 seconds")
		})
	}
	loop := &Camera{URI: path, Lossless: true, AtEnd: Loop}
	var before time.Time
	seen := 0
	_, err := drain(t, loop, func(f Frame) {
		assert.False(t, f.Time.Before(before))
		before = f.Time
		if seen++; seen == 150 {
			go loop.Close()
		}
	})
	require.NoError(t, err)
	paced := &Camera{URI: barcodeVideo(t, "w.mp4", 5, 160, 120, 100)}
	_, err = drain(t, paced, func(f Frame) { assert.WithinDuration(t, time.Now(), f.Time, patience) })
	require.NoError(t, err)
}

func TestLoop(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 10, 160, 120, 30)
	c := &Camera{URI: path, Lossless: true, AtEnd: Loop}
	want := 0
	numbers, err := drain(t, c, func(f Frame) {
		assert.Equal(t, uint64(want), f.Seq)
		assert.Equal(t, want%10, readBarcode(f))
		if want++; want == 35 {
			go c.Close()
		}
	})
	require.NoError(t, err)
	assert.GreaterOrEqual(t, len(numbers), 35)
	assert.Zero(t, c.Stats().Reconnects)
}

func TestPacedFile(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 30, 160, 120, 100)
	begin := time.Now()
	c := &Camera{URI: path}
	_, err := drain(t, c, nil)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begin), 290*time.Millisecond, "29 gaps of 10 ms")
	assert.Equal(t, uint64(30), c.Stats().Captured)
}

func TestNewestWins(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 100, 160, 120, 30)
	c := &Camera{URI: path, FlatOut: true, Buffers: 2, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.Run(t.Context()))
	f, ok := c.Take()
	require.True(t, ok)
	assert.Equal(t, 99, readBarcode(f), "the newest of a hundred")
	assert.Equal(t, uint64(99), f.Seq)
	assert.Equal(t, uint64(99), c.Stats().Displaced)
	f.Release()
	require.NoError(t, c.Close())
}

// A consumer that keeps every buffer stops nothing; the frames without a buffer are counted.
func TestConsumerKeepsBuffers(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 50, 160, 120, 100)
	c := &Camera{URI: path, Buffers: 2}
	var held []Frame
	notify := make(chan struct{}, 1)
	c.Notify = notify
	result := make(chan error, 1)
	go func() { result <- c.Run(t.Context()) }()
	for len(held) < 2 {
		<-notify
		if f, ok := c.Take(); ok {
			held = append(held, f)
		}
	}
	first := readBarcode(held[0])
	require.NoError(t, <-result)
	assert.Equal(t, first, readBarcode(held[0]), "a lease is not written to")
	_, ok := c.Take()
	assert.False(t, ok)
	assert.Equal(t, uint64(50), c.Stats().Captured)
	assert.Equal(t, uint64(48), c.Stats().Displaced)
	require.NoError(t, c.Close())
	assert.Equal(t, first, readBarcode(held[0]), "a lease outlives the camera")
	for _, f := range held {
		f.Release()
	}
}

func TestDemo(t *testing.T) {
	c := &Camera{Name: "demo", URI: "demo?width=320&height=240&frames=20&seed=3", Lossless: true}
	objects := 0
	_, err := drain(t, c, func(f Frame) {
		for _, o := range f.Truth {
			assert.NotEmpty(t, o.Label)
			assert.Less(t, o.Box[0], o.Box[2])
			assert.LessOrEqual(t, o.Box[2], float32(f.Width))
			objects++
		}
	})
	require.NoError(t, err)
	assert.Positive(t, objects)
	assert.Equal(t, uint64(20), c.Stats().Captured)
}

func TestDamagedPictureIsCounted(t *testing.T) {
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(folder+"/1.jpg", barcodeJPEG(t, 1, 64, 64), 0o600))
	require.NoError(t, os.WriteFile(folder+"/2.jpg", []byte("broken"), 0o600))
	require.NoError(t, os.WriteFile(folder+"/3.jpg", barcodeJPEG(t, 3, 64, 64), 0o600))
	c := &Camera{URI: folder, Lossless: true}
	numbers, err := drain(t, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 3}, numbers)
	assert.Equal(t, uint64(1), c.Stats().Errors)

	require.NoError(t, os.Remove(folder+"/1.jpg"))
	require.NoError(t, os.Remove(folder+"/3.jpg"))
	_, err = drain(t, &Camera{URI: folder, Lossless: true, AtEnd: Loop}, nil)
	require.ErrorIs(t, err, ErrFormat)
	assert.EqualError(t, err, "read "+folder+": no picture in it")
}

func TestFirstFailureIsFinal(t *testing.T) {
	for uri, kind := range map[string]error{
		"demo?nonsense=1": ErrURI, "/dev/video99": ErrNotFound, "/no/such/file.mp4": ErrNotFound, "gst:nosuchelement": ErrUnavailable,
	} {
		c := &Camera{URI: uri}
		_, err := drain(t, c, nil)
		require.ErrorIs(t, err, kind)
		assert.Equal(t, Failed, c.Stats().State)
		assert.Equal(t, err.Error(), c.Stats().Error)
	}
}

func TestNetworkIsTriedAgain(t *testing.T) {
	for _, uri := range []string{"rtsp://admin:secret@127.0.0.1:1/x", "http://127.0.0.1:1/x?token=secret"} {
		var log strings.Builder
		c := &Camera{URI: uri, BackoffMin: time.Millisecond, BackoffMax: 2 * time.Millisecond, Logger: slog.New(slog.NewTextHandler(&log, nil))}
		ctx, cancel := context.WithCancel(t.Context())
		result := make(chan error, 1)
		go func() { result <- c.Run(ctx) }()
		require.Eventually(t, func() bool { return c.Stats().Reconnects >= 3 }, patience, time.Millisecond, uri)
		cancel()
		require.NoError(t, <-result)
		require.NoError(t, c.Close())
		assert.Contains(t, log.String(), "camera lost")
		assert.NotContains(t, log.String()+fmt.Sprintf("%+v", c.Stats()), "secret")
		assert.Equal(t, Ended, c.Stats().State)
	}
}

func TestCloseWithoutRun(t *testing.T) {
	c := &Camera{URI: "demo"}
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.NoError(t, c.Run(t.Context()))
	_, ok := c.Take()
	assert.False(t, ok)
}

func TestCloseWhileWaitingForTheConsumer(t *testing.T) {
	c := &Camera{URI: "demo?width=64&height=64", Lossless: true, StallTimeout: 50 * time.Millisecond}
	result := make(chan error, 1)
	go func() { result <- c.Run(context.Background()) }()
	require.Eventually(t, func() bool { return c.mailbox.Full() }, patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // longer than the stall time-out, and no stall: it is the consumer who is slow
	assert.Zero(t, c.Stats().Errors)
	require.NoError(t, c.Close())
	require.NoError(t, <-result)
}

func TestBackoff(t *testing.T) {
	c := &Camera{BackoffMin: 100 * time.Millisecond, BackoffMax: time.Second}
	for failures, most := range map[int]time.Duration{0: 100, 1: 200, 2: 400, 3: 800, 4: 1000, 100: 1000} {
		for range 100 {
			pause := c.backoff(failures)
			assert.LessOrEqual(t, pause, most*time.Millisecond)
			assert.GreaterOrEqual(t, pause, most*time.Millisecond/2)
		}
	}
}

// From the decoder to the consumer a frame allocates nothing.
func TestNoAllocationPerCapturedFrame(t *testing.T) {
	sources := map[string]string{
		"file": barcodeVideo(t, "v.mp4", 600, 160, 120, 30),
		"gst":  "gst:videotestsrc num-buffers=600 ! video/x-raw,format=NV12,width=64,height=64 ! appsink sync=false",
		"demo": "demo?width=64&height=64&frames=600",
	}
	for name, uri := range sources {
		t.Run(name, func(t *testing.T) {
			c := &Camera{URI: uri, Lossless: true, Logger: slog.New(slog.DiscardHandler)}
			notify := make(chan struct{}, 1)
			c.Notify = notify
			result := make(chan error, 1)
			go func() { result <- c.Run(context.Background()) }()
			var before, after runtime.MemStats
			for frames := 0; frames < 600; {
				<-notify
				f, ok := c.Take()
				if !ok {
					continue
				}
				f.Release()
				switch frames++; frames {
				case 100:
					runtime.ReadMemStats(&before)
				case 600:
					runtime.ReadMemStats(&after)
				}
			}
			require.NoError(t, <-result)
			require.NoError(t, c.Close())
			// The watching goroutine and the runtime may allocate now and then; a frame that allocates once would make 500.
			assert.Less(t, after.Mallocs-before.Mallocs, uint64(25))
		})
	}
}

// residentKB is the memory of the process that is in use.
func residentKB(t *testing.T) int {
	data, err := os.ReadFile("/proc/self/statm")
	require.NoError(t, err)
	var size, resident int
	_, err = fmt.Sscan(string(data), &size, &resident)
	require.NoError(t, err)
	return resident * os.Getpagesize() / 1024
}

func TestOpenCloseLeaksNothing(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 5, 640, 480, 30)
	uris := []string{path, "gst:videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=640,height=480 ! appsink sync=false"}
	cycle := func() {
		for _, uri := range uris {
			c := &Camera{URI: uri, FlatOut: true, Logger: slog.New(slog.DiscardHandler)}
			require.NoError(t, c.Run(t.Context()))
			require.Equal(t, uint64(5), c.Stats().Captured)
			require.NoError(t, c.Close())
		}
	}
	for range 10 {
		cycle()
	}
	goroutines, resident := runtime.NumGoroutine(), residentKB(t)
	for range 50 {
		cycle()
	}
	assert.LessOrEqual(t, runtime.NumGoroutine(), goroutines+2)
	grown := residentKB(t) - resident
	assert.Less(t, grown, 20<<10, "a buffer set that stays behind would be 180 MB")
	t.Logf("resident memory grew by %d kB over 100 captures", grown)
}

func TestStallTimeoutOfAnOpen(t *testing.T) {
	server := newRTSPServer(t)
	server.stop()
	uri := "gst:" + rtspPipeline(server.uri(), false, false) // rtsp:// itself would see that the server is silent
	c := &Camera{URI: uri, OpenTimeout: 300 * time.Millisecond, BackoffMin: time.Millisecond, Logger: slog.New(slog.DiscardHandler)}
	result := make(chan error, 1)
	go func() { result <- c.Run(context.Background()) }()
	require.Eventually(t, func() bool { return c.Stats().Reconnects >= 1 }, patience, time.Millisecond)
	assert.Contains(t, c.Stats().Error, "no first picture for 300ms")
	require.NoError(t, c.Close())
	require.NoError(t, <-result)
	server.kill()
	require.Eventually(t, func() bool { return len(c.hanging) == 0 }, patience, 10*time.Millisecond)
}

func TestSilentServer(t *testing.T) {
	server := newRTSPServer(t)
	server.stop()
	_, err := Open(t.Context(), server.uri(), Options{OpenTimeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, ErrUnavailable)
	assert.EqualError(t, err, "open "+server.uri()+": the server does not answer: context deadline exceeded (check that the camera is on)")
}
