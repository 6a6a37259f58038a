package capture

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/backoff"
)

// AtEnd selects what a camera does when a file, a directory or another finite source ends.
type AtEnd uint8

// The end-of-file policies.
const (
	Stop AtEnd = iota // Run returns
	Loop              // restarts the source; sequence numbers continue
)

// Defaults of Camera's fields.
const (
	DefaultStallTimeout = 5 * time.Second
	DefaultOpenTimeout  = 10 * time.Second
)

const (
	// stableAfter is how long images must arrive before an outage is over: a later loss is then logged again and retried soon.
	stableAfter = 30 * time.Second
	// maxOpenFactor bounds how many times OpenTimeout a source gets for its first image after it has timed out.
	maxOpenFactor = 8
	// defaultRate paces a source without a declared rate, in frames per second.
	defaultRate = 25
)

// Camera keeps one source running: it opens it, hands out its newest frame, paces files, detects stalls and reconnects for ever. Set the
// exported fields, call Run in its own goroutine, Take in the consumer's, and Close at the end. The fields must not change after that.
type Camera struct {
	// Name appears in messages and topics; URI is what to open (ParseURI).
	Name, URI string
	// Open opens the source for each connection, normally source.Open.
	Open Opener
	// Alloc provides the memory of the frames, see Pool; it must outlive Close. Buffers is their number, DefaultBuffers when 0.
	Alloc   Alloc
	Buffers int
	// Child is the program that reads CSI cameras, see Options.
	Child []string
	// GPU is the number of the GPU that may decode the camera's video, in the driver's order.
	GPU int
	// MaxPixels bounds the pixels of an image, see Options. The frames take up to Buffers times 3 bytes per pixel.
	MaxPixels int
	// KeepUnits is as in Options; Ring returns the units.
	KeepUnits time.Duration
	// Record is the address of another stream of the camera, empty for none. With KeepUnits, OpenRecord opens it, normally
	// source.OpenUndecoded, and Ring returns its units while it is connected. Its faults do not affect the images. SetRecord changes it.
	Record     string
	OpenRecord Opener
	// StallTimeout is the time without a good image after which the source is closed. OpenTimeout is the same for the first image; it
	// doubles, up to maxOpenFactor times, while the source gives none.
	StallTimeout, OpenTimeout time.Duration
	// Retry bounds the delay before reconnecting, by default 0.5 to 30 s, or to 5 s for CSI cameras. DeniedRetry applies after missing or
	// refused credentials, by default 2 to 30 minutes: cameras lock accounts after a few wrong passwords.
	Retry, DeniedRetry backoff.Exponential
	AtEnd              AtEnd
	// Lossless lets the consumer set the pace: the source waits until each frame is taken. Otherwise a finite source runs at its own rate,
	// and a newer frame replaces one that has not been taken in time.
	Lossless bool
	// Once opens the source a single time, and Run returns the error if it cannot be opened or read. Otherwise every failure is retried.
	Once bool
	// Gate reports for every frame whether the scene is still, see Frame.Still. Run's goroutine calls it; nil disables it. *motion.Gate is
	// one.
	Gate interface {
		Still(image engine.Image, at int64) bool
	}
	// SetupThread is called on the thread that waits for the images of a live source, and only does that until it exits. It may set CPU
	// affinity or a scheduling policy. May be nil.
	SetupThread func()
	// Notify is called for each new frame and when Run ends; see Mailbox.
	Notify func()
	// OnChange receives a snapshot after each change of state, image size or format. The calls come from Run's goroutine, in order, at most
	// 250 ms after the change; the last one reports Ended or Failed. It must return soon and must not call Close. May be nil.
	OnChange func(Stats)
	// Logger receives lost and recovered connections, once per reason; slog.Default() when nil.
	Logger *slog.Logger

	once     sync.Once
	pool     Pool
	released <-chan struct{}
	mailbox  Mailbox
	taken    chan struct{} // holds a token after Take if Lossless
	sessions chan struct{} // one token per session that has not returned
	finished chan struct{} // closed when Run returns

	copiedBytes atomic.Int64         // see Stats.CopiedBytes
	ring        atomic.Pointer[Ring] // of the newest connection
	recording   recordStream

	log      healthLog // Run's goroutine only
	reported Stats     // last Stats given to OnChange; Run's goroutine only

	mu       sync.Mutex
	stop     context.CancelFunc // set while Run is running
	closed   bool
	stats    Stats
	arrivals arrivals
}

// recordStream reads Camera.Record.
type recordStream struct {
	camera  atomic.Pointer[Camera] // nil without one
	changed chan struct{}          // holds a token after SetRecord
}

// arrivals is what is known of the frames that a camera has given.
type arrivals struct {
	next         uint64    // sequence number
	noBuffer     uint64    // images received without a free buffer
	period       float64   // smoothed time between frames in nanoseconds
	lastCaptured int64     // capture time of the newest frame, CLOCK_MONOTONIC
	lastTime     time.Time // Frame.Time of the newest frame
}

func (c *Camera) prepare() {
	c.once.Do(func() {
		c.pool.Alloc, c.pool.Buffers = c.Alloc, c.Buffers
		c.released = c.pool.Released()
		c.mailbox.Notify = c.Notify
		c.taken = make(chan struct{}, 1)
		c.sessions = make(chan struct{}, maxSessions)
		if c.StallTimeout <= 0 {
			c.StallTimeout = DefaultStallTimeout
		}
		if c.OpenTimeout <= 0 {
			c.OpenTimeout = DefaultOpenTimeout
		}
		c.Retry = c.Retry.OrElse(backoff.Exponential{Min: 500 * time.Millisecond, Max: c.longestPause()})
		c.DeniedRetry = c.DeniedRetry.OrElse(backoff.Exponential{Min: 2 * time.Minute, Max: 30 * time.Minute})
		if c.Logger == nil {
			c.Logger = slog.Default()
		}
		c.log = healthLog{logger: c.Logger, camera: c.Name}
		c.recording.changed = make(chan struct{}, 1)
		c.recording.camera.Store(c.newRecording(c.Record))
		c.stats = Stats{Name: c.Name, URI: Redact(c.URI), State: Connecting, Since: time.Now()}
	})
}

// longestPause is the longest delay before a camera is opened again. A sensor of this machine is not spared by waiting, and is to be back
// within ten seconds when the process that reads it, or the daemon behind it, has failed several times.
func (c *Camera) longestPause() time.Duration {
	if u, err := ParseURI(c.URI); err == nil && u.Kind == CSI {
		return 5 * time.Second
	}
	return 30 * time.Second
}

// Run captures until the context ends, Close is called or the source ends, and then returns nil. It returns an *Error for a malformed URI
// and, if Once is set, for any failure. It may be called once.
func (c *Camera) Run(ctx context.Context) error {
	c.prepare()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if !c.begin(cancel) {
		return nil
	}
	var recording sync.WaitGroup
	recording.Go(func() { c.record(ctx) })
	err := c.run(ctx)
	cancel()
	recording.Wait()
	c.mu.Lock()
	c.stats.Reason = ""
	if err == nil {
		c.setState(Ended)
	} else {
		c.setState(Failed)
		c.stats.Reason = reason(err)
	}
	c.mu.Unlock()
	c.publishState()
	if c.Notify != nil {
		c.Notify()
	}
	close(c.finished)
	return err
}

func (c *Camera) begin(cancel context.CancelFunc) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed || c.stop != nil {
		return false
	}
	c.stop, c.finished = cancel, make(chan struct{})
	return true
}

func (c *Camera) run(ctx context.Context) error {
	u, err := ParseURI(c.URI)
	if err != nil {
		return err
	}
	var retries retries
	for again := false; ; {
		c.markOpening(again)
		s, err := c.runSession(ctx, u, retries.openTimeout(c.OpenTimeout))
		switch {
		case ctx.Err() != nil:
			return nil //nolint:nilerr // cancelled, whatever the connection returned
		case errors.Is(err, io.EOF) && s.hasImage():
			if c.AtEnd != Loop && !u.Loop {
				return nil
			}
			again = false
			continue
		case errors.Is(err, io.EOF):
			err = u.NewError("read", ErrFormat, "it contains no image", "", nil)
		}
		if c.Once || errors.Is(err, ErrURI) {
			return err
		}
		pause := retries.pause(c, s, err)
		c.markFailed(err, pause)
		if !sleep(ctx, pause) {
			return nil
		}
		again = true
	}
}

// retries counts consecutive failures.
type retries struct {
	failures, denials int
	slow              int // sources that timed out before the first image
}

// pause counts a failed session and returns the delay before the next one.
func (t *retries) pause(c *Camera, s *session, err error) time.Duration {
	if s.stable() {
		*t = retries{}
	}
	switch {
	case errors.Is(err, ErrDenied):
		t.denials++
		return c.DeniedRetry.After(t.denials - 1)
	case errors.Is(err, ErrStalled) && !s.hasImage():
		t.slow++
	}
	t.failures++
	return c.Retry.After(t.failures - 1)
}

// openTimeout is the time that the next source has for its first image.
func (t *retries) openTimeout(first time.Duration) time.Duration {
	return first * time.Duration(min(1<<min(t.slow, 8), maxOpenFactor))
}

// sleep reports whether it has waited without the context ending.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// Take returns the newest frame, which the caller must release, or false if there is no new one. One goroutine at a time may call it.
func (c *Camera) Take() (Frame, bool) {
	c.prepare()
	f, ok := c.mailbox.Take()
	if ok {
		notify(c.taken)
	}
	return f, ok
}

// Ring returns the access units of the newest connection, nil if there are none. It is another one after the camera has been opened again;
// the ring of a lost connection remains until then. Units of Record precede those of URI while it is connected. Ring may be called from any
// goroutine.
func (c *Camera) Ring() *Ring {
	c.prepare()
	if recording := c.recording.camera.Load(); recording != nil {
		if ring := recording.Ring(); ring != nil && ring.Receiving() {
			return ring
		}
	}
	return c.ring.Load()
}

// Reallocate makes later frames use new memory from Alloc, which may by then be another engine's.
func (c *Camera) Reallocate() {
	c.prepare()
	c.pool.Reallocate()
}

// Close ends Run and frees the buffers; lent ones are freed when they are released. It waits for Run, but not for a capture that hangs
// inside OpenCV, which holds no buffer. It is idempotent and may be called without Run.
func (c *Camera) Close() error {
	c.prepare()
	c.mu.Lock()
	c.closed = true
	stop, finished := c.stop, c.finished
	c.mu.Unlock()
	if stop != nil {
		stop()
		<-finished
	}
	c.mailbox.Drop()
	err := c.pool.Close()
	if recording := c.recording.camera.Load(); recording != nil {
		err = errors.Join(err, recording.Close())
	}
	return err
}
