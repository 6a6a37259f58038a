package live

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/internal/inflight"
)

const (
	frameQueue = 64  // frames waiting between the frame goroutine and the recorder
	eventQueue = 256 // events likewise
	// clientQueue is the number of messages that may wait for one client.
	clientQueue = 128
)

// recorder copies results of the frame loop, converts them to messages and sends these to clients.
type recorder struct {
	free, full chan *frameCopy
	events     chan eventCopy
	memory     *inflight.Budget // of messages that wait for clients
	lost       atomic.Uint64    // frames, events and messages dropped because a queue or the memory was full

	mutex   sync.Mutex
	clients map[*client]struct{}
	number  uint64 // of the newest event; goroutine of run only
}

// client is one stream of messages.
type client struct {
	messages chan []byte
	missed   atomic.Uint64
}

func newRecorder(memory *inflight.Budget) *recorder {
	r := &recorder{
		free: make(chan *frameCopy, frameQueue), full: make(chan *frameCopy, frameQueue), events: make(chan eventCopy, eventQueue),
		clients: map[*client]struct{}{}, memory: memory,
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
			r.number++
			r.send("event", next.event(r.number))
		}
	}
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
		if !r.queue(c, message) {
			c.missed.Add(1)
			r.lost.Add(1)
		}
	}
}

// queue queues a message for a client, and reports whether there was room.
func (r *recorder) queue(c *client, message []byte) bool {
	if r.memory.Reserve(int64(len(message))) != nil {
		return false
	}
	select {
	case c.messages <- message:
		return true
	default:
		r.memory.Release(int64(len(message)))
		return false
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
	for len(c.messages) > 0 { // nobody adds any more
		r.memory.Release(int64(len(<-c.messages)))
	}
}
