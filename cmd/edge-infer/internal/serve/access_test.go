package serve

import (
	"bytes"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// withTokens serves with a token file that has these lines, and returns its path.
func withTokens(t *testing.T, lines string, change func(*Serve)) (address, path string) {
	path = filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(path, []byte(lines), 0o600))
	address = run(t, func(s *Serve) {
		s.TokenFile = path
		if change != nil {
			change(s)
		}
	})
	return address, path
}

// halfSent sends the head of a request and nothing of its body.
func halfSent(t *testing.T, address, token string, length int) net.Conn {
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_, err = fmt.Fprintf(conn, "POST /v2/models/image/infer HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer %s\r\nContent-Length: %d\r\n\r\n", token, length)
	require.NoError(t, err)
	return conn
}

// TestHalfSentRequestsDoNotKeepTheOwnerOut: with and without a token.
func TestHalfSentRequestsDoNotKeepTheOwnerOut(t *testing.T) {
	address, _ := withTokens(t, secret, nil)
	open := run(t, nil)
	for range 100 {
		halfSent(t, address, "wrong", 1000)
		idle, err := net.Dial("tcp", address)
		require.NoError(t, err)
		t.Cleanup(func() { _ = idle.Close() })
		halfSent(t, open, "", 1000)
	}
	for range 10 {
		code, text := ask(t, http.MethodGet, "http://"+address+"/v2/models/image", secret, nil)
		require.Equal(t, http.StatusOK, code, text)
		code, text = ask(t, http.MethodGet, "http://"+open+"/v2/models/image", "", nil)
		require.Equal(t, http.StatusOK, code, text)
	}
}

// TestBytesInFlightAreBounded: clients that send most of a large body and wait take no more memory than --max-in-flight.
func TestBytesInFlightAreBounded(t *testing.T) {
	const size, limit = 1 << 20, 4 << 20
	address := run(t, func(s *Serve) { s.Largest, s.InFlight, s.Connections = size, limit, 64 })
	for range 16 {
		_, _ = halfSent(t, address, "", size).Write(make([]byte, size-1)) // the server may refuse it early
	}
	require.Eventually(t, func() bool {
		_, text := ask(t, http.MethodGet, "http://"+address+"/metrics", "", nil)
		for refused := 12; refused <= 16; refused++ {
			if strings.Contains(text, fmt.Sprintf("edge_infer_serve_over_limit_total %d\n", refused)) {
				return true
			}
		}
		return false
	}, programtest.Patience, 10*time.Millisecond)
	code, _ := ask(t, http.MethodGet, "http://"+address+"/v2/models/image", "", nil)
	require.Equal(t, http.StatusOK, code)
}

func TestRolesOfTheServer(t *testing.T) {
	address, _ := withTokens(t, "metrics metrics-metrics-metrics\n"+secret, nil)
	url := "http://" + address
	for _, c := range []struct {
		token, method, path string
		code                int
	}{
		{"metrics-metrics-metrics", "GET", "/metrics", 200},
		{"metrics-metrics-metrics", "GET", "/v2/models/image/stats", 200},
		{"metrics-metrics-metrics", "POST", "/v2/models/image/infer", 401},
		{secret, "GET", "/metrics", 200},
		{secret, "POST", "/v2/models/image/infer", 400},
		{"", "GET", "/metrics", 401},
	} {
		code, text := ask(t, c.method, url+c.path, c.token, []byte("{}"))
		require.Equal(t, c.code, code, "%+v: %s", c, text)
	}
}

// TestHangupReadsTheTokenAgain: the new token is accepted, the old one is not, and a bad file changes nothing.
func TestHangupReadsTheTokenAgain(t *testing.T) {
	address, path := withTokens(t, secret, nil)
	const other = "another-token-of-length"
	code := func(token string) int {
		code, _ := ask(t, http.MethodGet, "http://"+address+"/v2", token, nil)
		return code
	}
	require.Equal(t, http.StatusOK, code(secret))
	require.NoError(t, os.WriteFile(path, []byte(other), 0o600))
	require.NoError(t, syscall.Kill(os.Getpid(), syscall.SIGHUP))
	require.Eventually(t, func() bool { return code(other) == http.StatusOK }, programtest.Patience, 5*time.Millisecond)
	require.Equal(t, http.StatusUnauthorized, code(secret))
}

func TestBadTokenFiles(t *testing.T) {
	path := filepath.Join(t.TempDir(), "token")
	c := credentials{tokenFile: path, logger: quiet}
	require.ErrorContains(t, c.Load(), "token: open ")
	for text, want := range map[string]string{
		"":        "token: " + path + " is empty (write one into it: openssl rand -hex 24)",
		"abc":     path + ": the token has 3 characters, it needs 16 (openssl rand -hex 24 prints one)",
		"root xy": "token file: line 1 must be a token, or a role (metrics, view or control), a token and a name",
	} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		require.EqualError(t, c.Load(), want)
	}
}

// TestOtherSitesAreRefused: a page in a browser on this machine cannot use a server without a token.
func TestOtherSitesAreRefused(t *testing.T) {
	address := run(t, nil)
	for _, c := range []struct {
		header, value string
		code          int
	}{{"Host", "elsewhere.example", 421}, {"Origin", "http://elsewhere.example", 403}, {"Host", "localhost", 400}} {
		url := "http://" + address + "/v2/models/image/infer"
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, bytes.NewReader([]byte("{}")))
		require.NoError(t, err)
		if c.header == "Host" {
			r.Host = c.value
		} else {
			r.Header.Set(c.header, c.value)
		}
		answer, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, c.code, answer.StatusCode, strings.TrimSpace(c.value))
	}
}
