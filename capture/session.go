package capture

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// session is one life of a camera's source, from open to failure. Everything runs in its own goroutine, which may hang inside OpenCV.
type session struct {
	camera      *Camera
	uri         URI
	ctx         context.Context
	openTimeout time.Duration
	done        chan error

	started, lastTime time.Time // of the video, and of its newest image

	// Read by the camera's goroutine.
	progress    atomic.Uint64          // signs of life
	blocked atomic.Bool            // the source waits for somebody else
	first   atomic.Int64           // when the first image came, CLOCK_MONOTONIC; 0 before
	damage  atomic.Pointer[string] // what is wrong with the images that came since the last good one

	abandoned bool // guarded by camera.mu: the camera has gone on without this session
}

var errAbandoned = errors.New("the camera has gone on")

// hasImage reports whether there has been an image.
func (s *session) hasImage() bool { return s.first.Load() != 0 }

// stableAfter reports whether images have come for long enough that another try need not wait.
func (s *session) stable() bool { return s.hasImage() && Monotonic()-s.first.Load() >= int64(stableAfter) }

// stallError is the error of a session that shows no life.
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
	})
	if err != nil {
		return err
	}
	defer source.Close()
	if c.SetupThread != nil && source.Live() {
		runtime.LockOSThread() // for good: the thread ends with this goroutine, and nobody inherits what it was given
		c.SetupThread()
	}
	p := pacer{session: s}
	if !c.Lossless && !source.Live() {
		if p.rate = source.FPS(); p.rate <= 0 {
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
			err = s.dropped()
		case errors.Is(err, ErrImage):
			if err = s.damaged(err); !source.Live() {
				s.progress.Add(1) // it gets on, to its end
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

// filmed is the video's time of a frame: that of its beginning, which is now, and its position. It never goes back, also when a video begins
// again.
func (s *session) videoTime(f *Frame) time.Time {
	if s.started.IsZero() {
		s.started = f.Time
		if last := s.camera.lastFrameTime(); last.After(s.started) {
			s.started = last
		}
		s.lastTime = s.started
	}
	if f.Position == 0 && f.Seq > 0 {
		return f.Time // there is no other time
	}
	if at := s.started.Add(f.Position); at.After(s.lastTime) {
		s.lastTime = at
	}
	return s.lastTime
}

// Frame is the Lender of the source. When all buffers are out, the frame that waits for the consumer gives up its own.
func (s *session) Frame(format engine.PixelFormat, width, height int) (Frame, error) {
	c := s.camera
	for {
		if err := s.ctx.Err(); err != nil {
			return Frame{}, err
		}
		f, err := c.pool.Frame(format, width, height)
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

// waitFor waits for somebody else than the source; false when the context has ended.
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
	c.mailbox.Put(f)
	return nil
}

// dropped counts an image that found every buffer in use.
func (s *session) dropped() error {
	c := s.camera
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.abandoned {
		return errAbandoned
	}
	s.markGood()
	c.countDropped()
	return nil
}

// damaged counts an image that is none.
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

// markGood notes a good image.
func (s *session) markGood() {
	if !s.hasImage() {
		s.first.Store(Monotonic())
	}
	s.damage.Store(nil)
	s.progress.Add(1)
}

// pacer holds a source to a rate.
type pacer struct {
	session *session
	rate    float64 // frames a second, 0 for as fast as it goes
	start   int64   // CLOCK_MONOTONIC of the frame that frames counts from
	frames  int64
	timer   *time.Timer
}

// maxLag is how late a frame may be before the schedule starts anew, in nanoseconds.
const maxLag = int64(time.Second)

// wait returns when the next frame is due; false when the context has ended.
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
