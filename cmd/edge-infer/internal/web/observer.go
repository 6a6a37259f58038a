package web

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

const (
	observations = 64  // on their way from the frame goroutine
	happenings   = 256 // likewise
	// backlog is how many messages may wait for one client.
	backlog = 128
	// remembered is how many events the list holds.
	remembered = 500
)

// observer takes copies of what the frame loop found, makes messages of them and gives them to whoever looks. It remembers the latest events
// also when nobody does.
type observer struct {
	free, full chan *observation
	happened   chan happening
	lost       atomic.Uint64 // observations and happenings that found no room

	mutex   sync.Mutex
	clients map[*client]struct{}
	events  []event // oldest first
	number  uint64
}

// client is one stream of messages.
type client struct {
	messages chan []byte
	missed   atomic.Uint64
}

func newObserver() *observer {
	o := &observer{
		free: make(chan *observation, observations), full: make(chan *observation, observations), happened: make(chan happening, happenings),
		clients: map[*client]struct{}{},
	}
	for range observations {
		o.free <- new(observation)
	}
	return o
}

// observe copies a frame's detections. Frame goroutine only.
func (o *observer) observe(in *pipeline.Inferred) {
	select {
	case next := <-o.free:
		next.copy(in)
		o.full <- next // never waits, there are as many places as observations
	default:
		o.lost.Add(1)
	}
}

// note copies a frame's events. Frame goroutine only.
func (o *observer) note(in *pipeline.Inferred) {
	for i := range in.Happened.Events {
		select {
		case o.happened <- newHappening(in, &in.Happened.Events[i]):
		default:
			o.lost.Add(1)
		}
	}
}

// run hands messages on until ctx ends.
func (o *observer) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-o.full:
			o.tell("frame", next.message())
			o.free <- next
		case next := <-o.happened:
			o.tell("event", o.remember(&next))
		}
	}
}

func (o *observer) remember(h *happening) event {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.number++
	e := h.event(o.number)
	if len(o.events) == remembered {
		o.events = slices.Delete(o.events, 0, remembered/4)
	}
	o.events = append(o.events, e)
	return e
}

// latest are the newest events of a camera, or of all when it is empty, newest first.
func (o *observer) latest(camera string, limit int) []event {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	list := []event{}
	for i := len(o.events) - 1; i >= 0 && len(list) < limit; i-- {
		if camera == "" || o.events[i].Camera == camera {
			list = append(list, o.events[i])
		}
	}
	return list
}

// tell gives a message to every client that has room for it.
func (o *observer) tell(kind string, value any) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	if len(o.clients) == 0 {
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // every field is of a type that JSON has
	}
	message := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	for c := range o.clients {
		select {
		case c.messages <- message:
		default:
			c.missed.Add(1)
			o.lost.Add(1)
		}
	}
}

func (o *observer) join() *client {
	c := &client{messages: make(chan []byte, backlog)}
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.clients[c] = struct{}{}
	return c
}

func (o *observer) leave(c *client) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	delete(o.clients, c)
}
