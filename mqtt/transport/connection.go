// Package transport carries MQTT packets between a client and its broker: over TCP, TLS or WebSocket, whole, and in bounded time and
// memory.
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

// Conn carries whole MQTT packets: each Write is one or more of them, and none is cut by another writer's. That lets the client write QoS 0
// messages itself, beside paho, which otherwise takes three goroutine hops for each.
//
// Every piece of a write has a deadline. Without one, a broker that accepts and stops reading blocks paho's Publish for ever once the
// socket's buffer is full. A write that fails ends the connection, because part of a packet may have left.
type Conn struct {
	net.Conn
	raw     net.Conn // under TLS and WebSocket
	in      *filter
	timeout time.Duration
	failed  func(error)

	mu sync.Mutex // held by the writer
}

// New makes a connection of one that is open, which it takes over. timeout is how long the other side may stop reading; skipped hears the
// sizes of messages of more than largest bytes, which are held back; failed hears why the connection has ended, perhaps more than once.
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

// Read reads packets without those that the filter holds back. How the connection has ended is reported from here: paho closes it before it
// says why, and a writer would then see no more than that.
func (c *Conn) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err != nil {
		c.failed(err)
	}
	return n, err
}

// Write sends whole packets, or fails the connection. A large packet goes out in pieces, so that a slow link is not taken for a dead one.
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
			c.Close()
			c.failed(err)
			return sent, err
		}
	}
	return sent, nil
}

// SetDeadline sets the deadline for reading. Write has its own, which paho must not touch.
func (c *Conn) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing, see SetDeadline.
func (c *Conn) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection at once. It goes under TLS, whose farewell could wait five seconds for a broker that does not read.
func (c *Conn) Close() error { return c.raw.Close() }

// Dial opens the connection to a broker without any MQTT on it.
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

// dialWebSocket runs paho's dialer, which knows no context, beside the caller; a connection that comes too late is closed.
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

// Closed reports whether the other side ended a connection, and not the network or this one.
func Closed(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE)
}
