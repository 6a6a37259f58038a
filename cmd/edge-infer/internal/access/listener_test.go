package access

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testPatience is how long a test waits for what must happen.
const testPatience = 30 * time.Second

// idle opens connections from an address of this machine and says nothing on them.
func idle(t *testing.T, to *Listener, from string, count int) []net.Conn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := dialer.Dial("tcp", to.Addr().String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return conns
}

// closed reports whether the server hangs up.
func closed(t *testing.T, conn net.Conn) bool {
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(testPatience)))
	_, err := conn.Read(make([]byte, 1))
	return err != nil && !os.IsTimeout(err)
}

func TestConnectionsAreBounded(t *testing.T) {
	const perPrefix, anonymous = 48, 96
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	limits := &Listener{Listener: listener, PerPrefix: perPrefix, Anonymous: anonymous}
	server := &http.Server{ReadHeaderTimeout: 2 * testPatience}
	served := make(chan error, 1)
	go func() { served <- server.Serve(limits) }()
	defer func() {
		require.NoError(t, server.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	}()
	held := idle(t, limits, "127.0.0.1", perPrefix+8)
	for _, conn := range held[:8] {
		require.True(t, closed(t, conn), "the oldest ones of that address")
	}
	count := func() (anonymous, prefixes int) {
		limits.mutex.Lock()
		defer limits.mutex.Unlock()
		return limits.anonymous.Len(), len(limits.prefixes)
	}
	waiting, prefixes := count()
	require.Equal(t, perPrefix, waiting)
	require.Equal(t, 1, prefixes)
	idle(t, limits, "127.0.0.2", perPrefix)
	idle(t, limits, "127.0.0.3", perPrefix)
	for _, conn := range held[8:] {
		require.True(t, closed(t, conn), "the oldest ones of all")
	}
	waiting, prefixes = count()
	require.Equal(t, anonymous, waiting)
	require.Equal(t, 2, prefixes)
}

// TestConnectionsGiveTheirPlacesBack, whatever became of them.
func TestConnectionsGiveTheirPlacesBack(t *testing.T) {
	l := &Listener{Anonymous: 4, PerPrefix: 2, Authenticated: 2}
	var conns []*limitedConn
	for i := range 9 {
		near, far := net.Pipe()
		defer far.Close()
		c := &limitedConn{Conn: near, listener: l, prefix: ClientPrefix(fmt.Sprintf("2001:db8:0:%d::%d", i%3, i))}
		if replaced := l.admit(c); replaced != nil {
			require.NoError(t, replaced.Conn.Close())
			require.LessOrEqual(t, l.prefixes[c.prefix], 2, "one /64 is one subscriber")
		}
		if i%2 == 0 {
			c.authenticate()
			c.authenticate()
		}
		conns = append(conns, c)
	}
	require.Equal(t, 2, l.authenticated)
	require.LessOrEqual(t, l.anonymous.Len(), 4)
	for _, c := range conns {
		_ = c.Close()
		_ = c.Close()
	}
	require.Zero(t, l.authenticated)
	require.Zero(t, l.anonymous.Len())
	require.Empty(t, l.prefixes)
}
