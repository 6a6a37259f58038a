package web

import (
	"bufio"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/live"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// still is a source without cameras.
type still struct{ status Status }

func (s *still) Status() Status { return s.status }

const token = "0123456789abcdef"

// newClient keeps no connections and follows no redirects.
func newClient(t testing.TB) *http.Client {
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	t.Cleanup(transport.CloseIdleConnections)
	stay := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &http.Client{Transport: transport, Timeout: testPatience, CheckRedirect: stay}
}

// ask makes a request and returns the answer's code and text.
func ask(t testing.TB, method, address string, body io.Reader, headers ...string) (int, string, http.Header) {
	request, err := http.NewRequest(method, address, body)
	require.NoError(t, err)
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			request.Host = headers[i+1]
		}
		request.Header.Set(headers[i], headers[i+1])
	}
	response, err := newClient(t).Do(request)
	require.NoError(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(t, err)
	return response.StatusCode, string(text), response.Header
}

func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		server *Server
		want   string
	}{
		{&Server{Address: "0.0.0.0:0"}, "web: 0.0.0.0:0 is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1"},
		{&Server{Address: ":0"}, "web: :0 is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1"},
		{&Server{Address: "[::]:0"}, "web: [::]:0 is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1"},
		{&Server{Address: "127.0.0.1:0", Token: "short"}, "web: the token has 5 characters, it needs 16 (openssl rand -hex 24 prints one)"},
		{&Server{Address: "127.0.0.1:0", User: "a", Password: "b"}, "web: the password has 1 characters, it needs 8"},
		{&Server{Address: "127.0.0.1:0", User: "a"}, "web: user and password must be set together"},
		{
			&Server{Address: "127.0.0.1:0", User: "a", Password: "12345678", Token: token},
			"web: set either a token or a user and a password, not both",
		},
		{&Server{Address: "127.0.0.1:0", KeyFile: "k"}, "web: certificate and key must be set together"},
		{
			&Server{Address: "127.0.0.1:0", KeyFile: "k", CertificateFile: "none.pem"},
			"web: certificate none.pem: open none.pem: no such file or directory",
		},
		{&Server{Address: "127.0.0.1:99999"}, `web: address "127.0.0.1:99999": address 99999: invalid port`},
	} {
		c.server.Source = &still{}
		require.EqualError(t, c.server.Open(), c.want)
		require.NoError(t, c.server.Close())
	}
	require.EqualError(t, (&Server{}).Open(), "web: needs a source")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer taken.Close()
	server := &Server{Address: taken.Addr().String(), Source: &still{}}
	require.EqualError(t, server.Open(), "web: listen tcp "+taken.Addr().String()+": bind: address already in use")
	var never Server
	require.NoError(t, never.Close())
	require.NoError(t, never.Close())
}

func TestNobodyComesInUninvited(t *testing.T) {
	server := &Server{Token: token}
	serve(t, server, &still{})
	inside := []string{
		"", "api/status", "api/detections", "api/images?camera=a", "api/video?camera=a", "api/cameras/a/stream.mjpeg", "api/cameras/a/image.jpg",
		"api/events", "api/events/1/frame", "api/events/1/clip.mp4", "api/openapi.json", "api/version", "metrics", "debug/pprof/", "nothing",
	}
	for _, path := range inside {
		code, text, headers := ask(t, "GET", server.URL()+path, nil)
		if path == "" {
			require.Equal(t, http.StatusSeeOther, code)
			require.Equal(t, "/login", headers.Get("Location"))
			continue
		}
		require.Equal(t, http.StatusUnauthorized, code, path)
		require.Equal(t, "not logged in\n", text)
		require.Equal(t, `Bearer realm="edge-infer"`, headers.Get("WWW-Authenticate"))
	}
	for _, method := range []string{"PUT", "POST"} {
		code, _, _ := ask(t, method, server.URL()+"api/cameras/a/analytics", strings.NewReader("{}"))
		require.Equal(t, http.StatusUnauthorized, code)
	}
	for _, path := range []string{"healthz", "login", "files/style.css"} {
		code, _, headers := ask(t, "GET", server.URL()+path, nil)
		require.Equal(t, http.StatusOK, code, path)
		require.Equal(t, policy, headers.Get("Content-Security-Policy"))
		require.Equal(t, "nosniff", headers.Get("X-Content-Type-Options"))
	}
	code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusOK, code)
}

func TestBasicLoginAndSession(t *testing.T) {
	server := &Server{User: "operator", Password: "correct horse"}
	serve(t, server, &still{})
	address, err := url.Parse(server.URL())
	require.NoError(t, err)
	address.User = url.UserPassword("operator", "correct horse")
	code, _, _ := ask(t, "GET", address.String()+"metrics", nil)
	require.Equal(t, http.StatusOK, code)
	_, _, headers := ask(t, "GET", server.URL()+"metrics", nil)
	require.Equal(t, `Basic realm="edge-infer"`, headers.Get("WWW-Authenticate"))
	_, _, headers = ask(t, "GET", server.URL()+"metrics", nil, "Sec-Fetch-Mode", "cors")
	require.Equal(t, `Bearer realm="edge-infer"`, headers.Get("WWW-Authenticate"), "no dialog of the browser over the page")

	form := url.Values{"user": {"operator"}, "secret": {"correct horse"}}.Encode()
	code, _, headers = ask(t, "POST", server.URL()+"login", strings.NewReader(form), "Content-Type", "application/x-www-form-urlencoded")
	require.Equal(t, http.StatusSeeOther, code)
	cookie := headers.Get("Set-Cookie")
	require.Contains(t, cookie, "HttpOnly")
	require.Contains(t, cookie, "SameSite=Strict")
	pair, _, _ := strings.Cut(cookie, ";")
	code, _, _ = ask(t, "GET", server.URL()+"api/status", nil, "Cookie", pair)
	require.Equal(t, http.StatusOK, code)
	code, _, _ = ask(t, "POST", server.URL()+"logout", nil, "Origin", "http://elsewhere.example", "Cookie", pair)
	require.Equal(t, http.StatusForbidden, code, "other sites cannot act for the user")
}

func TestGuessingIsSlow(t *testing.T) {
	server := &Server{Token: token}
	serve(t, server, &still{})
	var session string
	login := func(secret string) int {
		form := url.Values{"secret": {secret}}.Encode()
		code, _, headers := ask(t, "POST", server.URL()+"login", strings.NewReader(form), "Content-Type", "application/x-www-form-urlencoded")
		session, _, _ = strings.Cut(headers.Get("Set-Cookie"), ";")
		return code
	}
	require.Equal(t, http.StatusSeeOther, login(token))
	inside := session
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, login("guess"))
	}
	require.Equal(t, http.StatusTooManyRequests, login("guess"))
	code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer guess")
	require.Equal(t, http.StatusUnauthorized, code)
	require.Equal(t, http.StatusSeeOther, login(token), "who guesses from the owner's address does not lock the owner out")
	code, _, _ = ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusOK, code)
	code, _, _ = ask(t, "GET", server.URL()+"api/status", nil, "Cookie", inside)
	require.Equal(t, http.StatusOK, code, "who is inside stays inside")
}

func TestGuessedPasswordsAreNotHeardForAWhile(t *testing.T) {
	server := &Server{User: "operator", Password: "correct horse"}
	serve(t, server, &still{})
	login := func(secret string) int {
		form := url.Values{"user": {"operator"}, "secret": {secret}}.Encode()
		code, _, _ := ask(t, "POST", server.URL()+"login", strings.NewReader(form), "Content-Type", "application/x-www-form-urlencoded")
		return code
	}
	for range 5 {
		require.Equal(t, http.StatusUnauthorized, login("guess"))
	}
	require.Equal(t, http.StatusTooManyRequests, login("correct horse"), "not even the right one")
}

// TestALogoutEndsTheSession also for who has copied the cookie, and after a restart.
func TestALogoutEndsTheSession(t *testing.T) {
	dir := t.TempDir()
	for name, directory := range map[string]string{"kept": dir, "in memory": ""} {
		t.Run(name, func(t *testing.T) {
			server := &Server{Address: freeAddress(t), Token: token, Directory: directory}
			stop := serve(t, server, &still{})
			login := func() string {
				form := url.Values{"secret": {token}}.Encode()
				_, _, headers := ask(t, "POST", server.URL()+"login", strings.NewReader(form), "Content-Type", "application/x-www-form-urlencoded")
				pair, _, _ := strings.Cut(headers.Get("Set-Cookie"), ";")
				return pair
			}
			look := func(cookie string) int {
				code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Cookie", cookie)
				return code
			}
			mine, other := login(), login()
			require.NotEqual(t, mine, other)
			require.Equal(t, http.StatusOK, look(mine))
			code, _, _ := ask(t, "POST", server.URL()+"logout", nil, "Cookie", mine)
			require.Equal(t, http.StatusSeeOther, code)
			require.Equal(t, http.StatusUnauthorized, look(mine))
			require.Equal(t, http.StatusOK, look(other), "another browser stays logged in")
			stop()
			if directory == "" {
				return
			}
			again := &Server{Address: server.Address, Token: token, Directory: directory}
			serve(t, again, &still{})
			require.Equal(t, http.StatusUnauthorized, look(mine), "a restart does not revive it")
			require.Equal(t, http.StatusOK, look(other))
		})
	}
}

func TestForeignNamesAreRefusedWithoutALogin(t *testing.T) {
	server := &Server{}
	serve(t, server, &still{})
	for host, want := range map[string]int{
		"localhost:8080": 200, "127.0.0.1": 200, "[::1]:8080": 200, "192.0.2.1:80": 200,
		"elsewhere.example": 421, "elsewhere.example:8080": 421, "": 200, "127.0.0.1.elsewhere.example": 421,
	} {
		headers := []string{"Host", host}
		if host == "" {
			headers = nil
		}
		code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, headers...)
		require.Equal(t, want, code, host)
	}
}

func TestPathsOutsideThePageAreNotFiles(t *testing.T) {
	server := &Server{}
	serve(t, server, &still{})
	for _, path := range []string{
		"files/../login.html", "files/%2e%2e%2flogin.html", "files/..%2f..%2fserver.go", "files/%2e%2e%5cserver.go", "files/", "files",
		"page/login.html",
		"files/%00", "files/style.css/", "files//etc/passwd", "../../etc/passwd", "files/%252e%252e%252flogin.html",
		"api/cameras/..%2f..%2f/image.jpg",
	} {
		conn, err := net.Dial("tcp", server.at.String())
		require.NoError(t, err)
		_, err = fmt.Fprintf(conn, "GET /%s HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n", path)
		require.NoError(t, err)
		response, err := http.ReadResponse(bufio.NewReader(conn), nil)
		require.NoError(t, err, path)
		text, err := io.ReadAll(response.Body)
		require.NoError(t, err)
		require.NoError(t, conn.Close())
		require.Contains(t, []int{301, 307, 400, 404, 405}, response.StatusCode, path)
		require.NotContains(t, string(text), "template")
		require.NotContains(t, string(text), "root:")
	}
}

func TestOversizeRequests(t *testing.T) {
	server := &Server{Zones: &stage{}}
	source := &still{Status{Cameras: []Camera{{}}}}
	source.status.Cameras[0].Capture.Name = "a"
	serve(t, server, source)
	request, err := http.NewRequest("GET", server.URL(), nil)
	require.NoError(t, err)
	request.Header.Set("X-Long", strings.Repeat("x", 2*headerBytes))
	response, err := newClient(t).Do(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())
	require.Equal(t, http.StatusRequestHeaderFieldsTooLarge, response.StatusCode)
	body := `{"zones":[` + strings.Repeat(" ", bodyBytes)
	body = body[:bodyBytes+1] // more would be refused unread, which clients take for a lost connection
	for method, path := range map[string]string{"PUT": "analytics", "POST": "analytics/check"} {
		code, text, _ := ask(t, method, server.URL()+"api/cameras/a/"+path, strings.NewReader(body))
		require.Equal(t, http.StatusRequestEntityTooLarge, code)
		require.JSONEq(t, `{"error":"zones: more than 262144 bytes"}`, text)
	}
	code, _, _ := ask(t, "GET", server.URL()+"api/images?"+strings.Repeat("camera=a&", live.MaxStreamCameras+1), nil)
	require.Equal(t, http.StatusBadRequest, code)
	code, _, _ = ask(t, "GET", server.URL()+"api/events?limit=1000000", nil)
	require.Equal(t, http.StatusBadRequest, code)
}

func TestTooManyRequests(t *testing.T) {
	server := &Server{}
	serve(t, server, &still{})
	transport := &http.Transport{}
	defer transport.CloseIdleConnections()
	web := &http.Client{Transport: transport, Timeout: testPatience}
	refused := 0
	for range 2000 {
		response, err := web.Get(server.URL() + "healthz")
		require.NoError(t, err)
		_, err = io.Copy(io.Discard, response.Body)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		if response.StatusCode == http.StatusTooManyRequests {
			refused++
			require.Equal(t, "1", response.Header.Get("Retry-After"))
			break
		}
	}
	require.NotZero(t, refused)
}

// TestSlowloris sends headers that never end.
func TestSlowloris(t *testing.T) {
	server := &Server{limits: defaultLimits()}
	require.LessOrEqual(t, server.limits.header, 10*time.Second)
	server.limits.header = time.Second / 2
	serve(t, server, &still{})
	conn, err := net.Dial("tcp", server.at.String())
	require.NoError(t, err)
	defer conn.Close()
	_, err = io.WriteString(conn, "GET / HTTP/1.1\r\nHost: localhost\r\n")
	require.NoError(t, err)
	stop := make(chan struct{})
	written := make(chan struct{})
	go func() {
		defer close(written)
		for {
			select {
			case <-stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			if _, err := io.WriteString(conn, "X-More: 1\r\n"); err != nil {
				return
			}
		}
	}()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(testPatience)))
	_, err = io.Copy(io.Discard, conn)
	require.False(t, os.IsTimeout(err), "the server hangs up")
	close(stop)
	<-written
}

func TestTLS(t *testing.T) {
	certificate, key := selfSigned(t)
	var logged bytes.Buffer
	server := &Server{
		Address: "127.0.0.1:0", Token: token, CertificateFile: certificate, KeyFile: key,
		Logger: slog.New(slog.NewTextHandler(&logged, nil)),
	}
	serve(t, server, &still{})
	require.True(t, strings.HasPrefix(server.URL(), "https://127.0.0.1:"))
	code, _, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusOK, code)
	form := url.Values{"secret": {token}}.Encode()
	_, _, headers := ask(t, "POST", server.URL()+"login", strings.NewReader(form), "Content-Type", "application/x-www-form-urlencoded")
	require.True(t, strings.HasPrefix(headers.Get("Set-Cookie"), "__Host-edge-infer-"))
	require.Contains(t, headers.Get("Set-Cookie"), "Secure")
	require.Equal(t, "max-age=15552000", headers.Get("Strict-Transport-Security"))
	_, err := tls.Dial("tcp", server.at.String(), &tls.Config{InsecureSkipVerify: true, MaxVersion: tls.VersionTLS11})
	require.Error(t, err)
	require.Empty(t, logged.String())
}

// selfSigned writes a certificate for this machine and its key.
func selfSigned(t *testing.T) (certificate, key string) {
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), DNSNames: []string{"localhost"}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, private.Public(), private)
	require.NoError(t, err)
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	require.NoError(t, err)
	directory := t.TempDir()
	certificate, key = filepath.Join(directory, "certificate.pem"), filepath.Join(directory, "key.pem")
	require.NoError(t, os.WriteFile(certificate, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	require.NoError(t, os.WriteFile(key, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret}), 0o600))
	return certificate, key
}

func TestAnOpenAddressWithoutTLSIsWarnedOf(t *testing.T) {
	var logged bytes.Buffer
	server := &Server{Address: "0.0.0.0:0", Token: token, Source: &still{}, Logger: slog.New(slog.NewTextHandler(&logged, nil))}
	require.NoError(t, server.Open())
	require.NoError(t, server.Close())
	require.Contains(t, logged.String(), "without TLS")
}

// TestRolesOfThePage: a token allows what its role includes, and the page says which role a change needs.
func TestRolesOfThePage(t *testing.T) {
	const metrics, view = "metrics-metrics-metrics", "view-view-view-view"
	server := &Server{Token: "metrics " + metrics + "\nview " + view + "\n" + token, Profiling: true}
	serve(t, server, &still{})
	for _, c := range []struct {
		method, path string
		least        int // of the tokens in their order
	}{
		{"GET", "metrics", 0}, {"GET", "", 1}, {"GET", "api/status", 1}, {"PUT", "api/cameras/a/analytics", 2}, {"GET", "debug/pprof/", 2},
	} {
		for i, secret := range []string{metrics, view, token} {
			code, _, _ := ask(t, c.method, server.URL()+c.path, nil, "Authorization", "Bearer "+secret)
			require.Equal(t, i < c.least, code == http.StatusForbidden, "%s %s as %s: %d", c.method, c.path, secret, code)
		}
	}
	_, text, _ := ask(t, "GET", server.URL()+"api/status", nil, "Authorization", "Bearer "+view)
	require.Contains(t, text, "zones are changed with one of the role control")
}

// TestChangesAreRecordedWithWhoMadeThem: by the name of the token, also in a session that it has begun.
func TestChangesAreRecordedWithWhoMadeThem(t *testing.T) {
	record := filepath.Join(t.TempDir(), "audit.jsonl")
	s := &stage{analytics: map[string]zone.Config{}}
	server := &Server{Token: "control " + token + " Ada", Zones: s, Audit: &audit.Log{Path: record}}
	serve(t, server, frames("a"))
	path := server.URL() + "api/cameras/a/analytics"
	code, _, _ := ask(t, "PUT", path, strings.NewReader("{}"), "If-Match", "*", "Authorization", "Bearer "+token)
	require.Equal(t, http.StatusNoContent, code)
	browser := programtest.Visitor(t)
	answer, err := browser.PostForm(server.URL()+"login", url.Values{"secret": {token}})
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	request, err := http.NewRequest(http.MethodPut, path, strings.NewReader("{}"))
	require.NoError(t, err)
	request.Header.Set("If-Match", "*")
	answer, err = browser.Do(request)
	require.NoError(t, err)
	require.NoError(t, answer.Body.Close())
	require.Equal(t, http.StatusNoContent, answer.StatusCode)
	server.Audit.Close()
	recorded, err := os.ReadFile(record)
	require.NoError(t, err)
	require.Equal(t, 2, strings.Count(string(recorded), `"over":"page","who":"Ada","from":"127.0.0.1:`), "%s", recorded)
	require.NotContains(t, string(recorded), token)
}
