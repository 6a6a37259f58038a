package web

import (
	"net"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// idle opens connections from an address of this machine and says nothing on them.
func idle(t *testing.T, server *Server, from string, count int) []net.Conn {
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conns := make([]net.Conn, count)
	for i := range conns {
		conn, err := dialer.Dial("tcp", server.at.String())
		require.NoError(t, err)
		t.Cleanup(func() { _ = conn.Close() })
		conns[i] = conn
	}
	return conns
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
			idle(t, server, from, perPrefix)
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

// TestAFailedListenerIsReplaced: the page comes back at the same address.
func TestAFailedListenerIsReplaced(t *testing.T) {
	server := &Server{Token: token}
	serve(t, server, &still{})
	get := func() int {
		code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+token)
		return code
	}
	require.Equal(t, http.StatusOK, get())
	server.mutex.Lock()
	require.NoError(t, server.listener.Close())
	server.mutex.Unlock()
	require.Eventually(t, func() bool {
		conn, err := net.Dial("tcp", server.at.String())
		if err == nil {
			err = conn.Close()
		}
		return err == nil
	}, testPatience, 10*time.Millisecond)
	require.Equal(t, http.StatusOK, get())
}
