package web

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

// limitedListener bounds how many connections are open at once. Those that have not shown a right to come in have places of their own, so many
// of all and so many of one household. When these are taken a new one gets the place of the oldest of them: whoever holds connections open
// without a word loses them, and the owner always gets as far as a request.
type limitedListener struct {
	net.Listener
	anonymous, each, owners int

	mutex    sync.Mutex
	strange  list.List // *limitedConn, oldest first
	homes    map[netip.Addr]int
	familiar int // connections that have shown a right
}

// limitedConn is a connection that has a place.
type limitedConn struct {
	net.Conn
	listener *limitedListener
	home     netip.Addr
	gone     sync.Once

	// Under the listener's lock.
	place *list.Element // among the strange ones; nil when it is none of them
	known bool
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &limitedConn{Conn: conn, listener: l, home: rate.Household(hostOf(conn.RemoteAddr().String()))}
	if displaced := l.enter(c); displaced != nil {
		_ = displaced.Conn.Close() // its handler notices, and closes it once more
	}
	return c, nil
}

// enter gives a connection a place, that of another one if there is no free one.
func (l *limitedListener) enter(c *limitedConn) (displaced *limitedConn) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	crowded := l.homes[c.home] >= l.each
	if crowded || l.strange.Len() >= l.anonymous {
		for e := l.strange.Front(); e != nil && displaced == nil; e = e.Next() {
			if other := e.Value.(*limitedConn); !crowded || other.home == c.home {
				displaced = other
			}
		}
		l.remove(displaced)
	}
	if l.homes == nil {
		l.homes = map[netip.Addr]int{}
	}
	l.homes[c.home]++
	c.place = l.strange.PushBack(c)
	return displaced
}

// remove takes a connection's place among the strange ones away. The lock is held.
func (l *limitedListener) remove(c *limitedConn) {
	l.strange.Remove(c.place)
	c.place = nil
	if l.homes[c.home]--; l.homes[c.home] == 0 {
		delete(l.homes, c.home)
	}
}

// recognise moves a connection that has shown a right to the owners' places while there is one.
func (c *limitedConn) recognise() {
	l := c.listener
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if c.place != nil && l.familiar < l.owners {
		l.remove(c)
		l.familiar++
		c.known = true
	}
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.gone.Do(func() {
		l := c.listener
		l.mutex.Lock()
		defer l.mutex.Unlock()
		if c.place != nil {
			l.remove(c)
		}
		if c.known {
			l.familiar--
		}
	})
	return c.Conn.Close()
}

// connectionKey is where a request's context holds its connection.
type connectionKey struct{}

// withConnection is a http.Server.ConnContext.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if encrypted, ok := conn.(*tls.Conn); ok {
		conn = encrypted.NetConn()
	}
	return context.WithValue(ctx, connectionKey{}, conn)
}

// known notes that a request's connection has shown a right to come in.
func known(r *http.Request) {
	if c, ok := r.Context().Value(connectionKey{}).(*limitedConn); ok {
		c.recognise()
	}
}

// hostOf is an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
