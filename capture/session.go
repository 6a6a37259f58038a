package capture

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// session is one connection to a camera's source, from open to failure. It runs in its own goroutine, which may hang in a decoder or a
// driver.
type session struct {
	camera      *Camera
	uri         URI
	ctx         context.Context
	openTimeout time.Duration
	done        chan error

	started, lastTime time.Time // wall-clock start of the video and time of its newest frame

	// Read by the camera's goroutine:
	progress atomic.Uint64          // signs of life
	blocked  atomic.Bool            // the source waits for its consumer
	first    atomic.Int64           // when the first image arrived, CLOCK_MONOTONIC; 0 before
	damage   atomic.Pointer[string] // why the images since the last good one were damaged

	abandoned bool // guarded by camera.mu: the camera has moved on without this session
}

var errAbandoned = errors.New("the camera has gone on")

// hasImage reports whether an image has arrived.
func (s *session) hasImage() bool { return s.first.Load() != 0 }

// stable reports whether images have arrived long enough that a retry need not wait.
func (s *session) stable() bool {
	return s.hasImage() && Monotonic()-s.first.Load() >= int64(stableAfter)
}

// stallError returns the error of a session without progress.
func (s *session) stallError(limit time.Duration) error {
	which := "image"
	if !s.hasImage() {
		which = "first image"
	}
	if damage := s.damage.Load(); damage != nil {
		return s.uri.NewError("read", ErrStalled, "no good "+which+" for "+limit.String()+": "+*damage, "", nil)
	}
	return s.uri.NewError("read", ErrStalled, "no "+which+" for "+limit.String(), "", nil)
}

func (s *session) run() error {
	c := s.camera
	source, err := c.Open(s.ctx, c.URI, Options{
		OpenTimeout: s.openTimeout, ReadTimeout: c.StallTimeout, EveryFrame: c.Lossless, MaxPixels: c.MaxPixels,
		GPU: c.GPU, CopiedBytes: &c.copiedBytes, KeepUnits: c.KeepUnits, Child: c.Child,
	})
	if err != nil {
		return err
	}
	defer source.Close()
	c.setStreamed(source)
	s.publishRing(source)
	if c.SetupThread != nil && source.Live() {
		runtime.LockOSThread() // never unlocked: the thread exits with this goroutine, and its settings with it
		c.SetupThread()
	}
	p := pacer{session: s}
	if !c.Lossless && !source.Live() {
		p.rate = source.FPS()
		if p.rate <= 0 {
			p.rate = defaultRate
		}
	}
	for {
		if !p.wait() {
			return s.ctx.Err()
		}
		f, err := source.Next(s)
		switch {
		case s.ctx.Err() != nil:
			f.Release()
			return s.ctx.Err()
		case errors.Is(err, ErrNoBuffer):
			err = s.arrived(c.countDropped)
		case errors.Is(err, ErrNotDecoded):
			err = s.arrived(c.markRunning)
		case errors.Is(err, ErrImage):
			err = s.damaged(err)
			if c.setStreamed(source) { // another decoder has taken over
				c.Logger.Warn("decoder replaced", "camera", c.Name, "decoder", c.Stats().Decoder)
			}
			if !source.Live() {
				s.progress.Add(1) // a file makes progress despite damaged images
			}
		case err == nil:
			if c.Lossless && !source.Live() {
				f.Time = s.videoTime(&f)
			}
			err = s.deliver(f)
		}
		if err != nil {
			return err
		}
	}
}

// publishRing makes the access units of the source available, unless the camera has moved on.
func (s *session) publishRing(source Source) {
	var ring *Ring
	if packets, ok := source.(Packets); ok {
		ring = packets.Ring()
	}
	s.camera.mu.Lock()
	defer s.camera.mu.Unlock()
	if !s.abandoned {
		s.camera.ring.Store(ring)
	}
}

// videoTime is the start of the video, taken as now, plus the frame's position. It never goes backwards, not even when a video restarts.
func (s *session) videoTime(f *Frame) time.Time {
	if s.started.IsZero() {
		s.started = f.Time
		if last := s.camera.lastFrameTime(); last.After(s.started) {
			s.started = last
		}
		s.lastTime = s.started
	}
	if f.Position == 0 && f.Seq > 0 {
		return f.Time // no position known
	}
	if at := s.started.Add(f.Position); at.After(s.lastTime) {
		s.lastTime = at
	}
	return s.lastTime
}

// Frame implements Lender for the source.
func (s *session) Frame(format engine.PixelFormat, width, height int) (Frame, error) {
	return s.lend(func() (Frame, error) { return s.camera.pool.Frame(format, width, height) })
}

// DeviceFrame implements Lender for the source.
func (s *session) DeviceFrame(alloc DeviceAlloc, format engine.PixelFormat, width, height int) (Frame, error) {
	return s.lend(func() (Frame, error) { return s.camera.pool.DeviceFrame(alloc, format, width, height) })
}

// lend takes a frame from the pool. When all buffers are lent, the frame waiting for the consumer is dropped.
func (s *session) lend(take func() (Frame, error)) (Frame, error) {
	c := s.camera
	for {
		if err := s.ctx.Err(); err != nil {
			return Frame{}, err
		}
		f, err := take()
		switch {
		case !errors.Is(err, ErrNoBuffer):
			return f, err
		case !c.Lossless:
			if !c.mailbox.Drop() {
				return Frame{}, err
			}
		case !s.waitFor(c.released):
			return Frame{}, s.ctx.Err()
		}
	}
}

// waitFor waits for the consumer; it returns false when the context has ended.
func (s *session) waitFor(signal <-chan struct{}) bool {
	defer s.blocked.Store(s.blocked.Swap(true))
	select {
	case <-signal:
		return true
	case <-s.ctx.Done():
		return false
	}
}

// deliver numbers the frame and puts it into the mailbox.
func (s *session) deliver(f Frame) error {
	c := s.camera
	f.Ready = Monotonic()
	f.Still = c.Gate != nil && c.Gate.Still(f.Image(), f.Captured)
	for c.Lossless && c.mailbox.Full() {
		if !s.waitFor(c.taken) {
			f.Release()
			return s.ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.abandoned {
		f.Release()
		return errAbandoned
	}
	s.markGood()
	c.countFrame(&f)
	if f.Damaged {
		c.countDamaged("the image is incomplete")
	}
	c.mailbox.Put(f)
	return nil
}

// arrived records a good image that becomes no frame: no buffer was free, or it is not decoded. record is called with the lock held.
func (s *session) arrived(record func()) error {
	c := s.camera
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.abandoned {
		return errAbandoned
	}
	s.markGood()
	record()
	return nil
}

// damaged counts an image that could not be decoded at all.
func (s *session) damaged(err error) error {
	why := reason(err)
	s.damage.Store(&why)
	c := s.camera
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.abandoned {
		return errAbandoned
	}
	c.countDamaged(why)
	return nil
}

// markGood records a good image.
func (s *session) markGood() {
	if !s.hasImage() {
		s.first.Store(Monotonic())
	}
	s.damage.Store(nil)
	s.progress.Add(1)
}

// pacer limits a source to a rate.
type pacer struct {
	session *session
	rate    float64 // frames per second, 0 for no limit
	start   int64   // CLOCK_MONOTONIC of frame 0 of the schedule
	frames  int64
	timer   *time.Timer
}

// maxLag is the delay in nanoseconds after which the schedule restarts.
const maxLag = int64(time.Second)

// wait returns when the next frame is due, or false when the context has ended.
func (p *pacer) wait() bool {
	if p.rate <= 0 {
		return p.session.ctx.Err() == nil
	}
	now := Monotonic()
	due := p.start + int64(float64(p.frames)*float64(time.Second)/p.rate)
	if p.frames == 0 || now-due > maxLag {
		p.start, p.frames, due = now, 0, now
	}
	p.frames++
	if due <= now {
		return p.session.ctx.Err() == nil
	}
	if p.timer == nil {
		p.timer = time.NewTimer(time.Duration(due - now))
	} else {
		p.timer.Reset(time.Duration(due - now))
	}
	defer p.session.blocked.Store(p.session.blocked.Swap(true))
	select {
	case <-p.timer.C:
		return true
	case <-p.session.ctx.Done():
		p.timer.Stop()
		return false
	}
}
