package mqtt

import (
	"sync"
	"time"
)

// coalesced runs a function at most once in a pause: at once after a quiet pause, otherwise at its end for all calls within it.
type coalesced struct {
	pause time.Duration
	run   func()

	running sync.Mutex // held while run runs
	mu      sync.Mutex
	last    time.Time   // of the newest run
	pending *time.Timer // nil while no run is due
}

// Do runs the function, or leaves that to the end of the pause.
func (c *coalesced) Do() {
	c.mu.Lock()
	left := c.pause - time.Since(c.last)
	now := c.pending == nil && left <= 0
	if c.pending == nil && left > 0 {
		c.pending = time.AfterFunc(left, c.execute)
	}
	c.mu.Unlock()
	if now {
		c.execute()
	}
}

// Flush runs the function if that is due.
func (c *coalesced) Flush() {
	c.mu.Lock()
	due := c.pending != nil
	c.mu.Unlock()
	if due {
		c.execute()
	}
	c.running.Lock() // a run that has begun ends first
	defer c.running.Unlock()
}

func (c *coalesced) execute() {
	c.running.Lock()
	defer c.running.Unlock()
	c.mu.Lock()
	if c.pending != nil {
		c.pending.Stop()
		c.pending = nil
	}
	c.last = time.Now()
	c.mu.Unlock()
	c.run()
}
