package broker

import (
	"cmp"
	"errors"
	"log/slog"
	"net"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/mochi-mqtt/server/v2/listeners"
)

// listener accepts the broker's connections. Unlike the library's listeners it waits for all goroutines when closing, continues after
// errors, and limits a panic to one connection.
type listener struct {
	net.Listener
	limits     *Limits
	log        *slog.Logger
	dropClient func(net.Conn) // removes the client of a connection on which the library panicked
	disconnect func()         // ends all clients with the reason that the broker stops
	inbound    atomic.Int64
	packets    *pace        // of packets that are no messages, see guard
	published  atomic.Int64 // bytes of messages since the start
	serving    sync.WaitGroup
	closing    chan struct{}

	mu              sync.Mutex
	conns           map[*guard]struct{}
	unauthenticated []*guard // before the login, oldest first
	accepted        uint64
	closed          bool
	refused         uint64
	panics          uint64
	// Refusals: time of the last log line, and how many have not been logged since.
	lastLogged time.Time
	unreported int
}

func newListener(limits *Limits, log *slog.Logger) *listener {
	l := &listener{limits: limits, log: log, closing: make(chan struct{}), conns: map[*guard]struct{}{}}
	l.packets = newPace(limits.Rate, l.refuse)
	return l
}

// ID implements listeners.Listener.
func (l *listener) ID() string { return "mqtt" }

// Protocol implements listeners.Listener.
func (l *listener) Protocol() string { return "tcp" }

// Address implements listeners.Listener.
func (l *listener) Address() string { return l.Addr().String() }

// Init implements listeners.Listener.
func (l *listener) Init(*slog.Logger) error { return nil }

// Serve accepts connections until Close. It retries after errors such as a lack of file descriptors.
func (l *listener) Serve(establish listeners.EstablishFn) {
	const shortest, longest = 5 * time.Millisecond, time.Second
	pause := shortest
	for {
		conn, err := l.Accept()
		if err == nil {
			pause = shortest
			g := newGuard(conn, l)
			if l.add(g) {
				go l.serve(g, establish)
			} else {
				_ = g.Close() // nothing was sent on it
			}
			continue
		}
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if errors.Is(err, syscall.EMFILE) || errors.Is(err, syscall.ENFILE) {
			l.closeOldestUnauthenticated(errDescriptors)
		}
		l.logRefusal(err, "")
		select {
		case <-time.After(pause):
		case <-l.closing:
			return
		}
		pause = min(2*pause, longest)
	}
}

// serve serves one connection until it ends.
func (l *listener) serve(g *guard, establish listeners.EstablishFn) {
	defer l.remove(g)
	defer func() {
		if reason := recover(); reason != nil {
			l.log.Error("embedded broker failed on a client, which is disconnected", "remote", g.RemoteAddr().String(), "panic", reason,
				"stack", string(debug.Stack()))
			l.mu.Lock()
			l.panics++
			l.mu.Unlock()
			l.dropClient(g)
		}
	}()
	if err := establish(l.ID(), g); err != nil {
		l.log.Debug("client left", "remote", g.RemoteAddr().String(), "error", err)
	}
}

// Close closes all connections and waits for their goroutines. The library's function takes a lock twice for reading, and would wait for
// ever if a client leaves in between.
func (l *listener) Close(listeners.CloseFn) {
	l.mu.Lock()
	first := !l.closed
	l.closed = true
	l.mu.Unlock()
	_ = l.Listener.Close()
	if first {
		close(l.closing)
		l.disconnect()
	}
	l.mu.Lock()
	for g := range l.conns {
		_ = g.Close()
	}
	l.mu.Unlock()
	l.serving.Wait()
}

// add registers a connection if the limits allow it.
func (l *listener) add(g *guard) bool {
	l.mu.Lock()
	full, crowded := len(l.conns) >= l.limits.Connections, len(l.unauthenticated) >= l.limits.Unauthenticated
	l.mu.Unlock()
	switch {
	case full && !l.closeOldestUnauthenticated(errConnections) && !l.closeNewestOfMost(g.host):
		l.refuse(g, errConnections)
		return false
	case crowded && !full:
		l.closeOldestUnauthenticated(errUnauthenticated)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed {
		return false
	}
	l.accepted++
	g.number = l.accepted
	l.conns[g] = struct{}{}
	l.unauthenticated = append(l.unauthenticated, g)
	l.serving.Add(1)
	return true
}

// closeOldestUnauthenticated makes room at the cost of who has waited longest with its login; false when there is no such connection.
func (l *listener) closeOldestUnauthenticated(reason error) bool {
	l.mu.Lock()
	if len(l.unauthenticated) == 0 {
		l.mu.Unlock()
		return false
	}
	oldest := l.unauthenticated[0]
	l.unauthenticated = l.unauthenticated[1:]
	delete(l.conns, oldest) // not counted any more, though its goroutine still runs
	l.mu.Unlock()
	l.refuse(oldest, reason)
	_ = oldest.Close()
	return true
}

// closeNewestOfMost makes room for a client at the cost of the address with the most connections. It returns false if the client's address
// has as many.
func (l *listener) closeNewestOfMost(host string) bool {
	l.mu.Lock()
	perHost := map[string]int{}
	for g := range l.conns {
		if !g.own.Load() {
			perHost[g.host]++
		}
	}
	var newest *guard
	for g := range l.conns {
		if g.own.Load() || perHost[g.host] <= perHost[host]+1 {
			continue
		}
		if newest == nil || cmp.Or(cmp.Compare(perHost[g.host], perHost[newest.host]), cmp.Compare(g.number, newest.number)) > 0 {
			newest = g
		}
	}
	delete(l.conns, newest) // not counted any more, though its goroutine still runs
	l.mu.Unlock()
	if newest == nil {
		return false
	}
	l.refuse(newest, errConnections)
	_ = newest.Close()
	return true
}

func (l *listener) admit(g *guard) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.unauthenticated = slices.DeleteFunc(l.unauthenticated, func(other *guard) bool { return other == g })
}

func (l *listener) remove(g *guard) {
	l.admit(g)
	_ = g.Close()
	l.mu.Lock()
	delete(l.conns, g)
	l.mu.Unlock()
	l.serving.Done()
}

// refuse counts and logs a refused connection.
func (l *listener) refuse(g *guard, reason error) {
	l.mu.Lock()
	l.refused++
	l.mu.Unlock()
	l.logRefusal(reason, g.RemoteAddr().String())
}

// logRefusal logs what clients do wrong, once in ten seconds at most: anyone can do it as often as he likes.
func (l *listener) logRefusal(reason error, remote string) {
	const each = 10 * time.Second
	now := time.Now()
	l.mu.Lock()
	report := now.Sub(l.lastLogged) >= each
	unreported := l.unreported
	if report {
		l.lastLogged, l.unreported = now, 0
	} else {
		l.unreported++
	}
	l.mu.Unlock()
	if report {
		l.log.Warn("embedded broker refused a client", "remote", remote, "error", reason, "unreported", unreported)
	}
}

func (l *listener) stats() Stats {
	l.mu.Lock()
	defer l.mu.Unlock()
	return Stats{Connections: len(l.conns), Refused: l.refused, Panics: l.panics}
}
