package pipeline

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// told is what a camera's sink frames told: how many images, which tracks began and ended, and the newest count.
type told struct {
	images  int
	began   []uint64
	ended   []uint64
	present int
}

type story struct {
	told
	mu sync.Mutex
}

func (s *story) Frame(in *Result) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if in.Frame != nil {
		s.images++
	}
	if in.Events == nil {
		return
	}
	for _, e := range in.Events.Events {
		switch e.Kind {
		case zone.New:
			s.began = append(s.began, e.Object.Track)
		case zone.End:
			s.ended = append(s.ended, e.Object.Track)
		}
	}
	for _, change := range in.Events.Changes {
		if change.Counter == zone.Present {
			s.present = change.Value
		}
	}
}

func (s *story) now() told {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.told
}

// TestACameraThatLeavesTakesItsObjectsAlong: all its objects end once its last image is through, and those after its return are new ones.
func TestACameraThatLeavesTakesItsObjectsAlong(t *testing.T) { synctest.Test(t, leaves) }

func leaves(t *testing.T) {
	notify := make(signal, 1)
	camera, other := &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}, &boxCamera{box: capture.Mailbox{Notify: notify.Signal}}
	defer camera.pool.Close()
	defer other.pool.Close()
	follower := &Tracker{Labels: []string{"a", "b", "c", "d", "e", "f"}, Confidence: 0.25}
	require.NoError(t, follower.Open())
	var seen story
	only := sinkFunc(func(in *Result) {
		if in.Camera == "a" {
			seen.Frame(in)
		}
	})
	p := open(t, newSlowEngine(5*time.Millisecond, 1), notify, []Sink{only}, Camera{Name: "a", Source: camera, Tracker: follower},
		Camera{Name: "b", Source: other})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, nil) }()
	var feeding sync.WaitGroup
	feeding.Go(func() { // the other one keeps the loop busy
		for ctx.Err() == nil {
			other.put(t)
			time.Sleep(time.Millisecond)
		}
	})
	show := func(images int) {
		for range images {
			camera.put(t)
			camera.seq = 20 // what is seen stands still
			time.Sleep(50 * time.Millisecond)
		}
	}
	show(10)
	before := seen.now()
	require.Len(t, before.began, 1)
	require.Empty(t, before.ended)
	require.Equal(t, 1, before.present)

	camera.put(t) // waits when the camera leaves
	p.EndObjects("a")
	p.EndObjects("unknown")
	time.Sleep(50 * time.Millisecond)
	after := seen.now()
	require.Equal(t, before.images+1, after.images, "the last image was looked at")
	require.Equal(t, before.began, after.ended)
	require.Zero(t, after.present)
	time.Sleep(5 * time.Second)
	require.Equal(t, after, seen.now(), "once")

	show(10)
	again := seen.now()
	require.Len(t, again.began, 2)
	require.NotEqual(t, again.began[0], again.began[1], "it is another object")
	require.Equal(t, 1, again.present)

	p.EndObjects("a")
	camera.put(t) // back before anybody has looked
	time.Sleep(50 * time.Millisecond)
	require.Equal(t, again.began, seen.now().ended)
	cancel()
	feeding.Wait()
	require.NoError(t, <-done)
}

// TestImagesOfAnotherSizeHaveNewObjects: where something was on an image of another size says nothing.
func TestImagesOfAnotherSizeHaveNewObjects(t *testing.T) {
	follower := &Tracker{Labels: []string{"a", "b", "c", "d", "e", "f"}, Confidence: 0.25}
	require.NoError(t, follower.Open())
	var seen story
	camera := &boxCamera{}
	defer camera.pool.Close()
	p := open(t, newSlowEngine(0, 1), nil, []Sink{&seen}, Camera{Name: "a", Source: camera, Tracker: follower})
	for i := range 10 {
		camera.put(t)
		camera.seq = 20
		require.True(t, p.gather(&p.requests[0]))
		if i >= 5 {
			p.requests[0].frames[0].Width = 128
		}
		p.submit(0)
		p.finish(0)
	}
	end := seen.now()
	require.Len(t, end.began, 2)
	require.Equal(t, end.began[:1], end.ended)
	require.Equal(t, 1, end.present)
}
