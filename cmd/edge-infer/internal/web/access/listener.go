package access

import (
	"container/list"
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"sync"
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
	slot          *list.Element // among the anonymous ones; nil when it is none of them
	authenticated bool
}

// Accept implements net.Listener.
func (l *Listener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: conn, listener: l, prefix: ClientPrefix(conn.RemoteAddr().String())}
	if evicted := l.admit(c); evicted != nil {
		_ = evicted.Conn.Close() // its handler notices, and closes it once more
	}
	return c, nil
}

// admit gives a connection a place, that of another one if there is no free one.
func (l *Listener) admit(c *limitedConn) (evicted *limitedConn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	prefixFull := l.prefixes[c.prefix] >= l.PerPrefix
	if prefixFull || l.anonymous.Len() >= l.Anonymous {
		for e := l.anonymous.Front(); e != nil && evicted == nil; e = e.Next() {
			if other := e.Value.(*limitedConn); !prefixFull || other.prefix == c.prefix {
				evicted = other
			}
		}
		l.remove(evicted)
	}
	if l.prefixes == nil {
		l.prefixes = map[netip.Prefix]int{}
	}
	l.prefixes[c.prefix]++
	c.slot = l.anonymous.PushBack(c)
	return evicted
}

// remove takes a connection's place among the anonymous ones away. The lock is held.
func (l *Listener) remove(c *limitedConn) {
	l.anonymous.Remove(c.slot)
	c.slot = nil
	if l.prefixes[c.prefix]--; l.prefixes[c.prefix] == 0 {
		delete(l.prefixes, c.prefix)
	}
}

// authenticate moves a connection to the places of those that are, while there is one.
func (c *limitedConn) authenticate() {
	l := c.listener
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if c.slot != nil && l.authenticated < l.Authenticated {
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
		if c.slot != nil {
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

// markAuthenticated notes that a request's connection has shown a right to come in.
func markAuthenticated(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok {
		c.authenticate()
	}
}
