package telemetry

import (
	"context"
	"sync/atomic"
	"time"
)

// Monitor reads the sensors every few seconds in its own goroutine, so that callers never wait for a sensor.
type Monitor struct {
	Reader *Reader
	// Interval is the time between two readings, 5 s when 0.
	Interval time.Duration

	latest atomic.Pointer[Reading]
}

const (
	defaultInterval = 5 * time.Second
	// stopTimeout is how long an ending Run waits for a reading that is under way.
	stopTimeout = time.Second
)

// Run takes readings until ctx ends. A driver that never answers holds a goroutine, not Run.
func (m *Monitor) Run(ctx context.Context) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer m.Reader.Close()
		ticker := time.NewTicker(m.interval())
		defer ticker.Stop()
		for {
			m.latest.Store(m.Reader.Read())
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
		}
	}()
	<-ctx.Done()
	timer := time.NewTimer(stopTimeout)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

func (m *Monitor) interval() time.Duration {
	if m.Interval > 0 {
		return m.Interval
	}
	return defaultInterval
}

// Latest is the newest reading, nil before the first one and when it has become too old to be true: then a driver hangs. It may be called
// from any goroutine.
func (m *Monitor) Latest() *Reading {
	reading := m.latest.Load()
	if reading == nil || time.Since(reading.Time) > 3*m.interval()+stopTimeout {
		return nil
	}
	return reading
}
