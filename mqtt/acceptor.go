package mqtt

import (
	"crypto/tls"
	"log/slog"
	"net"
	"sync"

	"github.com/mochi-mqtt/server/v2/listeners"
)

// acceptor accepts the embedded broker's connections. mochi's own listener leaves a connection that comes while it closes to a goroutine
// that nobody waits for; this one closes every connection and waits for all of them.
type acceptor struct {
	net.Listener
	log     *slog.Logger
	serving sync.WaitGroup

	mu     sync.Mutex
	conns  map[net.Conn]struct{}
	closed bool
}

func listen(address string, config *tls.Config) (*acceptor, error) {
	l, err := net.Listen("tcp", address)
	if err != nil {
		return nil, err
	}
	if config != nil {
		l = tls.NewListener(l, config)
	}
	return &acceptor{Listener: l, conns: map[net.Conn]struct{}{}}, nil
}

// ID, Protocol, Address, Init, Serve and Close implement listeners.Listener.
func (l *acceptor) ID() string { return "mqtt" }

func (l *acceptor) Protocol() string { return "tcp" }

func (l *acceptor) Address() string { return l.Addr().String() }

func (l *acceptor) Init(log *slog.Logger) error {
	l.log = log
	return nil
}

func (l *acceptor) Serve(establish listeners.EstablishFn) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		if !l.add(conn) {
			_ = conn.Close()
			return
		}
		go func() {
			defer l.remove(conn)
			if err := establish(l.ID(), conn); err != nil {
				l.log.Debug("client left", "remote", conn.RemoteAddr().String(), "error", err)
			}
		}()
	}
}

func (l *acceptor) Close(closeClients listeners.CloseFn) {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	_ = l.Listener.Close()
	if first {
		closeClients(l.ID())
	}
	l.mu.Lock()
	for conn := range l.conns {
		_ = conn.Close()
	}
	l.mu.Unlock()
	l.serving.Wait()
}

func (l *acceptor) add(conn net.Conn) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.conns[conn] = struct{}{}
	l.serving.Add(1)
	return true
}

func (l *acceptor) remove(conn net.Conn) {
	l.mu.Lock()
	delete(l.conns, conn)
	l.mu.Unlock()
	l.serving.Done()
}
