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
	frameQueue = 64  // frames waiting between the frame goroutine and the recorder
	eventQueue = 256 // events likewise
	// clientQueue is the number of messages that may wait for one client.
	clientQueue = 128
)

// recorder copies results of the frame loop, converts them to messages and sends these to clients. It stores the latest events.
type recorder struct {
	free, full chan *frameCopy
	events     chan eventCopy
	lost       atomic.Uint64 // frames, events and messages dropped because a queue was full

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
		r.full <- next // never blocks: full has room for all copies
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

// run delivers messages until ctx ends.
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

// send queues a message for every client, and drops it for clients whose queue is full.
func (r *recorder) send(kind string, value any) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if len(r.clients) == 0 {
		return
	}
	data, err := json.Marshal(value)
	if err != nil {
		panic(err) // every field can be represented in JSON
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

// Events returns the stored events that match, newest first.
func (f *Feed) Events(q Query) []Event {
	f.recorder.mutex.Lock()
	defer f.recorder.mutex.Unlock()
	return f.recorder.stored.find(q)
}

// LastEvent returns the local time of an object's last event; zero if none is stored.
func (f *Feed) LastEvent(camera, object string) time.Time {
	f.recorder.mutex.Lock()
	defer f.recorder.mutex.Unlock()
	return f.recorder.stored.lastEvent(camera, object)
}
