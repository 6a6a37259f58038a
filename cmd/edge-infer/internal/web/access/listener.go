package access

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/rate"
)

// Listener bounds how many connections are open at once. Those that have not been authenticated have places of their own, so many of all
// and so many of one subscriber. When these are taken a new one gets the place of the oldest of them: whoever holds connections open
// without a word loses them, and the owner always gets as far as a request.
type Listener struct {
	net.Listener
	Anonymous, PerPrefix int // places of connections that are not authenticated: of all, and of one rate.Prefix
	Authenticated        int // places of those that are

	mutex         sync.Mutex
	anonymous     list.List // *limitedConn, oldest first
	prefixes      map[netip.Prefix]int
	authenticated int
}

// limitedConn is a connection that has a place.
type limitedConn struct {
	net.Conn
	listener *Listener
	prefix   netip.Prefix
	closed   sync.Once

	// Under the listener's lock.
	place         *list.Element // among the anonymous ones; nil when it is none of them
	authenticated bool
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: conn, listener: l, prefix: rate.Prefix(conn.RemoteAddr().String())}
	if displaced := l.enter(c); displaced != nil {
		_ = displaced.Conn.Close() // its handler notices, and closes it once more
	}
	return c, nil
}

// enter gives a connection a place, that of another one if there is no free one.
func (l *Listener) enter(c *limitedConn) (displaced *limitedConn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	crowded := l.prefixes[c.prefix] >= l.PerPrefix
	if crowded || l.anonymous.Len() >= l.Anonymous {
		for e := l.anonymous.Front(); e != nil && displaced == nil; e = e.Next() {
			if other := e.Value.(*limitedConn); !crowded || other.prefix == c.prefix {
				displaced = other
			}
		}
		l.remove(displaced)
	}
	if l.prefixes == nil {
		l.prefixes = map[netip.Prefix]int{}
	}
	l.prefixes[c.prefix]++
	c.place = l.anonymous.PushBack(c)
	return displaced
}

// remove takes a connection's place among the anonymous ones away. The lock is held.
func (l *Listener) remove(c *limitedConn) {
	l.anonymous.Remove(c.place)
	c.place = nil
	if l.prefixes[c.prefix]--; l.prefixes[c.prefix] == 0 {
		delete(l.prefixes, c.prefix)
	}
}

// authenticate moves a connection to the places of those that are, while there is one.
func (c *limitedConn) authenticate() {
	l := c.listener
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if c.place != nil && l.authenticated < l.Authenticated {
		l.remove(c)
		l.authenticated++
		c.authenticated = true
	}
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.closed.Do(func() {
		l := c.listener
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if c.place != nil {
			l.remove(c)
		}
		if c.authenticated {
			l.authenticated--
		}
	})
	return c.Conn.Close()
}

// connectionKey is where a request's context holds its connection.
type connectionKey struct{}

// WithConnection is a http.Server.ConnContext, so that a request's connection is known when the request is let in.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// authenticated notes that a request's connection has shown a right to come in.
func authenticated(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok {
		c.authenticate()
	}
}
