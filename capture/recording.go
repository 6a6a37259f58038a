package capture

import (
	"context"
	"sync"
)

// SetRecord changes Record, also of a running camera: the other stream alone is closed and opened. It may be called from any goroutine.
// Without KeepUnits it has no effect.
func (c *Camera) SetRecord(uri string) {
	c.prepare()
	before := c.recording.camera.Load()
	if before == nil && uri == "" || before != nil && before.URI == uri {
		return
	}
	c.recording.camera.Store(c.newRecording(uri))
	notify(c.recording.changed)
}

// newRecording returns the camera that reads Record, nil without one.
func (c *Camera) newRecording(uri string) *Camera {
	if uri == "" || c.KeepUnits <= 0 {
		return nil
	}
	return &Camera{
		Name: c.Name, URI: uri, Open: c.OpenRecord, KeepUnits: c.KeepUnits, StallTimeout: c.StallTimeout, OpenTimeout: c.OpenTimeout,
		Retry: c.Retry, DeniedRetry: c.DeniedRetry, Logger: c.Logger.With("stream", "record"),
	}
}

// record reads Record, and after SetRecord the other address, until the context ends.
func (c *Camera) record(ctx context.Context) {
	var running sync.WaitGroup
	defer running.Wait()
	var now *Camera
	for {
		next := c.recording.camera.Load()
		if next != now {
			if now != nil {
				_ = now.Close() // of a ring: it has no buffers
			}
			now = next
			if now != nil {
				running.Go(func() { _ = next.Run(ctx) })
			}
		}
		select {
		case <-c.recording.changed:
		case <-ctx.Done():
			return
		}
	}
}
