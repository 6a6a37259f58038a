package source

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/capturetest"
	"github.com/edge-infer/edge-infer/engine"
)

// drain runs a camera to its end and returns the numbers that its images show.
func drain(t *testing.T, c *capture.Camera, each func(f capture.Frame)) ([]int, error) {
	t.Helper()
	notify := make(chan struct{}, 1)
	c.Notify, c.Logger = token(notify), slog.New(slog.DiscardHandler)
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
	c := &capture.Camera{Open: Open, Name: "file", URI: path, Lossless: true, Buffers: 1}
	seq := uint64(0)
	numbers, err := drain(t, c, func(f capture.Frame) {
		assert.Equal(t, seq, f.Seq)
		seq++
	})
	require.NoError(t, err)
	assert.Equal(t, upTo(200), numbers)
	stats := c.Stats()
	assert.Equal(t, capture.Stats{
		Name: "file", URI: path, State: capture.Ended, Since: stats.Since, Captured: 200, Width: 160, Height: 120, Format: engine.BGR,
		FPS: stats.FPS, LastImage: stats.LastImage,
	}, stats)
	assert.Positive(t, stats.FPS)
	assert.False(t, stats.Since.Before(stats.LastImage))
}

// TestVideoTime: what moves in a video keeps its speed, however fast the video is played, and time does not go back where it begins again.
func TestVideoTime(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 60, 160, 120, 4)
	var first, last capture.Frame
	begin := time.Now()
	_, err := drain(t, &capture.Camera{Open: Open, URI: path, Lossless: true}, func(f capture.Frame) {
		if first.Time.IsZero() {
			first = f
		}
		assert.InDelta(t, float64(f.Seq-first.Seq)/4, f.Time.Sub(first.Time).Seconds(), 0.002)
		last = f
	})
	require.NoError(t, err)
	assert.Greater(t, last.Time.Sub(begin), 10*time.Second, "a video of 15 seconds")
	loop := &capture.Camera{Open: Open, URI: path, Lossless: true, AtEnd: capture.Loop}
	var before time.Time
	seen := 0
	_, err = drain(t, loop, func(f capture.Frame) {
		assert.False(t, f.Time.Before(before))
		before = f.Time
		if seen++; seen == 150 {
			go loop.Close()
		}
	})
	require.NoError(t, err)
	paced := &capture.Camera{Open: Open, URI: barcodeVideo(t, "w.mp4", 5, 160, 120, 100)}
	_, err = drain(t, paced, func(f capture.Frame) { assert.WithinDuration(t, time.Now(), f.Time, patience) })
	require.NoError(t, err)
}

func TestLoop(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 10, 160, 120, 30)
	c := &capture.Camera{Open: Open, URI: path, Lossless: true, AtEnd: capture.Loop}
	want := 0
	numbers, err := drain(t, c, func(f capture.Frame) {
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
	c := &capture.Camera{Open: Open, URI: path}
	_, err := drain(t, c, nil)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, time.Since(begin), 290*time.Millisecond, "29 gaps of 10 ms")
	assert.Equal(t, uint64(30), c.Stats().Captured)
}

func TestNewestWins(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 100, 160, 120, 30)
	c := &capture.Camera{Open: Open, URI: "file://" + path + "?fps=1000", Buffers: 2, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.Run(t.Context()))
	f, ok := c.Take()
	require.True(t, ok)
	assert.Equal(t, 99, readBarcode(f), "the newest of a hundred")
	assert.Equal(t, uint64(99), f.Seq)
	assert.Equal(t, uint64(99), c.Stats().Dropped)
	f.Release()
	require.NoError(t, c.Close())
}

// A consumer that keeps every buffer stops nothing; the frames without a buffer are counted.
func TestConsumerKeepsBuffers(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 50, 160, 120, 100)
	c := &capture.Camera{Open: Open, URI: path, Buffers: 2}
	var held []capture.Frame
	notify := make(chan struct{}, 1)
	c.Notify = token(notify)
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
	assert.Equal(t, uint64(48), c.Stats().Dropped)
	require.NoError(t, c.Close())
	assert.Equal(t, first, readBarcode(held[0]), "a lease outlives the camera")
	for _, f := range held {
		f.Release()
	}
}

func TestDemo(t *testing.T) {
	c := &capture.Camera{Open: Open, Name: "demo", URI: "demo?width=320&height=240&frames=20&seed=3", Lossless: true}
	objects := 0
	_, err := drain(t, c, func(f capture.Frame) {
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

func TestDamagedImageIsCounted(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/1.jpg", barcodeJPEG(t, 1, 64, 64), 0o600))
	require.NoError(t, os.WriteFile(dir+"/2.jpg", []byte("broken"), 0o600))
	require.NoError(t, os.WriteFile(dir+"/3.jpg", barcodeJPEG(t, 3, 64, 64), 0o600))
	c := &capture.Camera{Open: Open, URI: dir, Lossless: true}
	numbers, err := drain(t, c, nil)
	require.NoError(t, err)
	assert.Equal(t, []int{1, 3}, numbers)
	assert.Equal(t, uint64(1), c.Stats().Damaged)
	assert.Equal(t, "not an image that OpenCV can read", c.Stats().LastDamage)

	require.NoError(t, os.Remove(dir+"/1.jpg"))
	require.NoError(t, os.Remove(dir+"/3.jpg"))
	_, err = drain(t, &capture.Camera{Open: Open, URI: dir, Lossless: true, AtEnd: capture.Loop, Once: true}, nil)
	require.ErrorIs(t, err, capture.ErrFormat)
	assert.EqualError(t, err, "read "+dir+": it contains no image")
}

// TestJob: what is read once and cannot be read is an error, a malformed address always is.
func TestJob(t *testing.T) {
	for uri, kind := range map[string]error{
		"demo?nonsense=1": capture.ErrURI, "/dev/video99": capture.ErrNotFound, "/no/such/file.mp4": capture.ErrNotFound,
		"gst:nosuchelement": capture.ErrUnavailable,
	} {
		c := &capture.Camera{Open: Open, URI: uri, Once: !errors.Is(kind, capture.ErrURI), OpenTimeout: patience}
		_, err := drain(t, c, nil)
		require.ErrorIs(t, err, kind)
		assert.Equal(t, capture.Failed, c.Stats().State)
		var failure *capture.Error
		require.ErrorAs(t, err, &failure)
		assert.Equal(t, failure.Reason(), c.Stats().Reason)
		assert.Contains(t, err.Error(), c.Stats().Reason)
	}
}

func TestCloseWithoutRun(t *testing.T) {
	c := &capture.Camera{Open: Open, URI: "demo"}
	require.NoError(t, c.Close())
	require.NoError(t, c.Close())
	require.NoError(t, c.Run(t.Context()))
	_, ok := c.Take()
	assert.False(t, ok)
}

func TestCloseWhileWaitingForTheConsumer(t *testing.T) {
	c := &capture.Camera{Open: Open, URI: "demo?width=64&height=64", Lossless: true, StallTimeout: 50 * time.Millisecond}
	result := make(chan error, 1)
	go func() { result <- c.Run(context.Background()) }()
	require.Eventually(t, func() bool { return c.Stats().Pending }, patience, time.Millisecond)
	time.Sleep(200 * time.Millisecond) // longer than the stall time-out, and no stall: it is the consumer who is slow
	assert.Equal(t, capture.Running, c.Stats().State)
	assert.True(t, c.Stats().Pending)
	assert.Zero(t, c.Stats().Reconnects)
	require.NoError(t, c.Close())
	require.NoError(t, <-result)
	assert.False(t, c.Stats().Pending)
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
			c := &capture.Camera{Open: Open, URI: uri, Lossless: true, Logger: slog.New(slog.DiscardHandler)}
			notify := make(chan struct{}, 1)
			c.Notify = token(notify)
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

// openFiles is how many files, sockets and other descriptors the process has.
func openFiles(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// TestOpenCloseLeaksNothing counts what captures own: frame buffers, descriptors (a decoder that is not released keeps its file, a pipeline
// its poll sets) and goroutines. Resident memory is no measure, it grows with what runs beside the test.
func TestOpenCloseLeaksNothing(t *testing.T) {
	path := barcodeVideo(t, "v.mp4", 5, 640, 480, 30)
	uris := []string{path, "gst:videotestsrc num-buffers=5 ! video/x-raw,format=NV12,width=640,height=480 ! appsink sync=false"}
	var memory capturetest.Ledger
	cycle := func() {
		for _, uri := range uris {
			c := &capture.Camera{Open: Open, URI: uri, Lossless: true, Alloc: memory.Alloc}
			numbers, err := drain(t, c, nil)
			require.NoError(t, err)
			require.Len(t, numbers, 5)
			require.Equal(t, memory.Made, memory.Freed)
		}
	}
	for range 5 {
		cycle()
	}
	require.GreaterOrEqual(t, memory.Made, 5*len(uris))
	goroutines, files := runtime.NumGoroutine(), openFiles(t)
	for range 20 {
		cycle()
	}
	same := func() bool { return runtime.NumGoroutine() <= goroutines+2 && openFiles(t) <= files }
	require.Eventually(t, same, patience, 10*time.Millisecond,
		"%d goroutines and %d files before", goroutines, files)
}

func TestSilentServer(t *testing.T) {
	t.Parallel()
	server := newRTSPServer(t)
	server.stop()
	_, err := Open(t.Context(), server.uri(), capture.Options{OpenTimeout: 100 * time.Millisecond})
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.EqualError(t, err, "open "+server.uri()+": the server does not answer (check that the camera is on)")
}
