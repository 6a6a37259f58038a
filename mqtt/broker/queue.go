package broker

import (
	"cmp"
	"errors"
	"sync"
	"sync/atomic"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
)

// queue bounds the memory of messages on their way to clients.
//
// Messages with QoS 1 and 2 are kept until they are acknowledged, for connected clients and for stored sessions. While they take more bytes
// than the limit, the session with the most bytes is removed. Messages of any QoS wait while a client does not read: its connection is
// closed when more than its share of the limit has been published meanwhile.
type queue struct {
	sessions  *sessions
	limit     int64
	log       func(reason error, remote string)
	published *atomic.Int64 // bytes published by all clients since the start
	removed   atomic.Uint64 // sessions

	mu      sync.Mutex
	clients map[string]*unacknowledged // by client identifier
	total   int64
}

// unacknowledged holds the sizes of a session's messages by packet identifier.
type unacknowledged struct {
	sizes map[uint16]int64
	bytes int64
}

const (
	// messageOverhead is roughly the library's memory for a message besides topic and payload, in bytes.
	messageOverhead = 1 << 10
	// leastShare is the part of the limit that a blocked connection has at least, in bytes.
	leastShare = 256 << 10
	// pendingMessages is the number of messages that wait for one connection. The library discards further ones.
	pendingMessages = 1024
)

var errQueue = errors.New("too many bytes wait for clients")

// messageSize returns the approximate memory of a copy of a message in bytes.
func messageSize(topic string, payload []byte) int64 {
	return int64(messageOverhead + len(topic) + len(payload))
}

// bytesOf returns the bytes that wait for a client.
func (q *queue) bytesOf(id string) int64 {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.clients[id]; c != nil {
		return c.bytes
	}
	return 0
}

// add counts a message that a client has to acknowledge, and removes sessions while there are too many bytes.
func (q *queue) add(client *mochi.Client, pk *packets.Packet) {
	size := messageSize(pk.TopicName, pk.Payload)
	q.mu.Lock()
	c := q.clients[client.ID]
	if c == nil {
		c = &unacknowledged{sizes: map[uint16]int64{}}
		q.clients[client.ID] = c
	}
	more := size - c.sizes[pk.PacketID]
	c.sizes[pk.PacketID] = size
	c.bytes += more
	q.total += more
	over := q.total > q.limit
	q.mu.Unlock()
	for over {
		over = q.evict()
	}
}

// complete is called for a message that is acknowledged or discarded.
func (q *queue) complete(id string, packet uint16) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.clients[id]
	if c == nil {
		return
	}
	q.drop(c, packet)
	if len(c.sizes) == 0 {
		delete(q.clients, id)
	}
}

// drop removes a message from the sums. The lock is held.
func (q *queue) drop(c *unacknowledged, packet uint16) {
	size := c.sizes[packet]
	delete(c.sizes, packet)
	c.bytes -= size
	q.total -= size
}

// forget is called for a session that is gone.
func (q *queue) forget(id string) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if c := q.clients[id]; c != nil {
		q.total -= c.bytes
		delete(q.clients, id)
	}
}

// evict removes the session with the most bytes and reports whether there are still too many.
func (q *queue) evict() (over bool) {
	q.mu.Lock()
	var largest string
	for id, c := range q.clients {
		if largest == "" || cmp.Or(cmp.Compare(c.bytes, q.clients[largest].bytes), cmp.Compare(id, largest)) > 0 {
			largest = id
		}
	}
	q.mu.Unlock()
	client, known := q.sessions.server.Clients.Get(largest)
	if known && q.reconcile(client) {
		q.log(errQueue, client.Net.Remote)
		q.sessions.end(client, errQueue)
		q.removed.Add(1)
	}
	if !known || client.State.Inflight.Len() == 0 {
		q.forget(largest)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total > q.limit
}

// reconcile drops messages that the library discarded without calling a hook, and reports whether there are still too many bytes.
func (q *queue) reconcile(client *mochi.Client) (over bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	c := q.clients[client.ID]
	if c == nil {
		return q.total > q.limit
	}
	for packet := range c.sizes {
		if _, kept := client.State.Inflight.Get(packet); !kept {
			q.drop(c, packet)
		}
	}
	return q.total > q.limit
}

// unblock closes the connection of a client that has not read while its share of the limit was published.
func (q *queue) unblock(client *mochi.Client) {
	g, ok := client.Net.Conn.(*guard)
	if !ok {
		return
	}
	since, blocked := g.blockedSince()
	if !blocked {
		return
	}
	share := max(leastShare, q.limit/int64(max(1, q.sessions.server.Clients.Len())))
	if q.published.Load()-since > share {
		g.onRefused(g, errNotReading)
		g.Close()
	}
}

// stats returns the bytes that wait for acknowledgement and the number of sessions that were removed for them.
func (q *queue) stats() (bytes int64, removed uint64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.total, q.removed.Load()
}
