package web

import (
	"net"
	"sync"
)

// limitedListener closes connections over a number at once, in total and from one address.
type limitedListener struct {
	net.Listener
	total, each int

	mutex sync.Mutex
	count int
	open  map[string]int // by address
}

// Accept implements net.Listener.
func (l *limitedListener) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		address := hostOf(conn.RemoteAddr().String())
		if l.enter(address) {
			return &limitedConn{Conn: conn, leave: sync.OnceFunc(func() { l.leave(address) })}, nil
		}
		_ = conn.Close()
	}
}

func (l *limitedListener) enter(address string) bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	if l.count >= l.total || l.open[address] >= l.each {
		return false
	}
	l.count++
	l.open[address]++
	return true
}

func (l *limitedListener) leave(address string) {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.count--
	if l.open[address]--; l.open[address] == 0 {
		delete(l.open, address)
	}
}

type limitedConn struct {
	net.Conn
	leave func()
}

// Close implements net.Conn.
func (c *limitedConn) Close() error {
	c.leave()
	return c.Conn.Close()
}

// hostOf is an address without its port.
func hostOf(address string) string {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return address
	}
	return host
}
