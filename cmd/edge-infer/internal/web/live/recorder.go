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
	frameQueue = 64  // on their way from the frame goroutine
	eventQueue = 256 // likewise
	// clientQueue is how many messages may wait for one client.
	clientQueue = 128
)

// recorder takes copies of what the frame loop found, makes messages of them and gives them to whoever looks. It remembers the latest
// events also when nobody does.
type recorder struct {
	free, full chan *frameCopy
	events     chan eventCopy
	lost       atomic.Uint64 // frameQueue and events that found no room

	mutex   sync.Mutex
	clients map[*client]struct{}
	stored  eventStore
	number  uint64
}

// client is one stream of messages.
type client struct {
	messages chan []byte
	missed   atomic.Uint64
}

func newRecorder() *recorder {
	r := &recorder{
		free: make(chan *frameCopy, frameQueue), full: make(chan *frameCopy, frameQueue), events: make(chan eventCopy, eventQueue),
		clients: map[*client]struct{}{}, stored: eventStore{events: map[string][]Event{}},
	}
	for range frameQueue {
		r.free <- new(frameCopy)
	}
	return r
}

// addFrame copies a frame's detections. Frame goroutine only.
func (r *recorder) addFrame(in *pipeline.Result) {
	select {
	case next := <-r.free:
		next.copy(in)
		r.full <- next // never waits, there are as many places as observations
	default:
		r.lost.Add(1)
	}
}

// addEvents copies a frame's events. Frame goroutine only.
func (r *recorder) addEvents(in *pipeline.Result) {
	for i := range in.Events.Events {
		select {
		case r.events <- copyEvent(in, &in.Events.Events[i]):
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
			r.send("frame", next.message())
			r.free <- next
		case next := <-r.events:
			r.send("event", r.store(&next))
		}
	}
}

func (r *recorder) store(c *eventCopy) Event {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.number++
	e := c.event(r.number)
	r.stored.add(e)
	return e
}

// send gives a message to every client that has room for it.
func (r *recorder) send(kind string, value any) {
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
	c := &client{messages: make(chan []byte, clientQueue)}
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
	return f.recorder.stored.find(q)
}

// LastEvent is when something happened to an object last, by the clock of this machine; zero when that is not remembered.
func (f *Feed) LastEvent(camera, object string) time.Time {
	f.recorder.mutex.Lock()
	defer f.recorder.mutex.Unlock()
	return f.recorder.stored.lastEvent(camera, object)
}
