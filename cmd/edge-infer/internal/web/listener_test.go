package web

import (
	"fmt"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/rate"
)

// idle opens connections from an address of this machine and says nothing on them.
func idle(t *testing.T, server *Server, from string, count int) []net.Conn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := dialer.Dial("tcp", server.listener.Addr().String())
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

// TestSilentStrangersDoNotLockTheOwnerOut: neither from elsewhere nor from the owner's own address.
func TestSilentStrangersDoNotLockTheOwnerOut(t *testing.T) {
	for _, login := range []string{token, ""} {
		server := &Server{Token: login}
		server.limits = defaultLimits()
		server.limits.header, server.limits.request, server.limits.heartbeat = testPatience, testPatience, 100*time.Millisecond
		serve(t, server, &still{})
		request, err := http.NewRequest("GET", server.URL()+"api/detections", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+token)
		transport := &http.Transport{}
		t.Cleanup(transport.CloseIdleConnections)
		watching, err := (&http.Client{Transport: transport}).Do(request) // the owner is at the page already
		require.NoError(t, err)
		defer watching.Body.Close()
		for _, from := range []string{"127.0.0.1", "127.0.0.2", "127.0.0.3", "127.0.0.4"} {
			idle(t, server, from, perAddress)
		}
		for range 3 {
			code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+token)
			require.Equal(t, http.StatusOK, code)
		}
		for range 3 { // what comes now was written after the strangers had come
			_, err := watching.Body.Read(make([]byte, 64))
			require.NoError(t, err, "the owner's stream goes on")
		}
	}
}

func TestConnectionsAreBounded(t *testing.T) {
	server := &Server{}
	server.limits = defaultLimits()
	server.limits.header = 2 * testPatience
	serve(t, server, &still{})
	held := idle(t, server, "127.0.0.1", perAddress+8)
	for _, conn := range held[:8] {
		require.True(t, closed(t, conn), "the oldest ones of that address")
	}
	limits := server.listener.(*limitedListener)
	count := func() (strange, homes int) {
		limits.mutex.Lock()
		defer limits.mutex.Unlock()
		return limits.strange.Len(), len(limits.homes)
	}
	strange, homes := count()
	require.Equal(t, perAddress, strange)
	require.Equal(t, 1, homes)
	idle(t, server, "127.0.0.2", perAddress)
	idle(t, server, "127.0.0.3", perAddress)
	for _, conn := range held[8:] {
		require.True(t, closed(t, conn), "the oldest ones of all")
	}
	strange, homes = count()
	require.Equal(t, anonymous, strange)
	require.Equal(t, 2, homes)
}

// TestConnectionsGiveTheirPlacesBack, whatever became of them.
func TestConnectionsGiveTheirPlacesBack(t *testing.T) {
	l := &limitedListener{anonymous: 4, each: 2, owners: 2}
	var conns []*limitedConn
	for i := range 9 {
		near, far := net.Pipe()
		defer far.Close()
		c := &limitedConn{Conn: near, listener: l, home: rate.Household(fmt.Sprintf("2001:db8:0:%d::%d", i%3, i))}
		if displaced := l.enter(c); displaced != nil {
			require.NoError(t, displaced.Conn.Close())
			require.LessOrEqual(t, l.homes[c.home], 2, "one /64 is one household")
		}
		if i%2 == 0 {
			c.recognise()
			c.recognise()
		}
		conns = append(conns, c)
	}
	require.Equal(t, 2, l.familiar)
	require.LessOrEqual(t, l.strange.Len(), 4)
	for _, c := range conns {
		_ = c.Close()
		_ = c.Close()
	}
	require.Zero(t, l.familiar)
	require.Zero(t, l.strange.Len())
	require.Empty(t, l.homes)
}
