package capture

import (
	"errors"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// State is the connection state of a camera.
type State string

// The states of a camera. Lost and Waiting lead back to Connecting; Ended and Failed are final.
const (
	Connecting State = "connecting" // the source is being opened, or is open and has given no image yet
	Running    State = "running"    // images arrive
	Stalled    State = "stalled"    // no good image for too long; the source is being closed
	Lost       State = "lost"       // the source failed after images had arrived; retried at NextTry
	Waiting    State = "waiting"    // the last attempt gave no image; retried at NextTry
	Hung       State = "hung"       // too many captures hang in a decoder or driver; only a restart of the process helps
	Ended      State = "ended"      // the source has ended or the camera was stopped
	Failed     State = "failed"     // cannot be read and will not be retried
)

// Stats is a snapshot of a camera. Captured = taken by the consumer + Dropped + 1 while Pending.
type Stats struct {
	Name      string             `json:"name"`
	URI       string             `json:"uri"` // without credentials
	State     State              `json:"state"`
	Since     time.Time          `json:"since,omitzero"`    // when the state began
	Reason    string             `json:"reason,omitempty"`  // why no images arrive, with a hint; empty while running
	NextTry   time.Time          `json:"next_try,omitzero"` // while Lost or Waiting
	Tries     uint64             `json:"tries"`             // attempts since the last image
	LastImage time.Time          `json:"last,omitzero"`     // arrival of the newest good image
	Width     int                `json:"width"`             // of the newest frame, pixels
	Height    int                `json:"height"`
	Format    engine.PixelFormat `json:"format"`
	FPS       float64            `json:"fps"` // measured

	Captured   uint64 `json:"captured"`         // good images received
	Dropped    uint64 `json:"dropped_newer"`    // of these, replaced by a newer one before the consumer took them
	Damaged    uint64 `json:"damaged"`          // images that cannot be decoded, not to their end, or exceed a limit
	LastDamage string `json:"damage,omitempty"` // reason of the last one
	Reconnects uint64 `json:"reconnects"`       // times the source was reopened
	Abandoned  uint64 `json:"abandoned"`        // captures abandoned because they hung
	Pending    bool   `json:"pending"`          // a frame is waiting for the consumer
	Lent       int    `json:"lent"`             // buffers held by the source, the mailbox or the consumer

	Connection string `json:"connection,omitempty"` // how a network camera is read, as in "RTSP over TCP"; empty for others
	Decoder    string `json:"decoder,omitempty"`    // what decodes an RTSP camera's video, and why nothing better does; empty for others
	CameraTime bool   `json:"camera_time"`          // times of frames are from the camera's clock, otherwise those of arrival
	// CopiedBytes is the size of the images decoded on a GPU, or their parts, that were copied to host memory.
	CopiedBytes int64 `json:"copied_bytes"`

	Record *RecordStats `json:"record,omitempty"` // nil unless another stream is recorded
}

// RecordStats is the state of the stream that is recorded instead of the one that is decoded. Fields are those of Stats.
type RecordStats struct {
	URI        string    `json:"uri"`
	State      State     `json:"state"`
	Since      time.Time `json:"since,omitzero"`
	Reason     string    `json:"reason,omitempty"`
	NextTry    time.Time `json:"next_try,omitzero"`
	Tries      uint64    `json:"tries"`
	Reconnects uint64    `json:"reconnects"`
	Connection string    `json:"connection,omitempty"`
}

// Problem describes why the stream is not recorded; empty if it is, or has just begun to be.
func (s *RecordStats) Problem() string {
	if s == nil || s.State == Running || s.State == Ended {
		return ""
	}
	return s.Reason
}

// Stats returns a snapshot. It is safe for concurrent use.
func (c *Camera) Stats() Stats {
	c.prepare()
	pending := c.mailbox.Full()
	record := c.recordStats()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Pending, s.Lent = pending, c.pool.Lent()
	s.Record = record
	s.Dropped = c.mailbox.Dropped() + c.arrivals.noBuffer
	s.CopiedBytes = c.copiedBytes.Load()
	if c.arrivals.period > 0 {
		// The rate of a silent camera falls with the length of its silence.
		s.FPS = float64(time.Second) / max(c.arrivals.period, float64(Monotonic()-c.arrivals.lastCaptured)-c.arrivals.period)
	}
	return s
}

// recordStats returns the state of Record, nil without it.
func (c *Camera) recordStats() *RecordStats {
	recording := c.recording.camera.Load()
	if recording == nil {
		return nil
	}
	s := recording.Stats()
	return &RecordStats{
		URI: s.URI, State: s.State, Since: s.Since, Reason: s.Reason, NextTry: s.NextTry, Tries: s.Tries, Reconnects: s.Reconnects,
		Connection: s.Connection,
	}
}

// setState enters a state unless it is the current one. The lock is held.
func (c *Camera) setState(state State) {
	if c.stats.State != state {
		c.stats.State, c.stats.Since = state, time.Now()
	}
	c.stats.NextTry = time.Time{}
}

// publishState calls OnChange after a change of state, image size or format. It belongs to Run's goroutine.
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

// Changed reports whether a stream's state or the image size or format differ from before.
func (s *Stats) Changed(before *Stats) bool {
	if s.Record != nil && (before.Record == nil || s.Record.State != before.Record.State) {
		return true
	}
	return s.State != before.State || !s.Since.Equal(before.Since) ||
		s.Width != before.Width || s.Height != before.Height || s.Format != before.Format
}

// markOpening records that the source is being opened. A looping video stays Running.
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

// setFailing enters a state without images.
func (c *Camera) setFailing(state State, err error) {
	c.mu.Lock()
	c.setState(state)
	c.stats.Reason = reason(err)
	c.mu.Unlock()
	c.publishState()
}

// streamed is implemented by sources that read a network camera. The texts are those of Stats.
type streamed interface {
	Connection() string
	Decoder() string
}

// setStreamed records how the opened source is read and decoded, and reports whether that has changed. The lock must not be held.
func (c *Camera) setStreamed(source Source) (changed bool) {
	s, ok := source.(streamed)
	if !ok {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.stats.Decoder
	c.stats.Connection, c.stats.Decoder = s.Connection(), s.Decoder()
	return c.stats.Decoder != before
}

// markFailed records a failed attempt and the delay before the next.
func (c *Camera) markFailed(err error, pause time.Duration) {
	c.mu.Lock()
	state := Waiting
	if c.stats.Tries == 0 { // images had arrived
		state = Lost
	}
	c.setState(state)
	c.stats.Reason = reason(err)
	c.stats.NextTry = time.Now().Add(pause)
	c.mu.Unlock()
	c.publishState()
	c.log.failed(state, err, pause)
}

// lastFrameTime returns Frame.Time of the newest frame.
func (c *Camera) lastFrameTime() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.arrivals.lastTime
}

// rateSmoothing is the weight of the newest interval in the measured rate.
const rateSmoothing = 0.1

// countFrame numbers a frame and adds it to the statistics. The lock is held.
func (c *Camera) countFrame(f *Frame) {
	f.Seq = c.arrivals.next
	c.arrivals.next++
	c.stats.Captured++
	c.markRunning()
	c.stats.Width, c.stats.Height, c.stats.Format = f.Width, f.Height, f.Format
	c.stats.CameraTime = f.CameraTime
	c.arrivals.lastTime = f.Time
	if c.arrivals.lastCaptured != 0 {
		interval := float64(f.Captured - c.arrivals.lastCaptured)
		if c.arrivals.period == 0 || interval > 10*c.arrivals.period {
			c.arrivals.period = interval
		}
		c.arrivals.period += rateSmoothing * (interval - c.arrivals.period)
	}
	c.arrivals.lastCaptured = f.Captured
}

// markRunning records a good image. The lock is held.
func (c *Camera) markRunning() {
	c.setState(Running)
	c.stats.Reason, c.stats.Tries, c.stats.LastImage = "", 0, time.Now()
}

// countDropped counts an image for which no buffer was free. The lock is held.
func (c *Camera) countDropped() {
	c.arrivals.next++
	c.stats.Captured++
	c.arrivals.noBuffer++
	c.markRunning()
}

// countDamaged counts an image that could not be decoded, or not to its end. The lock is held.
func (c *Camera) countDamaged(why string) {
	c.stats.Damaged++
	c.stats.LastDamage = why
}

// reason returns an error without the camera's name.
func reason(err error) string {
	var typed *Error
	if errors.As(err, &typed) {
		return typed.Reason()
	}
	return err.Error()
}
