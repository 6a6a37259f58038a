package mqtt

import (
	"crypto/tls"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestBrokerPortInUse(t *testing.T) {
	first := startBroker(t, "")
	second := &Broker{Address: first.Addr(), Logger: discard()}
	assert.EqualError(t, second.Open(), "open embedded broker: listen tcp "+first.Addr()+": bind: address already in use "+
		"(if that is a broker, publish to it with --mqtt tcp://"+first.Addr()+", or choose another port)")
	assert.NoError(t, second.Close())
}

func TestBrokerCloses(t *testing.T) {
	noLeaks(t)
	b := &Broker{}
	assert.NoError(t, b.Close(), "never opened")
	b = startBroker(t, "")
	require.NoError(t, b.Close())
	require.NoError(t, b.Close())
	b.Address = b.Addr()
	require.NoError(t, b.Open(), "opened again on the same port")
	require.NoError(t, b.Close())
}

func TestBrokerPasswordAndTLS(t *testing.T) {
	authority := newAuthority(t)
	server := authority.issue(t, "server", time.Now().Add(time.Hour))
	client := authority.issue(t, "client", time.Now().Add(time.Hour))
	file := filepath.Join(t.TempDir(), "password")
	require.NoError(t, os.WriteFile(file, []byte("geheim\n"), 0o600))
	b := &Broker{Address: "127.0.0.1:0", User: "edge", PasswordFile: file, TLS: server, Logger: discard()}
	require.NoError(t, b.Open())
	defer b.Close()
	for _, c := range []struct {
		name, user string
		password   Secret
		files      TLS
		connects   bool
	}{
		{"all right", "edge", "geheim", client, true},
		{"wrong password", "edge", "geheim2", client, false},
		{"wrong user", "edg", "geheim", client, false},
		{"nobody", "", "", client, false},
		{"no certificate", "edge", "geheim", TLS{CAFile: client.CAFile}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			mqtt := testClient(b.URL())
			mqtt.User, mqtt.Password, mqtt.TLS = c.user, c.password, c.files
			start(t, mqtt)
			require.Eventually(t, func() bool { s := mqtt.Connection(); return s.Connected || s.Error != "" }, patience, time.Millisecond)
			if c.connects {
				waitConnected(t, mqtt)
			} else {
				assert.False(t, mqtt.Connection().Connected)
			}
		})
	}
}

func TestBrokerIsQuiet(t *testing.T) {
	log := &journal{}
	b := &Broker{Address: "127.0.0.1:0", Logger: log.logger()}
	require.NoError(t, b.Open())
	require.NoError(t, b.Close())
	assert.NotContains(t, log.String(), "level=WARN")
	assert.NotContains(t, log.String(), "level=INFO", "the library's own lines are for debugging")
	assert.Contains(t, log.String(), "level=DEBUG")
}

func TestLoopback(t *testing.T) {
	for address, want := range map[string]bool{"127.0.0.1:1883": true, "[::1]:1883": true, "0.0.0.0:1883": false, "[::]:1883": false, "192.168.0.7:1883": false} {
		assert.Equal(t, want, loopback(address), address)
	}
}

func TestBrokerRefusesBadFiles(t *testing.T) {
	b := &Broker{Address: "127.0.0.1:0", PasswordFile: "/nowhere/password", Logger: discard()}
	assert.EqualError(t, b.Open(), "open embedded broker: read password file: open /nowhere/password: no such file or directory")
	b = &Broker{Address: "127.0.0.1:0", TLS: TLS{CertificateFile: "/nowhere/cert", KeyFile: "/nowhere/key"}, Logger: discard()}
	assert.EqualError(t, b.Open(), "open embedded broker: load certificate /nowhere/cert: open /nowhere/cert: no such file or directory")
}

// startWebSocketBroker serves MQTT over WebSocket, with TLS when there are files.
func startWebSocketBroker(t testing.TB, files *TLS) string {
	t.Helper()
	config := listeners.Config{ID: "ws", Address: freeAddress(t)}
	scheme := "ws://"
	if files != nil {
		pair, err := tls.LoadX509KeyPair(files.CertificateFile, files.KeyFile)
		require.NoError(t, err)
		config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		scheme = "wss://"
	}
	server := mochi.New(&mochi.Options{Logger: discard()})
	require.NoError(t, server.AddHook(&login{}, nil))
	require.NoError(t, server.AddListener(listeners.NewWebsocket(config)))
	require.NoError(t, server.Serve())
	t.Cleanup(func() { server.Close() })
	require.Eventually(t, func() bool {
		transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get(strings.Replace(scheme, "ws", "http", 1) + config.Address)
		if err == nil {
			response.Body.Close()
		}
		return err == nil || !errors.Is(err, http.ErrServerClosed) && !strings.Contains(err.Error(), "refused")
	}, patience, 10*time.Millisecond)
	return scheme + config.Address
}

func TestWebSocket(t *testing.T) {
	authority := newAuthority(t)
	files := authority.issue(t, "server", time.Now().Add(time.Hour))
	for name, files := range map[string]*TLS{"plain": nil, "TLS": &files} {
		t.Run(name, func(t *testing.T) {
			url := startWebSocketBroker(t, files)
			c := testClient(url + "/mqtt")
			if files != nil {
				c.TLS.CAFile = files.CAFile
			}
			watch := testClient(url)
			watch.TLS = c.TLS
			require.NoError(t, watch.Open())
			defer watch.Close()
			a, err := parseAddress(url)
			require.NoError(t, err)
			s, err := watch.connect(t.Context(), a, identity{id: "watch", inbound: 1000, largest: 1 << 20})
			require.NoError(t, err)
			defer s.fail(errStopped)
			require.True(t, s.paho.SubscribeMultiple(map[string]byte{"edge-infer/#": 1}, nil).WaitTimeout(patience))
			stop := start(t, c)
			want := map[string]bool{"online": true, "49": true, "stopped": true}
			waitConnected(t, c)
			for i := range 50 {
				c.Detections(frame("cam0", uint64(i)))
				c.Count("cam0", "person", i)
			}
			require.Eventually(t, func() bool { a := c.Accounting(); return a.Detections.Queued+a.State.Queued == 0 }, patience, time.Millisecond)
			assert.Less(t, stop(), 2*time.Second)
			deadline := time.After(patience)
			for len(want) > 0 {
				select {
				case m := <-s.inbound:
					delete(want, string(m.Payload()))
				case <-deadline:
					t.Fatalf("not received: %v", want)
				}
			}
		})
	}
}
