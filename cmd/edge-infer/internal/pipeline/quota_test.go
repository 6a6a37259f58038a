package pipeline

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

// TestQuota: two loops together infer as many frames as asked, although each has a second request in flight.
func TestQuota(t *testing.T) {
	const frames = 21
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	quota := NewQuota(frames, stop)
	loops := make([]*Pipeline, 2)
	sinks := make([]record, len(loops))
	var cameras, runs sync.WaitGroup
	for i := range loops {
		notify := make(signal, 1)
		camera := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
		defer camera.pool.Close()
		loops[i] = open(t, newSlowEngine(0, 1), notify, []Sink{&sinks[i]}, Camera{Name: "a", Source: camera, Lossless: true})
		loops[i].Quota = quota
		ended := make(chan struct{})
		cameras.Go(func() {
			defer close(ended)
			for range 2 * frames {
				for camera.box.Full() { // it waits until the frame before was taken
					if ctx.Err() != nil {
						return
					}
					time.Sleep(100 * time.Microsecond)
				}
				camera.put(t)
			}
		})
		runs.Go(func() { require.NoError(t, loops[i].Run(ctx, ended)) })
	}
	runs.Wait()
	cameras.Wait()
	inferred, seen := uint64(0), 0
	for i, p := range loops {
		inferred += p.Totals()[0].Inferred
		seen += len(sinks[i].seqs["a"])
	}
	require.EqualValues(t, frames, inferred)
	require.Equal(t, frames, seen)
}
