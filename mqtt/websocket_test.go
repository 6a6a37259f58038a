package mqtt

import (
	"crypto/tls"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/listeners"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// startWebSocketBroker serves MQTT over WebSocket, with TLS when there are files.
func startWebSocketBroker(t testing.TB, files *credentials.TLS) string {
	t.Helper()
	config := listeners.Config{ID: "ws", Address: mqtttest.FreeAddress(t)}
	scheme := "ws://"
	if files != nil {
		pair, err := tls.LoadX509KeyPair(files.CertificateFile, files.KeyFile)
		require.NoError(t, err)
		config.TLSConfig = &tls.Config{Certificates: []tls.Certificate{pair}, MinVersion: tls.VersionTLS12}
		scheme = "wss://"
	}
	server := mochi.New(&mochi.Options{Logger: mqtttest.Discard()})
	require.NoError(t, server.AddHook(&openHook{}, nil))
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
	}, mqtttest.Patience, 10*time.Millisecond)
	return scheme + config.Address
}

func TestWebSocket(t *testing.T) {
	authority := mqtttest.NewAuthority(t)
	files := authority.Issue(t, "server", time.Now().Add(time.Hour))
	for name, files := range map[string]*credentials.TLS{"plain": nil, "TLS": &files} {
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
			a, err := address.Parse(url)
			require.NoError(t, err)
			s, err := watch.connect(t.Context(), a, identity{id: "watch", inbound: 1000, largest: 1 << 20})
			require.NoError(t, err)
			defer s.fail(errStopped)
			require.True(t, s.paho.SubscribeMultiple(map[string]byte{"edge-infer/#": 1}, nil).WaitTimeout(mqtttest.Patience))
			stop := start(t, c)
			want := map[string]bool{"online": true, "49": true, "stopped": true}
			waitConnected(t, c)
			for i := range 50 {
				send(c, frame("cam0", uint64(i)))
				c.Count("cam0", "person", i)
			}
			require.Eventually(t, func() bool { a := c.Accounting(); return a.Detections.Queued+a.State.Queued == 0 }, mqtttest.Patience,
				time.Millisecond)
			assert.Less(t, stop(), unhindered)
			deadline := time.After(mqtttest.Patience)
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
