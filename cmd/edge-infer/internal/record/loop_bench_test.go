package record_test

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"log/slog"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/record"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

var (
	loopRounds = flag.Int("rounds", 10, "rounds of BenchmarkFrameLoop, each of three turns")
	loopTurn   = flag.Duration("turn", 3*time.Second, "length of a turn of BenchmarkFrameLoop")
	loopDisk   = flag.Int64("disk", 0, "bytes per second that the disk of BenchmarkFrameLoop takes, 0 for as many as it can")
)

const (
	loopCameras   = 16
	loopInference = 30 * time.Millisecond // of a batch of all cameras, on a device: the host only waits
)

// stillCamera always has a new frame, of a pool as those of cameras.
type stillCamera struct {
	pool capture.Pool
	seq  uint64
}

// newStillCamera returns a camera whose memory is there already. Its frames can be leased if its pool has a buffer to spare.
func newStillCamera(b *testing.B, spare bool) *stillCamera {
	c := &stillCamera{pool: capture.Pool{Alloc: writtenPages, Buffers: 1}}
	if spare {
		c.pool.Buffers = 2
	}
	var all []capture.Frame
	for range c.pool.Buffers {
		frame, err := c.pool.Frame(engine.BGR, 1920, 1080)
		require.NoError(b, err)
		all = append(all, frame)
	}
	for _, frame := range all {
		frame.Release()
	}
	return c
}

func (c *stillCamera) Take() (capture.Frame, bool) {
	frame, err := c.pool.Frame(engine.BGR, 1920, 1080)
	if err != nil {
		return capture.Frame{}, false
	}
	c.seq++
	frame.Seq = c.seq
	frame.Time = time.Now()
	frame.Captured = capture.Monotonic()
	return frame, true
}

// writtenPages allocates memory that is not the kernel's one page of zeros, which would be copied out of a cache.
func writtenPages(size int) ([]byte, func(), error) {
	data, err := unix.Mmap(-1, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	for i := range data {
		data[i] = byte(i)
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}

// withoutPackets is a camera whose clips are made of images.
type withoutPackets struct{}

func (withoutPackets) Ring() *capture.Ring { return nil }

// waiter is a predictor that finds an object that moves all the time, and one that comes every five seconds and goes after two.
type waiter struct {
	submitted time.Time
	result    predict.BatchResult
}

func (w *waiter) Model() predict.Model {
	metadata := engine.Metadata{Task: engine.Detect, Labels: []string{"person"}}
	return predict.Model{Model: engine.Model{MaxBatch: loopCameras, Metadata: metadata}}
}

func (w *waiter) Slots() int { return 1 }

func (w *waiter) Submit(_ int, images []engine.Image) error {
	w.submitted = time.Now()
	seconds := float64(w.submitted.UnixNano()) / 1e9
	for i := range images {
		r := &w.result.Results[i]
		x := float32(800 + 700*math.Sin(seconds))
		r.Detections = append(r.Detections[:0], postprocess.Detection{Box: postprocess.Box{X1: x, Y1: 100, X2: x + 100, Y2: 300}, Score: 0.9})
		if phase := math.Mod(seconds+float64(i)*5/loopCameras, 5); phase < 2 {
			x := float32(200 + 400*phase)
			r.Detections = append(r.Detections, postprocess.Detection{Box: postprocess.Box{X1: x, Y1: 600, X2: x + 200, Y2: 900}, Score: 0.8})
		}
	}
	return nil
}

func (w *waiter) Wait(int) (*predict.BatchResult, error) {
	time.Sleep(time.Until(w.submitted.Add(loopInference)))
	return &w.result, nil
}

// latencies is the last sink. It keeps the latencies from when measured is set.
type latencies struct {
	measured atomic.Bool
	frames   int
	all      []time.Duration
}

func (l *latencies) Frame(in *pipeline.Result) {
	if in.Frame == nil {
		return
	}
	l.frames++
	if l.measured.Load() {
		l.all = append(l.all, time.Duration(capture.Monotonic()-in.Captured))
	}
}

// turn is what a part of BenchmarkFrameLoop has measured.
type turn struct {
	rate float64       // frames per second
	p99  time.Duration // from capture until after the sinks
	cpu  time.Duration // of the process, per second
	loop time.Duration // CPU time of the loop's thread for a frame: what neighbours on a busy machine cost is not in it
	heap uint64
}

// load is what a turn has beside the frame loop.
type load int

const (
	nothing  load = iota
	recorded      // all cameras are recorded, events and snapshots are stored
	copied        // the same where frames cannot be leased, so that the loop copies the pixels itself
)

// BenchmarkFrameLoop compares the frame loop of 16 cameras of 1080p while all of them are recorded and their events and snapshots are
// stored with the same loop without, and with one that copies the pixels itself, in turns. All of them follow the objects. It reports
// medians over the rounds: ratios of the rates and of the 99th percentiles of the latency, and the CPU time and memory that a recorded
// camera takes.
func BenchmarkFrameLoop(b *testing.B) {
	b.Run("H.264 of 4 Mbit per s", func(b *testing.B) {
		benchmarkLoop(b, record.Encode(b, "libx264", 4, 2*time.Second, "-vf", "scale=1920:1080,noise=alls=20:allf=t", "-b:v", "4M", "-maxrate",
			"4M", "-bufsize", "4M"))
	})
	b.Run("images", func(b *testing.B) { benchmarkLoop(b, nil) })
}

// benchmarkLoop records video, or images if there is none.
func benchmarkLoop(b *testing.B, units []capture.Unit) {
	var with, without, copying []turn
	for range *loopRounds {
		without = append(without, runTurn(b, units, nothing))
		with = append(with, runTurn(b, units, recorded))
		copying = append(copying, runTurn(b, units, copied))
	}
	report := func(name string, of func(i int) float64) {
		values := make([]float64, len(with))
		for i := range values {
			values[i] = of(i)
		}
		slices.Sort(values)
		b.ReportMetric(values[len(values)/2], name)
		b.Logf("%-16s %.3f, half of the rounds %.3f to %.3f", name, values[len(values)/2], values[len(values)/4], values[len(values)*3/4])
	}
	report("rate-ratio", func(i int) float64 { return with[i].rate / without[i].rate })
	report("p99-ratio", func(i int) float64 { return float64(with[i].p99) / float64(without[i].p99) })
	report("frames/s", func(i int) float64 { return with[i].rate })
	report("p99-ms", func(i int) float64 { return with[i].p99.Seconds() * 1000 })
	report("loop-us", func(i int) float64 { return float64(with[i].loop.Nanoseconds()) / 1000 })
	report("loop-us-without", func(i int) float64 { return float64(without[i].loop.Nanoseconds()) / 1000 })
	report("loop-us-copying", func(i int) float64 { return float64(copying[i].loop.Nanoseconds()) / 1000 })
	report("p99-ratio-copying", func(i int) float64 { return float64(copying[i].p99) / float64(without[i].p99) })
	report("rate-ratio-copying", func(i int) float64 { return copying[i].rate / without[i].rate })
	report("cpu-%/camera", func(i int) float64 { return (with[i].cpu - without[i].cpu).Seconds() * 100 / loopCameras })
	report("MB/camera", func(i int) float64 { return (float64(with[i].heap) - float64(without[i].heap)) / 1e6 / loopCameras })
	b.ReportMetric(0, "ns/op")
}

// runTurn runs the loop for a while.
func runTurn(b *testing.B, units []capture.Unit, beside load) turn {
	directory := b.TempDir()
	quiet := slog.New(slog.DiscardHandler)
	s := &store.Store{Directory: filepath.Join(directory, "events"), Logger: quiet}
	snapshots := &sink.Snapshots{Logger: quiet, Store: s}
	r := &record.Recorder{
		Directory: filepath.Join(directory, "clips"), Index: s,
		Settings: record.Settings{Before: 5 * time.Second, After: 10 * time.Second, MaxBytes: 1 << 40, Sync: true},
		Logger:   quiet,
	}
	if *loopDisk > 0 {
		r.SlowDisk(*loopDisk)
	}
	w := &waiter{}
	w.result.Results = make([]predict.Result, loopCameras)
	seen := &latencies{all: make([]time.Duration, 0, 1<<16)}
	p := &pipeline.Pipeline{Predictor: w, Confidence: 0.25, MinScore: 0.1, Logger: quiet}
	var cameras []record.Camera
	var sources []*source
	var stills []*stillCamera
	defer func() {
		for _, still := range stills {
			require.NoError(b, still.pool.Close())
		}
	}()
	for i := range loopCameras {
		name := fmt.Sprint("camera", i)
		tracker := &pipeline.Tracker{Labels: []string{"person"}, Confidence: 0.25}
		require.NoError(b, tracker.Open())
		still := newStillCamera(b, beside != copied)
		stills = append(stills, still)
		p.Cameras = append(p.Cameras, pipeline.Camera{Name: name, Source: still, Tracker: tracker})
		if units == nil {
			cameras = append(cameras, record.Camera{Name: name, Source: withoutPackets{}})
			continue
		}
		c := &source{capture.Ring{Keep: r.KeepUnits(), Bytes: capture.KeptRingBytes}}
		sources = append(sources, c)
		cameras = append(cameras, record.Camera{Name: name, Source: c})
	}
	p.Sinks = []pipeline.Sink{&sink.Publisher{}, seen}
	if beside != nothing {
		p.Sinks = []pipeline.Sink{sink.Ordered{&sink.Events{To: []sink.Output{sink.Storing{Store: s}}}, snapshots}, r, seen}
		s.Open()
	}
	snapshots.Open(p.Cameras)
	r.Open(cameras)
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(b.Context())
	var filled atomic.Int32
	if beside != nothing {
		all.Go(func() { _ = r.Run(ctx) })
		for _, c := range sources {
			all.Go(func() { feed(ctx, &c.ring, units, &filled) })
		}
		require.Eventually(b, func() bool { return int(filled.Load()) == len(sources) }, time.Minute, time.Millisecond)
	}
	require.NoError(b, p.Open())
	ended := make(chan struct{})
	var loop time.Duration
	all.Go(func() {
		runtime.LockOSThread()
		before := cpuTime(b, unix.RUSAGE_THREAD)
		require.NoError(b, p.Run(ctx, ended))
		loop = cpuTime(b, unix.RUSAGE_THREAD) - before
	})
	time.Sleep(2 * time.Second) // the recordings have begun, and have written the time before
	seen.measured.Store(true)
	cpu, frames, begun := cpuTime(b, unix.RUSAGE_SELF), framesOf(p), time.Now()
	time.Sleep(*loopTurn)
	took := time.Since(begun)
	t := turn{rate: float64(framesOf(p)-frames) / took.Seconds()}
	t.cpu = time.Duration(float64(cpuTime(b, unix.RUSAGE_SELF)-cpu) / took.Seconds())
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	t.heap = memory.HeapAlloc
	if beside != nothing {
		for name, camera := range r.Status().Cameras {
			require.True(b, camera.Recording || units == nil, name) // on a busy machine a camera may have no image yet
		}
		require.Zero(b, s.Stats().Dropped)
		require.NotZero(b, s.Stats().Stored)
	}
	cancel()
	all.Wait()
	snapshots.Close()
	r.Close()
	require.NoError(b, s.Close())
	t.loop = loop / time.Duration(seen.frames)
	slices.Sort(seen.all)
	t.p99 = seen.all[len(seen.all)*99/100]
	return t
}

// framesOf returns the frames that were inferred.
func framesOf(p *pipeline.Pipeline) (frames uint64) {
	for _, c := range p.Totals() {
		frames += c.Inferred
	}
	return frames
}

// feed puts 10 s of video into a ring at once, and then goes on at its pace.
func feed(ctx context.Context, ring *capture.Ring, units []capture.Unit, filled *atomic.Int32) {
	const ahead = 10 * time.Second
	period := units[len(units)-1].PTS + 40*time.Millisecond
	begun := capture.Monotonic() - int64(ahead)
	var once sync.Once
	for n := 0; ctx.Err() == nil; n++ {
		unit := units[n%len(units)]
		lap := time.Duration(n/len(units)) * period
		unit.PTS += lap
		unit.Received = begun + int64(lap) + unit.Received
		wait := time.Duration(unit.Received - capture.Monotonic())
		if wait > 0 {
			once.Do(func() { filled.Add(1) })
			time.Sleep(wait)
		}
		unit.Data = bytes.Clone(unit.Data)
		ring.Put(unit)
	}
}

// cpuTime returns the CPU time of this process or thread.
func cpuTime(b *testing.B, of int) time.Duration {
	var usage unix.Rusage
	require.NoError(b, unix.Getrusage(of, &usage))
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}
