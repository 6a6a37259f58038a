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

// Listener bounds the number of open connections. Unauthenticated ones are bounded in total and per address prefix; when a bound is
// reached, a new connection evicts the oldest, so that idle connections cannot lock the owner out.
type Listener struct {
	net.Listener
	Anonymous, PerPrefix int // maximum of unauthenticated connections, in total and per ClientPrefix
	Authenticated        int // maximum of authenticated connections

	mutex         sync.Mutex
	anonymous     list.List // *limitedConn, oldest first
	prefixes      map[netip.Prefix]int
	authenticated int
}

// limitedConn is a connection counted by a Listener.
type limitedConn struct {
	net.Conn
	listener *Listener
	prefix   netip.Prefix
	closed   sync.Once

	// Under the listener's lock.
	slot          *list.Element // in Listener.anonymous; nil after authentication
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
		_ = evicted.Conn.Close() // its handler closes it again
	}
	return c, nil
}

// admit adds a connection and returns the one that it evicts, if any.
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

// remove removes a connection from the anonymous ones. The lock is held.
func (l *Listener) remove(c *limitedConn) {
	l.anonymous.Remove(c.slot)
	c.slot = nil
	if l.prefixes[c.prefix]--; l.prefixes[c.prefix] == 0 {
		delete(l.prefixes, c.prefix)
	}
}

// authenticate counts the connection as authenticated, unless there are too many of these.
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

// connectionKey is the context key of a request's connection.
type connectionKey struct{}

// WithConnection is an http.Server.ConnContext that stores the connection for MarkAuthenticated.
func WithConnection(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// MarkAuthenticated marks the connection of an authorized request.
func MarkAuthenticated(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok {
		c.authenticate()
	}
}
