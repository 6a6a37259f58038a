package pipeline

import (
	"context"
	"errors"
	"log/slog"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// slowEngine takes a fixed time for each request, one request after another as a GPU does, and gives one candidate per image whose x1 is
// the first byte of the image.
type slowEngine struct {
	took   time.Duration
	batch  int
	fail   atomic.Bool
	broken atomic.Bool   // every candidate has an impossible score
	device chan struct{} // holds a token while a request runs; a mutex would stop the clock of a synctest bubble
	slots  [2]struct {
		result engine.Result
		done   chan struct{}
	}
}

func newSlowEngine(took time.Duration, batch int) *slowEngine {
	e := &slowEngine{took: took, batch: batch, device: make(chan struct{}, 1)}
	for i := range e.slots {
		e.slots[i].done = make(chan struct{}, 1)
		e.slots[i].result.Transforms = make([]engine.Transform, 0, batch)
		e.slots[i].result.Candidates = make([]engine.Candidates, 0, batch)
		for range batch {
			e.slots[i].result.Candidates = append(e.slots[i].result.Candidates, engine.Candidates{Rows: make([]float32, engine.CandidateFields)})
		}
	}
	return e
}

func (e *slowEngine) Model() engine.Model {
	return engine.Model{
		MaxBatch: e.batch, Width: 320, Height: 320, Outputs: []engine.TensorInfo{{Name: "o", Shape: []int64{-1, 10, 2100}}},
		Metadata: engine.Metadata{Task: engine.Detect, Labels: []string{"a", "b", "c", "d", "e", "f"}},
	}
}

func (e *slowEngine) Alloc(int) (*engine.Buffer, error)        { return nil, errors.New("not used") }
func (e *slowEngine) Slots() int                               { return len(e.slots) }
func (e *slowEngine) SubmitTensors(int, []engine.Tensor) error { return errors.New("not used") }
func (e *slowEngine) Close() error                             { return nil }

var errEngine = errors.New("engine broken")

func (e *slowEngine) Submit(slot int, images []engine.Image) error {
	if e.fail.Load() {
		return errEngine
	}
	s := &e.slots[slot]
	s.result.Transforms = s.result.Transforms[:len(images)]
	s.result.Candidates = s.result.Candidates[:len(images)]
	for i := range images {
		s.result.Transforms[i] = engine.Transform{ScaleX: 1, ScaleY: 1}
		if e.broken.Load() {
			s.result.Candidates[i] = engine.Candidates{Impossible: 3}
			continue
		}
		if s.result.Candidates[i].Rows == nil {
			s.result.Candidates[i] = engine.Candidates{Rows: make([]float32, engine.CandidateFields)}
		}
		copy(s.result.Candidates[i].Rows, []float32{float32(images[i].Data[0]), 20, 255.5, 50, 0.9, 2})
	}
	if e.took == 0 {
		s.done <- struct{}{}
		return nil
	}
	go func() {
		e.device <- struct{}{}
		defer func() { <-e.device }()
		time.Sleep(e.took)
		s.done <- struct{}{}
	}()
	return nil
}

func (e *slowEngine) Wait(slot int) (*engine.Result, error) {
	<-e.slots[slot].done
	return &e.slots[slot].result, nil
}

// boxCamera is a mailbox that a test fills.
type boxCamera struct {
	pool capture.Pool
	box  capture.Mailbox
	seq  uint64
}

func (c *boxCamera) Take() (capture.Frame, bool) { return c.box.Take() }

func (c *boxCamera) put(t testing.TB) {
	frame, err := c.pool.Frame(engine.GRAY8, 64, 64)
	if errors.Is(err, capture.ErrNoBuffer) {
		require.True(t, c.box.Drop())
		frame, err = c.pool.Frame(engine.GRAY8, 64, 64)
	}
	require.NoError(t, err)
	frame.Seq, frame.Captured, frame.Time = c.seq, capture.Monotonic(), time.Now()
	frame.Data[0] = byte(c.seq % 200)
	c.seq++
	c.box.Put(frame)
}

// putNext puts a frame as soon as the one before was taken.
func (c *boxCamera) putNext(t testing.TB) {
	for c.box.Full() {
		time.Sleep(100 * time.Microsecond)
	}
	c.put(t)
}

// record is a sink that keeps what a test looks at.
type record struct {
	seqs  map[string][]uint64
	boxes []postprocess.Box
}

func (r *record) Frame(in *Result) {
	if r.seqs == nil {
		r.seqs = map[string][]uint64{}
	}
	r.seqs[in.Camera] = append(r.seqs[in.Camera], in.Seq)
	for _, d := range in.Detections {
		r.boxes = append(r.boxes, d.Box)
	}
}

func predictor(t testing.TB, e engine.Engine) *predict.Network {
	n, err := predict.Wrap(e, predict.Decoding{})
	require.NoError(t, err)
	return n
}

func open(t testing.TB, e engine.Engine, notify signal, sinks []Sink, cameras ...Camera) *Pipeline {
	p := &Pipeline{
		Predictor: predictor(t, e), Cameras: cameras, Sinks: sinks, Wakeup: notify, Confidence: 0.25, MinScore: 0.1,
		Logger: slog.New(slog.DiscardHandler),
	}
	require.NoError(t, p.Open())
	return p
}

func TestEveryFrameOfALosslessCameraComesThrough(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	p := open(t, newSlowEngine(time.Millisecond, 1), notify, []Sink{&seen}, Camera{Name: "a", Source: camera, Lossless: true})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 50 {
			camera.putNext(t)
		}
	}()
	require.NoError(t, p.Run(t.Context(), ended))
	require.Len(t, seen.seqs["a"], 50)
	for i, seq := range seen.seqs["a"] {
		require.EqualValues(t, i, seq)
		require.EqualValues(t, i, seen.boxes[i].X1, "detections belong to their own frame")
	}
	require.EqualValues(t, 50, p.Totals()[0].Inferred)
	require.Positive(t, p.FirstFrame())
}

func TestNonsenseEndsTheLoop(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	e := newSlowEngine(0, 1)
	for i := range e.slots {
		e.slots[i].result.Candidates[0].Impossible = 3
	}
	p := open(t, e, notify, []Sink{&seen}, Camera{Name: "a", Source: camera, Lossless: true})
	ctx, stop := context.WithCancel(t.Context())
	var feeding sync.WaitGroup
	feeding.Go(func() {
		for ctx.Err() == nil {
			if !camera.box.Full() {
				camera.put(t)
			}
			time.Sleep(100 * time.Microsecond)
		}
	})
	err := p.Run(t.Context(), nil)
	stop()
	feeding.Wait()
	require.EqualError(t, err, "model  is not yolov8: 30 images in a row had scores that are not from 0 to 1 "+
		"(select another --layout; edge-infer inspect shows the outputs)")
	require.IsType(t, &predict.Contradiction{}, err)
	require.Less(t, len(seen.seqs["a"]), predict.ContradictionImages, "nobody hears of what came after")
	require.Positive(t, p.Totals()[0].DroppedError)
}

// TestInvalidOutputAfterARightImage: a network that was right before loses only the frames on which its output is invalid.
func TestInvalidOutputAfterARightImage(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	e := newSlowEngine(0, 1)
	p := open(t, e, notify, []Sink{&seen}, Camera{Name: "a", Source: camera, Lossless: true})
	ended := make(chan struct{})
	var failed error
	var over sync.WaitGroup
	over.Go(func() { failed = p.Run(t.Context(), ended) })
	const right, wrong = 50, 5 * predict.ContradictionImages
	feed := func(frames int) CameraStats {
		t.Helper()
		before := p.Totals()[0]
		for range frames {
			camera.putNext(t)
		}
		for {
			now := p.Totals()[0]
			if now.Inferred+now.DroppedError == before.Inferred+before.DroppedError+uint64(frames) {
				return now
			}
			time.Sleep(100 * time.Microsecond)
		}
	}
	require.Empty(t, feed(right).Error)
	e.broken.Store(true)
	require.Equal(t, "the network's output is invalid: it has scores that are not from 0 to 1", feed(wrong).Error)
	e.broken.Store(false)
	total := feed(right)
	require.Empty(t, total.Error)
	close(ended)
	over.Wait()
	require.NoError(t, failed)
	require.EqualValues(t, 2*right, total.Inferred)
	require.EqualValues(t, wrong, total.DroppedError)
	require.Len(t, seen.seqs["a"], 2*right, "sinks get no invalid results")
}

func TestCamerasTakeTurnsAndShareABatch(t *testing.T) { synctest.Test(t, takeTurns) }

func takeTurns(t *testing.T) {
	notify := make(signal, 1)
	cameras := make([]Camera, 5)
	sources := make([]*boxCamera, len(cameras))
	for i := range cameras {
		sources[i] = &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
		defer sources[i].pool.Close()
		cameras[i] = Camera{Name: string(rune('a' + i)), Source: sources[i]}
	}
	var seen record
	p := open(t, newSlowEngine(2*time.Millisecond, 2), notify, []Sink{&seen}, cameras...)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	var stop atomic.Bool
	var feeding sync.WaitGroup
	for _, source := range sources {
		feeding.Go(func() {
			for !stop.Load() {
				source.put(t)
				time.Sleep(time.Millisecond)
			}
		})
	}
	require.NoError(t, p.Run(ctx, nil))
	stop.Store(true)
	feeding.Wait()
	var counts []int
	for _, seqs := range seen.seqs {
		require.True(t, slices.IsSorted(seqs))
		counts = append(counts, len(seqs))
	}
	require.Len(t, counts, len(cameras))
	require.GreaterOrEqual(t, float64(slices.Min(counts))/float64(slices.Max(counts)), 0.9, "%v", counts)
}

func TestIntervalSkipsFrames(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	p := open(t, newSlowEngine(0, 1), notify, []Sink{&seen}, Camera{
		Name: "a", Source: camera, Settings: &Settings{Detect: true, Confidence: 0.25, Interval: 3}, Lossless: true,
	})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for range 10 {
			for camera.box.Full() {
				runtime.Gosched()
			}
			camera.put(t)
		}
	}()
	require.NoError(t, p.Run(t.Context(), ended))
	require.Equal(t, []uint64{0, 3, 6, 9}, seen.seqs["a"])
	require.EqualValues(t, 6, p.Totals()[0].DroppedInterval)
}

func TestAFailingEngineLosesFramesAndRecovers(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	e := newSlowEngine(0, 1)
	e.fail.Store(true)
	p := open(t, e, notify, []Sink{&seen}, Camera{Name: "a", Source: camera})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, nil) }()
	for p.Totals()[0].DroppedError < 20 {
		camera.put(t)
		runtime.Gosched()
	}
	e.fail.Store(false)
	for p.Totals()[0].Inferred < 20 {
		camera.put(t)
		runtime.Gosched()
	}
	cancel()
	require.NoError(t, <-done)
	require.ErrorIs(t, errEngine, errEngine)
	require.NotEmpty(t, seen.seqs["a"])
}

// The frame loop's own allocations, capture lease to sink; the engine and the camera are stand-ins that allocate nothing.
func TestNoAllocationPerFrame(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	follower := &Tracker{Labels: []string{"a", "b", "c", "d", "e", "f"}, Confidence: 0.25}
	require.NoError(t, follower.Open())
	p := open(t, newSlowEngine(0, 1), notify, []Sink{discard{}}, Camera{Name: "a", Source: camera, Tracker: follower})
	frame := func() {
		camera.put(t)
		require.True(t, p.gather(&p.requests[0]))
		p.submit(0)
		p.finish(0)
	}
	for range 300 { // paths and tracks reach their full size
		frame()
	}
	require.Zero(t, testing.AllocsPerRun(1000, frame))
}

type discard struct{}

func (discard) Frame(*Result) {}

// An engine three times slower than the camera must see frames no older than one frame interval: nothing may queue behind the frame in
// flight. A queue of four would make them over four intervals old.
func TestASlowEngineSeesFreshFrames(t *testing.T) { synctest.Test(t, seesFreshFrames) }

func seesFreshFrames(t *testing.T) {
	const interval = 20 * time.Millisecond
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	e := &ageEngine{slowEngine: newSlowEngine(3*interval, 1)}
	p := open(t, e, notify, []Sink{discard{}}, Camera{Name: "a", Source: camera})
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	go func() {
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for ctx.Err() == nil {
			camera.put(t)
			<-ticker.C
		}
	}()
	e.captured = func() time.Time { return p.requests[e.slot].frames[0].Time }
	require.NoError(t, p.Run(ctx, nil))
	slices.Sort(e.ages)
	require.Greater(t, len(e.ages), 10)
	median := e.ages[len(e.ages)/2]
	require.LessOrEqual(t, median, interval, "%v", e.ages)
	totals := p.Totals()[0]
	require.Equal(t, camera.seq, totals.Inferred+camera.box.Dropped()+waiting(&camera.box),
		"every captured frame is inferred, displaced or waiting")
}

func waiting(box *capture.Mailbox) uint64 {
	if box.Full() {
		return 1
	}
	return 0
}

// ageEngine notes how old the first frame of each request is.
type ageEngine struct {
	*slowEngine
	slot     int
	captured func() time.Time
	ages     []time.Duration
}

func (e *ageEngine) Submit(slot int, images []engine.Image) error {
	e.slot = slot
	e.ages = append(e.ages, time.Since(e.captured()))
	return e.slowEngine.Submit(slot, images)
}

func TestReplacingTheEngineLosesNoFrame(t *testing.T) {
	notify := make(signal, 1)
	camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	var seen record
	p := open(t, newSlowEngine(time.Millisecond, 1), notify, []Sink{&seen}, Camera{Name: "a", Source: camera, Lossless: true})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for i := range 60 {
			camera.putNext(t)
			if i%20 == 10 {
				require.NoError(t, p.Replace(t.Context(), predictor(t, newSlowEngine(time.Millisecond, 1+i%3))))
			}
		}
	}()
	require.NoError(t, p.Run(t.Context(), ended))
	require.Len(t, seen.seqs["a"], 60)
}

func TestCamerasComeAndGo(t *testing.T) {
	notify := make(signal, 1)
	sources := map[string]*boxCamera{}
	for _, name := range []string{"a", "b", "c"} {
		sources[name] = &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
		defer sources[name].pool.Close()
	}
	camera := func(name string) Camera { return Camera{Name: name, Source: sources[name]} }
	var mu sync.Mutex
	seen := map[string]int{}
	count := sinkFunc(func(in *Result) {
		mu.Lock()
		seen[in.Camera]++
		mu.Unlock()
	})
	p := open(t, newSlowEngine(time.Millisecond, 1), notify, []Sink{count}, camera("a"), camera("b"))
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, nil) }()
	frames := func(names ...string) {
		mu.Lock()
		clear(seen)
		mu.Unlock()
		enough := func() bool {
			mu.Lock()
			defer mu.Unlock()
			for _, name := range names {
				if seen[name] < 3 {
					return false
				}
			}
			return len(seen) == len(names)
		}
		require.Eventually(t, func() bool {
			for _, name := range names {
				sources[name].put(t)
			}
			return enough()
		}, 20*time.Second, 2*time.Millisecond)
	}
	frames("a", "b")
	b := camera("b")
	b.Settings = &Settings{Detect: true, Confidence: 0.5, Interval: 1}
	require.NoError(t, p.SetSettings("b", *b.Settings))
	require.NoError(t, p.Arrange(ctx, []Camera{b, camera("c")}))
	before := p.Totals()[0].Inferred
	require.Positive(t, before, "a camera that stays keeps its counters")
	frames("b", "c")
	settings, ok := p.Settings("b")
	require.True(t, ok)
	require.EqualValues(t, 0.5, settings.Confidence)
	require.EqualError(t, p.SetSettings("a", settings), `no camera "a"`)

	// Another tracker, interval and confidence: the counters go on, and the settings are those of the arrangement.
	tracker := &Tracker{Labels: []string{"a"}, Confidence: 0.4}
	require.NoError(t, tracker.Open())
	b.Tracker = tracker
	b.Settings = &Settings{Detect: true, Confidence: 0.4, Interval: 2}
	before = p.Totals()[0].Inferred
	require.NoError(t, p.Arrange(ctx, []Camera{b}))
	require.GreaterOrEqual(t, p.Totals()[0].Inferred, before)
	settings, _ = p.Settings("b")
	require.EqualValues(t, float32(0.4), settings.Confidence)
	require.Equal(t, 2, settings.Interval)
	b.Settings = &Settings{Detect: true, Confidence: 2, Interval: 1}
	require.EqualError(t, p.Arrange(ctx, []Camera{b}), "camera b: threshold 2 is not between 0.1 and 1")
	b.Settings = nil
	require.NoError(t, p.Arrange(ctx, []Camera{b}))
	settings, _ = p.Settings("b")
	require.Equal(t, 1, settings.Interval)
	frames("b")
	cancel()
	require.NoError(t, <-done)
}

type sinkFunc func(*Result)

func (f sinkFunc) Frame(in *Result) { f(in) }

func TestSettingsThatCannotBe(t *testing.T) {
	p := open(t, newSlowEngine(0, 1), nil, nil, Camera{Name: "a", Source: &boxCamera{}})
	for _, test := range []struct {
		change func(*Settings)
		want   string
	}{
		{func(s *Settings) { s.Interval = 0 }, "interval 0 is less than 1"},
		{func(s *Settings) { s.Confidence = 0.01 }, "threshold 0.01 is not between 0.1 and 1"},
		{func(s *Settings) { s.Classes = []string{"cat"} }, `label "cat" is not one of the model's`},
	} {
		settings, _ := p.Settings("a")
		test.change(&settings)
		require.EqualError(t, p.SetSettings("a", settings), test.want)
	}
	require.NoError(t, p.SetSettings("a", Settings{Detect: true, Confidence: 0.25, Interval: 1, Classes: []string{"b"}}))
}

// signal is one that a bubble of testing/synctest can wait for.
type signal chan struct{}

func (b signal) Signal() {
	select {
	case b <- struct{}{}:
	default:
	}
}

func (b signal) Wait() { <-b }
