package record

import (
	"cmp"
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

// Recorder records clips around events, and cameras continuously. Set the fields, call Open, have it be a sink, call Run, and Close at the
// end. The frame loop and the readers of cameras never wait for the disk: each camera has goroutines that read its ring and write.
type Recorder struct {
	Directory string
	Index     Index
	Settings  // after Open, Set changes them
	Logger    *slog.Logger

	// Replaced by tests.
	now    func() int64 // CLOCK_MONOTONIC
	wall   func() time.Time
	create func(path string) (file, error)
	quota  quota

	cameras atomic.Pointer[map[string]*camera]
	need    sync.Once
	needed  chan struct{} // closed when there is a camera
	swept   chan struct{} // closed when the start's sweep is done
	free    chan *picked
	full    chan *picked // their pixels are in the leased frames
	copied  chan *picked
	encoded chan struct{} // closed when the encoder has ended

	imagePause atomic.Int64 // nanoseconds between two images of a camera without access units

	mu       sync.Mutex
	ctx      context.Context // of the cameras; nil before Run
	failure  string          // why the directory cannot be used
	stopping bool

	clips, failures, missed, suppressed atomic.Uint64
	slowestWrite                        atomic.Int64
}

// Settings are the values of a Recorder that may change while it records.
type Settings struct {
	// Before and After are how much of the time around an event is recorded. Cooldown is the time after a clip in which an event begins no
	// other one.
	Before, After, Cooldown time.Duration
	MaxBytes                int64         // of all clips
	MaxAge                  time.Duration // 0 for any
	Sync                    bool          // each fragment is on the disk when it is written; otherwise only whole clips are
}

var _ pipeline.Sink = (*Recorder)(nil)

// slack is how much later than their event units are copied: frames wait for the network, and the disk for others.
const slack = 5 * time.Second

// KeepUnits returns how long cameras must keep access units, see capture.Options.
func (r *Recorder) KeepUnits() time.Duration { return r.current().KeepUnits() }

// KeepUnits returns how long cameras must keep access units, see capture.Options.
func (s Settings) KeepUnits() time.Duration { return s.Before + slack }

// Set changes the settings, also of recordings in progress. A longer Before is in force once the sources keep access units for so long.
func (r *Recorder) Set(next Settings) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Settings = next
	r.quota.setLimit(next.MaxBytes)
	for _, c := range *r.cameras.Load() {
		c.setAfter(next.After)
	}
}

// current returns the settings.
func (r *Recorder) current() Settings {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.Settings
}

// Open makes the recorder ready. It does not touch the disk.
func (r *Recorder) Open(cameras []Camera) {
	if r.now == nil {
		r.now = capture.Monotonic
	}
	if r.wall == nil {
		r.wall = time.Now
	}
	if r.create == nil {
		r.create = createFile
	}
	if r.quota.space == nil {
		r.quota.space = space
	}
	r.quota.directory, r.quota.maxBytes, r.quota.index = r.Directory, r.MaxBytes, r.Index
	r.needed = make(chan struct{})
	r.swept = make(chan struct{})
	r.free, r.full, r.copied = make(chan *picked, imageQueue), make(chan *picked, imageQueue), make(chan *picked, imageQueue)
	for range imageQueue {
		r.free <- &picked{}
	}
	r.encoded = make(chan struct{})
	r.imagePause.Store(imageInterval)
	go r.fetch()
	go r.encode()
	r.SetCameras(cameras)
}

// SetCameras sets the current cameras. Recordings of those that are gone end.
func (r *Recorder) SetCameras(cameras []Camera) {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := map[string]*camera{}
	if all := r.cameras.Load(); all != nil {
		before = *all
	}
	next := map[string]*camera{}
	for i := range cameras {
		settings := cameras[i]
		c := before[settings.Name]
		if c == nil {
			c = &camera{name: settings.Name, recorder: r}
			c.after = r.After
			c.moving = map[uint64]object{}
			c.wake = make(chan struct{}, 1)
			c.changed = make(chan struct{}, 1)
			c.clips.status.Store(&CameraStatus{})
			c.continuous.status.Store(&CameraStatus{})
			c.settings.Store(&settings)
			r.start(c)
		}
		if c.settings.Swap(&settings).Source != settings.Source {
			c.images.ring.Store(nil) // its images show what was private then, and may be what is private now
		}
		select {
		case c.changed <- struct{}{}:
		default:
		}
		next[settings.Name] = c
	}
	r.cameras.Store(&next)
	if len(next) > 0 {
		r.need.Do(func() { close(r.needed) })
	}
	for name, c := range before {
		if next[name] == nil && c.cancel != nil {
			c.cancel()
		}
	}
}

// start starts a camera's recording if Run has been called. The lock is held.
func (r *Recorder) start(c *camera) {
	if r.ctx == nil || r.stopping {
		return
	}
	ctx, cancel := context.WithCancel(r.ctx)
	c.cancel = cancel
	c.done = make(chan struct{})
	go c.run(ctx)
}

// Frame implements pipeline.Sink.
func (r *Recorder) Frame(in *pipeline.Result) {
	c := (*r.cameras.Load())[in.Camera]
	if c == nil || in.Lossless { // a file that is read at its own pace has no time before the event
		return
	}
	if in.Frame != nil && c.settings.Load().Source.Ring() == nil {
		r.pick(c, in)
	}
	if in.Events != nil && len(in.Events.Events) > 0 {
		at := in.Captured
		if at == 0 {
			at = r.now()
		}
		c.add(in, at)
	}
}

// closeTime is how long the recordings may take to end; a hanging disk must not keep the program.
const closeTime = 5 * time.Second

// Run sweeps the directory and records until ctx ends.
func (r *Recorder) Run(ctx context.Context) error {
	r.mu.Lock()
	r.ctx = ctx
	for _, c := range *r.cameras.Load() {
		r.start(c)
	}
	r.mu.Unlock()
	if r.begin(ctx) {
		close(r.swept)
		r.expire(ctx)
	}
	r.mu.Lock()
	r.stopping = true
	r.mu.Unlock()
	late := time.After(closeTime)
	for _, c := range *r.cameras.Load() {
		if c.done == nil {
			continue
		}
		select {
		case <-c.done:
		case <-late:
			r.Logger.Warn("a clip is not closed: the disk does not answer", "camera", c.name)
			return nil
		}
	}
	return nil
}

// begin prepares and sweeps the directory, for as long as it takes to be there. It returns false when ctx has ended. Without cameras there
// is nothing to do unless there are clips, which become too old.
func (r *Recorder) begin(ctx context.Context) bool {
	known := false
	_ = r.Index.Clips(ctx, func(*Clip) bool {
		known = true
		return false
	})
	if !known {
		select {
		case <-ctx.Done():
			return false
		case <-r.needed:
		}
	}
	for {
		err := r.prepare(ctx)
		if err == nil {
			err = r.sweep(ctx)
		}
		if ctx.Err() != nil {
			return false
		}
		r.setFailure(err)
		if err == nil {
			return true
		}
		r.quota.clear()
		select {
		case <-ctx.Done():
			return false
		case <-time.After(retryPause):
		}
	}
}

// setFailure publishes why the directory cannot be used, nil if it can.
func (r *Recorder) setFailure(err error) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if text != "" && text != r.failure {
		r.Logger.Warn("no clips are recorded", "error", err)
	}
	r.failure = text
}

// ready waits for the sweep; it returns false when ctx has ended.
func (r *Recorder) ready(ctx context.Context) bool {
	select {
	case <-ctx.Done():
		return false
	case <-r.swept:
		return true
	}
}

// Close ends the encoder. Frame must not be called any more. It is idempotent, and safe on one that was never opened.
func (r *Recorder) Close() {
	if r.full != nil {
		close(r.full)
		<-r.encoded
		r.full = nil
	}
}

// file returns the path of a clip's file.
func (r *Recorder) file(clip *Clip) string {
	return filepath.Join(r.Directory, filepath.FromSlash(clip.Path))
}

// offset returns the time of day at time 0 of CLOCK_MONOTONIC, since 1970.
func (r *Recorder) offset() time.Duration { return time.Duration(r.wall().UnixNano() - r.now()) }

// context is for rows that must be stored also when the program ends.
func (r *Recorder) context() context.Context { return context.Background() }

// slowest records how long a write took.
func (r *Recorder) slowest(took time.Duration) {
	for {
		before := r.slowestWrite.Load()
		if int64(took) <= before || r.slowestWrite.CompareAndSwap(before, int64(took)) {
			return
		}
	}
}

// Status is the state of the recorder.
type Status struct {
	Reason     string // why nothing is recorded; empty if all is well
	Clips      int    // on the disk
	Bytes      int64
	MaxBytes   int64
	Recorded   uint64        // clips since the start
	Failures   uint64        // of the disk
	Missed     uint64        // events without a clip because of failures, or because the camera sent no video
	Suppressed uint64        // events within the cool-down
	Slowest    time.Duration // write of a fragment since the start
	Cameras    map[string]CameraStatus
}

// CameraStatus is the state of a camera's recording.
type CameraStatus struct {
	Recording bool   // a clip, or continuously
	Reason    string // why the last clip could not be recorded, or why continuous recording has stopped; empty if all is well
	Skipped   uint64 // access units that are missing in clips because the disk was too slow
}

// Status returns the state. It may be called from any goroutine.
func (r *Recorder) Status() Status {
	r.mu.Lock()
	reason, limit := r.failure, r.MaxBytes
	r.mu.Unlock()
	s := Status{
		Reason: reason, MaxBytes: limit, Cameras: map[string]CameraStatus{},
		Recorded: r.clips.Load(), Failures: r.failures.Load(), Missed: r.missed.Load(), Suppressed: r.suppressed.Load(),
		Slowest: time.Duration(r.slowestWrite.Load()),
	}
	s.Clips, s.Bytes = r.quota.usage()
	for name, c := range *r.cameras.Load() {
		now, continuous := *c.clips.status.Load(), c.continuous.status.Load()
		now.Recording = now.Recording || continuous.Recording
		now.Reason = cmp.Or(now.Reason, continuous.Reason)
		now.Skipped = c.skipped.Load()
		c.mu.Lock()
		s.Missed += c.demand.missed
		c.mu.Unlock()
		s.Cameras[name] = now
	}
	return s
}
