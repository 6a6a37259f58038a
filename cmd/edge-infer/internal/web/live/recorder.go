package live

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
)

const (
	observations = 64  // on their way from the frame goroutine
	occurrences  = 256 // likewise
	// backlog is how many messages may wait for one client.
	backlog = 128
)

// recorder takes copies of what the frame loop found, makes messages of them and gives them to whoever looks. It remembers the latest
// events also when nobody does.
type recorder struct {
	free, full chan *observation
	happened   chan eventCopy
	lost       atomic.Uint64 // observations and events that found no room

	mutex   sync.Mutex
	clients map[*client]struct{}
	memory  memory
	number  uint64
}

// client is one stream of messages.
type client struct {
	messages chan []byte
	missed   atomic.Uint64
}

func newRecorder() *recorder {
	r := &recorder{
		free: make(chan *observation, observations), full: make(chan *observation, observations), happened: make(chan eventCopy, occurrences),
		clients: map[*client]struct{}{}, memory: memory{events: map[string][]Event{}},
	}
	for range observations {
		r.free <- new(observation)
	}
	return r
}

// observe copies a frame's detections. Frame goroutine only.
func (r *recorder) observe(in *pipeline.Result) {
	select {
	case next := <-r.free:
		next.copy(in)
		r.full <- next // never waits, there are as many places as observations
	default:
		r.lost.Add(1)
	}
}

// note copies a frame's events. Frame goroutine only.
func (r *recorder) note(in *pipeline.Result) {
	for i := range in.Events.Events {
		select {
		case r.happened <- copyEvent(in, &in.Events.Events[i]):
		default:
			r.lost.Add(1)
		}
	}
}

// run hands messages on until ctx ends.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-r.full:
			r.tell("frame", next.message())
			r.free <- next
		case next := <-r.happened:
			r.tell("event", r.remember(&next))
		}
	}
}

func (r *recorder) remember(c *eventCopy) Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.number++
	e := c.event(r.number)
	r.memory.add(e)
	return e
}

// tell gives a message to every client that has room for it.
func (r *recorder) tell(kind string, value any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.clients) == 0 {
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // every field is of a type that JSON has
	}
	message := fmt.Appendf(nil, "event: %s\ndata: %s\n\n", kind, data)
	for c := range r.clients {
		select {
		case c.messages <- message:
		default:
			c.missed.Add(1)
			r.lost.Add(1)
		}
	}
}

func (r *recorder) join() *client {
	c := &client{messages: make(chan []byte, backlog)}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.clients[c] = struct{}{}
	return c
}

func (r *recorder) leave(c *client) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	delete(r.clients, c)
}

// Events are those that are remembered and wanted, newest first.
func (f *Feed) Events(q Query) []Event {
	f.recorder.mutex.Lock()
	defer f.recorder.mutex.Unlock()
	return f.recorder.memory.find(q)
}

// Heard is when something happened to an object last, by the clock of this machine; zero when that is not remembered.
func (f *Feed) Heard(camera, object string) time.Time {
	f.recorder.mutex.Lock()
	defer f.recorder.mutex.Unlock()
	return f.recorder.memory.heard(camera, object)
}
