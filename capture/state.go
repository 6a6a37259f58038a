package capture

import (
	"errors"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// State is what a camera is doing.
type State string

// The states of a camera. From Lost and Waiting it goes on to Connecting for ever; Ended and Failed are the last ones.
const (
	Connecting State = "connecting" // the source is being opened, or is open and has given no image yet
	Running    State = "running"    // images come
	Stalled    State = "stalled"    // no good image has come for too long; the source is being given up
	Lost       State = "lost"       // there were images, then the source broke off; tried again at NextTry
	Waiting    State = "waiting"    // the last try gave no image; tried again at NextTry
	Hung       State = "hung"       // so many captures hang inside OpenCV that no more are begun; a new start of the process mends that
	Ended      State = "ended"      // the source has ended, or the camera was told to
	Failed     State = "failed"     // it cannot be read and will not be tried again
)

// Stats is a snapshot of a camera. Captured = taken by the consumer + Displaced + 1 while Pending.
type Stats struct {
	Name      string             `json:"name"`
	URI       string             `json:"uri"` // without credentials
	State     State              `json:"state"`
	Since     time.Time          `json:"since,omitzero"`    // when the state began
	Reason    string             `json:"reason,omitempty"`  // why no images come, and what to do about it; empty while running
	NextTry   time.Time          `json:"next_try,omitzero"` // while Lost or Waiting
	Tries     uint64             `json:"tries"`             // times it was opened since the last image
	LastImage time.Time          `json:"last,omitzero"`     // when the newest good image came
	Width     int                `json:"width"`             // of the newest frame, pixels
	Height    int                `json:"height"`
	Format    engine.PixelFormat `json:"format"`
	FPS       float64            `json:"fps"` // measured

	Captured   uint64 `json:"captured"`         // good images that arrived
	Dropped    uint64 `json:"displaced"`        // of these, the ones that no consumer took in time
	Damaged    uint64 `json:"damaged"`          // images that cannot be decoded or exceed a limit
	LastDamage string `json:"damage,omitempty"` // what is wrong with the last of these
	Reconnects uint64 `json:"reconnects"`       // times it was opened again
	Abandoned  uint64 `json:"abandoned"`        // captures left behind because they hung
	Pending    bool   `json:"pending"`          // a frame waits for the consumer
	Lent       int    `json:"lent"`             // buffers that are out: with the source, in wait, or with the consumer
}

// Stats may be called from any goroutine at any time.
func (c *Camera) Stats() Stats {
	c.prepare()
	pending := c.mailbox.Full()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Pending, s.Lent = pending, c.pool.Lent()
	s.Dropped = c.mailbox.Dropped() + c.noBuffer
	if c.period > 0 {
		// A camera that has fallen silent is as slow as its silence is long.
		s.FPS = float64(time.Second) / max(c.period, float64(Monotonic()-c.lastCaptured)-c.period)
	}
	return s
}

// setState begins a state, if it is another one. The lock is held.
func (c *Camera) setState(state State) {
	if c.stats.State != state {
		c.stats.State, c.stats.Since = state, time.Now()
	}
	c.stats.NextTry = time.Time{}
}

// publishState tells Changed of a new state, or of images of another form. It belongs to Run's goroutine.
func (c *Camera) publishState() {
	now := c.Stats()
	if now.State == Running {
		c.log.running()
	}
	c.log.damaged(now.Damaged, now.LastDamage)
	if !now.Changed(&c.reported) {
		return
	}
	c.reported = now
	if c.OnChange != nil {
		c.OnChange(now)
	}
}

// Changed reports whether the camera has entered another state, or its images have another form.
func (s *Stats) Changed(before *Stats) bool {
	return s.State != before.State || !s.Since.Equal(before.Since) ||
		s.Width != before.Width || s.Height != before.Height || s.Format != before.Format
}

// markOpening notes that the source is opened. A video that begins again goes on running.
func (c *Camera) markOpening(again bool) {
	c.mu.Lock()
	if again {
		c.stats.Reconnects++
	}
	if c.stats.State != Running {
		c.stats.Tries++
		c.setState(Connecting)
	}
	c.mu.Unlock()
	c.publishState()
}

// setFailing begins a state in which no images come.
func (c *Camera) setFailing(state State, err error) {
	c.mu.Lock()
	c.setState(state)
	c.stats.Reason = reason(err)
	c.mu.Unlock()
	c.publishState()
}

// markFailed notes a try that is over, and the pause until the next.
func (c *Camera) markFailed(err error, pause time.Duration) {
	c.mu.Lock()
	state := Waiting
	if c.stats.Tries == 0 { // there were images
		state = Lost
	}
	c.setState(state)
	c.stats.Reason = reason(err)
	c.stats.NextTry = time.Now().Add(pause)
	c.mu.Unlock()
	c.publishState()
	c.log.failed(state, err, pause)
}

// lastFrameTime is the video's time of the newest frame.
func (c *Camera) lastFrameTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lastTime
}

// rateSmoothing is the weight of the newest interval in the measured rate.
const rateSmoothing = 0.1

// countFrame numbers a frame and adds it to the statistics. The lock is held.
func (c *Camera) countFrame(f *Frame) {
	f.Seq = c.next
	c.next++
	c.stats.Captured++
	c.markRunning()
	c.stats.Width, c.stats.Height, c.stats.Format = f.Width, f.Height, f.Format
	c.lastTime = f.Time
	if c.lastCaptured != 0 {
		interval := float64(f.Captured - c.lastCaptured)
		if c.period == 0 || interval > 10*c.period {
			c.period = interval
		}
		c.period += rateSmoothing * (interval - c.period)
	}
	c.lastCaptured = f.Captured
}

// markRunning notes a good image. The lock is held.
func (c *Camera) markRunning() {
	c.setState(Running)
	c.stats.Reason, c.stats.Tries, c.stats.LastImage = "", 0, time.Now()
}

// countDropped counts an image that found every buffer in use. The lock is held.
func (c *Camera) countDropped() {
	c.next++
	c.stats.Captured++
	c.noBuffer++
	c.markRunning()
}

// countDamaged counts an image that is none. The lock is held.
func (c *Camera) countDamaged(why string) {
	c.stats.Damaged++
	c.stats.LastDamage = why
}

// reason is why there are no images, for somebody who knows which camera it is about.
func reason(err error) string {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.Reason()
	}
	return err.Error()
}
