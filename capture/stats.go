package capture

import "time"

// State is what a camera is doing.
type State string

// The states of a camera.
const (
	Opening      State = "opening"
	Running      State = "running"
	Reconnecting State = "reconnecting"
	Stalled      State = "stalled"
	Ended        State = "ended"
	Failed       State = "failed"
)

// Stats is a snapshot of a camera. Captured = taken by the consumer + Displaced + the one frame that may wait.
type Stats struct {
	Name       string      `json:"name"`
	URI        string      `json:"uri"` // without credentials
	State      State       `json:"state"`
	Error      string      `json:"error,omitempty"` // of the last failure; empty while running
	Captured   uint64      `json:"captured"`        // pictures that arrived
	Displaced  uint64      `json:"displaced"`       // of these, the ones that no consumer took in time
	Errors     uint64      `json:"errors"`          // failed connections and damaged pictures
	Reconnects uint64      `json:"reconnects"`
	Abandoned  uint64      `json:"abandoned"` // captures left behind because they hung
	FPS        float64     `json:"fps"`       // measured
	Width      int         `json:"width"`     // of the newest frame, pixels
	Height     int         `json:"height"`
	Format     PixelFormat `json:"format"`
	Last       time.Time   `json:"last,omitzero"` // time of the newest frame
}

// Stats may be called from any goroutine at any time.
func (c *Camera) Stats() Stats {
	c.prepare()
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Displaced = c.mailbox.Displaced() + c.lost
	if c.period > 0 {
		// A camera that has fallen silent is as slow as its silence is long.
		s.FPS = float64(time.Second) / max(c.period, float64(Monotonic()-c.last)-c.period)
	}
	return s
}

// newest is the time of the newest frame.
func (c *Camera) newest() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats.Last
}

func (c *Camera) captured() uint64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.stats.Captured
}

// smoothing is the weight of the newest interval in the measured rate.
const smoothing = 0.1

// count numbers a frame and adds it to the statistics. The lock is held.
func (c *Camera) count(f *Frame) {
	f.Seq = c.next
	c.next++
	c.stats.Captured++
	c.stats.State, c.stats.Error = Running, ""
	c.stats.Width, c.stats.Height, c.stats.Format, c.stats.Last = f.Width, f.Height, f.Format, f.Time
	if c.last != 0 {
		interval := float64(f.Captured - c.last)
		if c.period == 0 || interval > 10*c.period {
			c.period = interval
		}
		c.period += smoothing * (interval - c.period)
	}
	c.last = f.Captured
}

// missed counts a picture that found every buffer in use.
func (c *Camera) missed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next++
	c.stats.Captured++
	c.lost++
}

// damaged counts a picture that could not be decoded.
func (c *Camera) damaged(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
	c.stats.Error = err.Error()
}

// failed counts a lost connection.
func (c *Camera) failed(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.Errors++
	c.stats.Reconnects++
	c.stats.State, c.stats.Error = Reconnecting, err.Error()
}

// stuck notes that nothing comes.
func (c *Camera) stuck(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.stats.State, c.stats.Error = Stalled, err.Error()
}
