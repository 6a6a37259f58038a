package daemon

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"math/big"
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

// certify writes a certificate for this machine that is valid for so long, and its key.
func certify(t *testing.T, dir string, valid time.Duration) (certificate, key string) {
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(valid), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	signed, err := x509.CreateCertificate(rand.Reader, &template, &template, &secret.PublicKey, secret)
	require.NoError(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(secret)
	require.NoError(t, err)
	write := func(name, kind string, data []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: data}), 0o600))
		return path
	}
	return write("page.pem", "CERTIFICATE", signed), write("page.key", "PRIVATE KEY", private)
}

// TestMetricsOfARun looks at a run before and after a reload that it refuses, wrong tokens, and a restart in place for a renewed
// certificate.
func TestMetricsOfARun(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certificate, key := certify(t, dir, 40*24*time.Hour)
	token, path := filepath.Join(dir, "token"), filepath.Join(dir, "edge-infer.yaml")
	const secret = "0123456789abcdef"
	require.NoError(t, os.WriteFile(token, []byte(secret), 0o600))
	address := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	sound := fmt.Sprintf("mqtt: {listen: '127.0.0.1:%d'}\nweb: {listen: '%s', token_file: %s, certificate: %s, key: %s}\n"+
		"cameras: [{name: belt, uri: 'demo?width=160&height=120&fps=5'}]\n", programtest.FreePort(t), address, token, certificate, key)
	write := func(text string) { require.NoError(t, os.WriteFile(path, []byte(text), 0o600)) }
	write(sound)
	p := programtest.Start(t, "--config", path)
	p.PrintedAfter("web page at ")
	p.Discard()
	client := programtest.Visitor(t)
	client.Transport = insecure()
	ask := func(secret string) (code int, text string) {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "https://"+address+"/metrics", nil)
		require.NoError(t, err)
		request.Header.Set("Authorization", "Bearer "+secret)
		response, err := client.Do(request)
		if err != nil {
			return 0, "" // it restarts
		}
		defer response.Body.Close()
		var body strings.Builder
		if response.Write(&body) != nil {
			return 0, ""
		}
		return response.StatusCode, body.String()
	}
	shows := func(lines ...string) {
		t.Helper()
		var text string
		require.Eventually(t, func() bool {
			_, text = ask(secret)
			for _, line := range lines {
				if !strings.Contains(text, "\nedge_infer_"+line) {
					return false
				}
			}
			return true
		}, programtest.Patience, 100*time.Millisecond, "%q: %s", lines, p.Stderr)
	}
	shows("mqtt_connected 1\n", "mqtt_since_seconds 1.", "mqtt_connects_total 1\n", "mqtt_largest_packet_bytes ", "spool_bytes 0\n",
		"broker_connections 1\n",
		"broker_retained_messages ", `camera_state{camera="belt",state="running"} 1`+"\n", `camera_last_frame_seconds{camera="belt"} 0`,
		"restarts_total 0\n",
		"watchdog_margin_seconds ", `certificate_left_seconds{use="page"} 3.45`, "web_refused_logins_total 0\n")
	code, _ := ask("wrong")
	require.Equal(t, http.StatusUnauthorized, code)
	write("detekt: {}\n")
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	shows("reload_success 0\n", "web_refused_logins_total 1\n")
	write(sound)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	shows("reload_success 1\n", "reload_time_seconds 1.")
	certify(t, dir, 90*24*time.Hour)
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	shows("restarts_total 0\n", `certificate_left_seconds{use="page"} 7.77`)
	write(sound + "engine: {threads: 1}\n")
	require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
	shows("restarts_total 1\n")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// insecure trusts every certificate and keeps no connection.
func insecure() *http.Transport {
	return &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
}
