package source

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/icholy/digest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/internal/backoff"
)

// locking is how a camera is tried again whose account would be locked.
var locking = backoff.Exponential{Min: time.Hour, Max: 2 * time.Hour}

// refused asks that a camera waits long because its user name or password was refused.
func refused(t *testing.T, c *watched) {
	t.Helper()
	found := c.waitForChange("that it waits", state(capture.Waiting))
	assert.Equal(t, "the camera refused user name or password (correct them in the URI, percent-encoded; "+
		"retries are rare so that the camera does not lock the account)", found.Reason)
	assert.Greater(t, found.NextTry.Sub(found.Since), 29*time.Minute)
	assert.Equal(t, uint64(1), found.Tries)
	require.NoError(t, c.Close())
}

// TestRTSPCredentials: a server wants user name and password. The right ones are let in with either decoder; wrong ones are known as such.
func TestRTSPCredentials(t *testing.T) {
	t.Parallel()
	for _, scheme := range []string{"basic", "digest"} {
		server := newRTSPServer(t)
		server.login = []string{scheme, "admin", "p@ss/ wörd"}
		server.show(server.video)
		at := "@127.0.0.1:" + server.port + "/0"
		for _, backend := range []backend{byFFmpeg, byGStreamer} {
			t.Run(scheme+" "+string(backend), func(t *testing.T) {
				c := watch(t, &capture.Camera{
					Open: opener(backend), URI: "rtsp://admin:p%40ss%2F%20w%C3%B6rd" + at, Retry: quick, DeniedRetry: locking,
				})
				c.waitForChange("that it runs", state(capture.Running))
				c.moves(5)
				assert.Equal(t, "RTSP over TCP", c.Stats().Connection)
			})
		}
		t.Run(scheme+" refused", func(t *testing.T) {
			var log strings.Builder
			_, err := Open(t.Context(), "rtsp://admin:secret"+at, capture.Options{})
			require.ErrorIs(t, err, capture.ErrDenied)
			log.WriteString(err.Error())
			assert.NotContains(t, log.String(), "secret")
			refused(t, watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:secret" + at, Retry: quick, DeniedRetry: locking}))
		})
		t.Run(scheme+" missing", func(t *testing.T) {
			c := watch(t, &capture.Camera{Open: Open, URI: server.uri(), Retry: quick, DeniedRetry: locking})
			found := c.waitForChange("that it waits", state(capture.Waiting))
			assert.Equal(t, "the camera requires a user name and password (write them as rtsp://USER:PASSWORD@HOST/PATH)", found.Reason)
		})
	}
}

// rtspScript is a server that answers requests by a script and counts connections and passwords.
type rtspScript struct {
	address     string
	connections atomic.Int32
	passwords   atomic.Int32
}

func newRTSPScript(t *testing.T, answer func(s *rtspScript, header textproto.MIMEHeader) (text string, again bool)) *rtspScript {
	s := &rtspScript{}
	s.address = serveTCP(t, func(connection net.Conn) {
		s.connections.Add(1)
		for reader := textproto.NewReader(bufio.NewReader(connection)); ; {
			line, err := reader.ReadLine()
			if err != nil {
				return
			}
			header, err := reader.ReadMIMEHeader()
			if err != nil {
				return
			}
			if strings.HasPrefix(line, "OPTIONS ") {
				_, _ = fmt.Fprintf(connection, "RTSP/1.0 200 OK\r\nCSeq: %s\r\n\r\n", header.Get("CSeq"))
				continue
			}
			if !strings.HasPrefix(line, "DESCRIBE ") {
				return
			}
			if header.Get("Authorization") != "" {
				s.passwords.Add(1)
			}
			text, again := answer(s, header)
			if _, err := fmt.Fprintf(connection, "%sCSeq: %s\r\n\r\n", text, header.Get("CSeq")); err != nil || !again {
				return
			}
		}
	})
	return s
}

const rtspChallenge = "RTSP/1.0 401 Unauthorized\r\nWWW-Authenticate: Digest realm=\"r\", nonce=\"n\"\r\n"

// TestPasswordIsTriedOnce: a wrong password reaches the camera once a try, also if it closes the connection after its challenge.
func TestPasswordIsTriedOnce(t *testing.T) {
	s := newRTSPScript(t, func(*rtspScript, textproto.MIMEHeader) (string, bool) { return rtspChallenge, true })
	refused(t, watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:secret@" + s.address + "/", Retry: quick, DeniedRetry: locking}))
	assert.Equal(t, int32(1), s.passwords.Load())

	s = newRTSPScript(t, func(*rtspScript, textproto.MIMEHeader) (string, bool) { return rtspChallenge, false })
	_, err := Open(t.Context(), "rtsp://admin:secret@"+s.address+"/", capture.Options{})
	require.ErrorIs(t, err, capture.ErrDenied)
	assert.LessOrEqual(t, s.passwords.Load(), int32(1))
}

// TestRedirectsAreBounded: a server that sends every request elsewhere costs a few connections a try.
func TestRedirectsAreBounded(t *testing.T) {
	pause := backoff.Exponential{Min: time.Hour, Max: time.Hour}
	s := newRTSPScript(t, func(s *rtspScript, _ textproto.MIMEHeader) (string, bool) {
		return "RTSP/1.0 302 Moved\r\nLocation: rtsp://" + s.address + "/again\r\n", false
	})
	c := watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:secret@" + s.address + "/", Retry: pause})
	found := c.waitForChange("that it waits", state(capture.Waiting))
	assert.Equal(t, "more than 5 redirects (use the camera's final address)", found.Reason)
	assert.Equal(t, int32(6), s.connections.Load(), "of the first address, and of those that were followed")
	assert.Zero(t, s.passwords.Load())

	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		http.Redirect(w, r, "/again", http.StatusFound)
	}))
	t.Cleanup(server.Close)
	c = watch(t, &capture.Camera{Open: Open, URI: server.URL, Retry: pause})
	assert.Equal(t, found.Reason, c.waitForChange("that it waits", state(capture.Waiting)).Reason)
	assert.Equal(t, int32(6), asked.Load())
}

// TestRedirectLeadsToTheStream: the decoder gets the address at which the stream is, and a password only for the host that it was given
// for.
func TestRedirectLeadsToTheStream(t *testing.T) {
	server := newRTSPServer(t)
	server.login = []string{"digest", "admin", "secret"}
	server.show(server.video)
	s := newRTSPScript(t, func(*rtspScript, textproto.MIMEHeader) (string, bool) {
		return "RTSP/1.0 301 Moved\r\nLocation: " + server.uri() + "\r\n", false
	})
	c := watch(t, &capture.Camera{Open: Open, URI: "rtsp://admin:secret@" + s.address + "/", Retry: quick, DeniedRetry: locking})
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
	_, port, err := net.SplitHostPort(s.address)
	require.NoError(t, err)
	_, err = Open(t.Context(), "rtsp://admin:secret@localhost:"+port+"/", capture.Options{}) // 127.0.0.1 is another host
	require.ErrorIs(t, err, capture.ErrDenied)
	assert.Contains(t, err.Error(), "the camera requires a user name and password")
}

// TestHTTPCredentials: user name and password over HTTP, as the server wants them; the password itself goes only to one that asks for it.
func TestHTTPCredentials(t *testing.T) {
	good := newMJPEGServer(t, true)
	challenge := &digest.Challenge{Realm: "camera", Nonce: "n", QOP: []string{"auth"}, Algorithm: "SHA-256"}
	allowed := map[string]func(r *http.Request) bool{
		"basic": func(r *http.Request) bool {
			user, password, _ := r.BasicAuth()
			return user == "admin" && password == "secret"
		},
		"digest": func(r *http.Request) bool {
			given, err := digest.ParseCredentials(r.Header.Get("Authorization"))
			if err != nil {
				return false
			}
			want, err := digest.Digest(challenge, digest.Options{
				Method: r.Method, URI: r.URL.RequestURI(), Username: "admin", Password: "secret", Count: given.Nc, Cnonce: given.Cnonce,
			})
			return err == nil && *want == *given
		},
	}
	for scheme, allows := range allowed {
		var asked, passwords, clear atomic.Int32
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked.Add(1)
			given := r.Header.Get("Authorization")
			if given != "" {
				passwords.Add(1)
			}
			if strings.HasPrefix(given, "Basic ") {
				clear.Add(1)
			}
			if r.URL.Path == "/moved" {
				http.Redirect(w, r, "/video", http.StatusFound)
				return
			}
			if !allows(r) {
				w.Header().Set("WWW-Authenticate", map[string]string{"basic": `Basic realm="camera"`, "digest": challenge.String()}[scheme])
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			r.SetBasicAuth("camera", "secret")
			good.ServeHTTP(w, r)
		}))
		t.Cleanup(server.Close)
		host := strings.TrimPrefix(server.URL, "http://")
		for _, path := range []string{"/video", "/moved"} {
			t.Run(scheme+path, func(t *testing.T) {
				c := watch(t, &capture.Camera{Open: Open, URI: "http://admin:secret@" + host + path, Retry: quick, DeniedRetry: locking})
				c.last = append(c.last, server.CloseClientConnections)
				c.waitForChange("that it runs", state(capture.Running))
				c.moves(5)
			})
		}
		t.Run(scheme+" refused", func(t *testing.T) {
			before, after := passwords.Load(), asked.Load()
			refused(t, watch(t, &capture.Camera{Open: Open, URI: "http://admin:wrong@" + host + "/video", Retry: quick, DeniedRetry: locking}))
			assert.Equal(t, before+1, passwords.Load())
			assert.Equal(t, after+2, asked.Load())
		})
		assert.Equal(t, scheme == "basic", clear.Load() > 0)
	}
}

// TestForbiddenWithoutPassword: some servers forbid what they should ask a password for.
func TestForbiddenWithoutPassword(t *testing.T) {
	good := newMJPEGServer(t, true)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, _, given := r.BasicAuth(); !given {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		good.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	c := watch(t, &capture.Camera{
		Open: Open, URI: "http://camera:secret@" + strings.TrimPrefix(server.URL, "http://"), Retry: quick, DeniedRetry: locking,
	})
	c.last = append(c.last, server.CloseClientConnections)
	c.waitForChange("that it runs", state(capture.Running))
	c.moves(5)
}

// TestForbidden: some cameras answer so while they have locked an account.
func TestForbidden(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusForbidden) }))
	defer server.Close()
	_, err := Open(t.Context(), "http://admin:secret@"+strings.TrimPrefix(server.URL, "http://"), capture.Options{})
	require.ErrorIs(t, err, capture.ErrDenied)
	assert.Contains(t, err.Error(), "the camera denies access (403 Forbidden) (check the user's permissions and whether the account is locked)")
}
