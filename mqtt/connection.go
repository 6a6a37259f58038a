package mqtt

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// connection carries whole MQTT packets: each Write is one or more of them, and none is cut by another writer's. That lets the client
// write QoS 0 messages itself, beside paho, which otherwise takes three goroutine hops for each.
//
// Every piece of a write has a deadline. Without one, a broker that accepts and stops reading blocks paho's Publish for ever once the
// socket's buffer is full. A write that fails ends the connection, because part of a packet may have left.
type connection struct {
	net.Conn
	raw     net.Conn // under TLS and WebSocket
	in      *packetFilter
	timeout time.Duration
	failed  func(error)

	mu sync.Mutex // held by the writer
}

func newConnection(conn net.Conn, timeout time.Duration, largest int, skipped func(int), failed func(error)) *connection {
	raw := conn
	if layered, ok := raw.(interface{ UnderlyingConn() net.Conn }); ok {
		raw = layered.UnderlyingConn()
	}
	if layered, ok := raw.(*tls.Conn); ok {
		raw = layered.NetConn()
	}
	return &connection{Conn: conn, raw: raw, in: newPacketFilter(conn, largest, skipped), timeout: timeout, failed: failed}
}

// Read reads packets without those that the packetFilter holds back. How the connection has ended is reported from here: paho closes it
// before it
// says why, and a writer would then see no more than that.
func (c *connection) Read(p []byte) (int, error) {
	n, err := c.in.Read(p)
	if err != nil {
		c.failed(err)
	}
	return n, err
}

// Write sends whole packets, or fails the connection. A large packet goes out in pieces, so that a slow link is not taken for a dead one.
func (c *connection) Write(packets []byte) (int, error) {
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
func (c *connection) SetDeadline(t time.Time) error { return c.SetReadDeadline(t) }

// SetWriteDeadline does nothing, see SetDeadline.
func (c *connection) SetWriteDeadline(time.Time) error { return nil }

// Close ends the connection at once. It goes under TLS, whose farewell could wait five seconds for a broker that does not read.
func (c *connection) Close() error { return c.raw.Close() }

// dial opens the connection to a broker without any MQTT on it.
func dial(ctx context.Context, to address.Address, files credentials.TLS, timeout time.Duration) (net.Conn, error) {
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
