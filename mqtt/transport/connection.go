// Package transport connects a client to its broker over TCP, TLS or WebSocket, with bounded time and memory.
package transport

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"syscall"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Conn is a connection that writes whole MQTT packets: concurrent writes do not interleave. The client can therefore write QoS 0 messages
// itself, without the three goroutine hops that each takes in paho.
//
// Every part of a write has a deadline. Without one, a broker that stops reading blocks paho's Publish forever once the socket buffer is
// full. A failed write closes the connection, because part of a packet may have been sent.
type Conn struct {
	net.Conn
	raw     net.Conn // under TLS and WebSocket
	in      *filter
	timeout time.Duration
	failed  func(error)

	mu sync.Mutex // held by the writer
}

// New wraps an open connection and takes ownership of it. timeout is how long the other side may stop reading. Received messages larger
// than largest bytes are removed and their sizes passed to skipped. failed is called with the reason when the connection ends, possibly
// more than once.
func New(conn net.Conn, timeout time.Duration, largest int, skipped func(int), failed func(error)) *Conn {
	raw := conn
	if layered, ok := raw.(interface{ UnderlyingConn() net.Conn }); ok {
		raw = layered.UnderlyingConn()
	}
	if layered, ok := raw.(*tls.Conn); ok {
		raw = layered.NetConn()
	}
	return &Conn{Conn: conn, raw: raw, in: newFilter(conn, largest, skipped), timeout: timeout, failed: failed}
}

// Read reads packets that pass the filter. It reports the end of the connection itself, because paho closes the connection before it
// reports the reason.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err != nil {
		c.failed(err)
	}
	return n, err
}

// Write sends whole packets or fails the connection. A large packet is written in parts, so that a slow link does not exceed the deadline.
func (c *Conn) Write(packets []byte) (int, error) {
	const piece = 32 << 10
	c.mu.Lock()
	defer c.mu.Unlock()
	sent := 0
	for sent < len(packets) {
		err := c.Conn.SetWriteDeadline(time.Now().Add(c.timeout))
		var n int
		if err == nil {
			n, err = c.Conn.Write(packets[sent:min(sent+piece, len(packets))])
		}
		sent += n
		if err != nil {
			c.failed(err) // before the reader sees that the connection was closed: the first reason counts
			c.Close()
			return sent, err
		}
	}
	return sent, nil
}

// SetDeadline sets the deadline for reading. Write has its own, which paho must not touch.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing, see SetDeadline.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// Close closes the connection at once. It bypasses TLS, whose close notification could wait five seconds for a broker that does not read.
func (c *Conn) Close() error { return c.raw.Close() }

// Dial opens the network connection to a broker.
func Dial(ctx context.Context, to address.Address, files credentials.TLS, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	dialer := net.Dialer{KeepAliveConfig: net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}}
	if to.Network == "tcp" {
		return dialer.DialContext(ctx, "tcp", to.URL.Host)
	}
	config, err := files.Load()
	if err != nil {
		return nil, err
	}
	if to.Network == "tls" {
		return (&tls.Dialer{NetDialer: &dialer, Config: config}).DialContext(ctx, "tcp", to.URL.Host)
	}
	return dialWebSocket(ctx, to, config, timeout)
}

// dialWebSocket runs paho's dialer, which has no context, on a goroutine of its own and closes a connection that comes too late.
func dialWebSocket(ctx context.Context, to address.Address, config *tls.Config, timeout time.Duration) (net.Conn, error) {
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	go func() {
		conn, err := paho.NewWebsocket(to.URL.String(), config, timeout, nil, nil)
		done <- result{conn, err}
	}()
	select {
	case r := <-done:
		return r.conn, r.err
	case <-ctx.Done():
		go func() {
			if r := <-done; r.err == nil {
				r.conn.Close()
			}
		}()
		return nil, ctx.Err()
	}
}

// Closed reports whether err means that the other side closed the connection.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
