package capture

import (
	"context"
	"errors"
	"regexp"
	"sync/atomic"
	"time"
)

// remote matches pipelines that read from a network, whose first failure may go away.
var remote = regexp.MustCompile(`rtspsrc|souphttpsrc|udpsrc|tcpclientsrc|srtsrc|rtmpsrc|webrtc|[a-z]+://`)

// session is one life of a camera's source, from open to failure. Everything runs in its own goroutine, which may hang inside OpenCV.
type session struct {
	camera *Camera
	uri    URI
	ctx    context.Context
	done   chan error

	began, shown time.Time // of the film, and of its newest picture

	// Read by the camera's goroutine.
	alive   atomic.Int64 // the last sign of life, CLOCK_MONOTONIC; 0 while the source is not what is waited for
	running atomic.Bool  // there has been a picture

	left bool // guarded by camera.mu: the camera has gone on without this session
}

var errLeft = errors.New("the camera has gone on")

func (s *session) run() error {
	c := s.camera
	source, err := s.uri.Open(s.ctx, Options{
		OpenTimeout: c.OpenTimeout, ReadTimeout: c.StallTimeout, Every: c.Lossless, Decoder: c.Decoder,
	})
	if err != nil {
		return err
	}
	defer source.Close()
	p := pace{session: s}
	if !c.Lossless && !c.FlatOut && !source.Live() {
		if p.rate = source.FPS(); p.rate <= 0 {
			p.rate = defaultRate
		}
	}
	for {
		if !p.wait() {
			return s.ctx.Err()
		}
		f, err := source.Next(s)
		s.alive.Store(Monotonic())
		switch {
		case s.ctx.Err() != nil:
			f.Release()
			return s.ctx.Err()
		case errors.Is(err, ErrNoBuffer):
			c.missed()
		case errors.Is(err, ErrPicture):
			c.damaged(err)
		case err != nil:
			return err
		default:
			s.running.Store(true)
			if p.rate == 0 && !source.Live() {
				f.Time = s.filmed(&f)
			}
			if err := s.deliver(f); err != nil {
				return err
			}
		}
	}
}

// filmed is the film's time of a frame: that of its beginning, which is now, and its position. It never goes back, also when a film begins again.
func (s *session) filmed(f *Frame) time.Time {
	if s.began.IsZero() {
		s.began = f.Time
		if last := s.camera.newest(); last.After(s.began) {
			s.began = last
		}
		s.shown = s.began
	}
	if f.position == 0 && f.Seq > 0 {
		return f.Time // there is no other time
	}
	if at := s.began.Add(f.position); at.After(s.shown) {
		s.shown = at
	}
	return s.shown
}

// Frame is the Lender of the source. When all buffers are out, the frame that waits for the consumer gives up its own.
func (s *session) Frame(format PixelFormat, width, height int) (Frame, error) {
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
			if !c.mailbox.Displace() {
				return Frame{}, err
			}
		case !s.await(c.freed):
			return Frame{}, s.ctx.Err()
		}
	}
}

// await waits for somebody else than the source; false when the context has ended.
func (s *session) await(signal <-chan struct{}) bool {
	s.alive.Store(0)
	defer func() { s.alive.Store(Monotonic()) }()
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
	for c.Lossless && c.mailbox.Full() {
		if !s.await(c.taken) {
			f.Release()
			return s.ctx.Err()
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if s.left {
		f.Release()
		return errLeft
	}
	if c.stats.State != Running && c.stats.Reconnects > 0 {
		c.Logger.Info("camera back", "camera", c.Name)
	}
	c.count(&f)
	c.mailbox.Put(f)
	return nil
}

// pace holds a source to a rate.
type pace struct {
	session *session
	rate    float64 // frames a second, 0 for as fast as it goes
	start   int64   // CLOCK_MONOTONIC of the frame that frames counts from
	frames  int64
	timer   *time.Timer
}

// lag is how late a frame may be before the schedule starts anew, in nanoseconds.
const lag = int64(time.Second)

// wait returns when the next frame is due; false when the context has ended.
func (p *pace) wait() bool {
	if p.rate <= 0 {
		return p.session.ctx.Err() == nil
	}
	now := Monotonic()
	due := p.start + int64(float64(p.frames)*float64(time.Second)/p.rate)
	if p.frames == 0 || now-due > lag {
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
	p.session.alive.Store(0)
	defer func() { p.session.alive.Store(Monotonic()) }()
	select {
	case <-p.timer.C:
		return true
	case <-p.session.ctx.Done():
		p.timer.Stop()
		return false
	}
}
