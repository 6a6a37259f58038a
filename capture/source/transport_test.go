package source

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"math/big"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// selfSigned returns the TLS settings of a camera with a certificate of its own.
func selfSigned(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// TestTransports: a camera is decoded over each transport and with packets that it encrypts (SRTP), on one connection. Over TCP its
// time is soon the camera's.
func TestTransports(t *testing.T) {
	t.Parallel()
	video := encodedVideo(t, "libx264", small)
	for name, test := range map[string]struct {
		secure     bool
		parameters string
		connection string
	}{
		"tcp":           {false, "#transport=tcp", "RTSP over TCP"},
		"udp":           {false, "#transport=udp", "RTSP over UDP"},
		"encrypted tcp": {true, "#certificate=insecure", "RTSP over TCP, encrypted, certificate not verified"},
		"encrypted udp": {true, "#certificate=insecure&transport=udp", "RTSP over UDP, encrypted, certificate not verified"},
	} {
		t.Run(name, func(t *testing.T) {
			server := &rtsptest.Server{UDP: true}
			if test.secure {
				server.TLS = selfSigned(t)
			}
			served(t, server, video)
			c := watch(t, &capture.Camera{Open: Open, URI: server.URL(0) + test.parameters, Retry: quick})
			c.waitForChange("that it runs", state(capture.Running))
			c.moves(25)
			if strings.HasSuffix(name, "tcp") { // over UDP the first report comes after ten seconds, and may be lost
				timed := assert.Eventually(t, func() bool { return c.Stats().CameraTime }, patience, 10*time.Millisecond)
				require.True(t, timed, "%+v, server %+v", c.Stats(), server.Stats(0))
			}
			assert.Equal(t, test.connection, c.Stats().Connection)
			assert.Equal(t, 1, server.Stats(0).Connections)
			assert.Zero(t, c.Stats().Reconnects)
		})
	}
}

// TestPacketsLostOverUDP: lost packets cost images, which are counted, and never the connection.
func TestPacketsLostOverUDP(t *testing.T) {
	t.Parallel()
	for _, encoder := range []string{"libx264", "libx265"} {
		t.Run(encoder, func(t *testing.T) {
			server := served(t, &rtsptest.Server{UDP: true, Faults: rtsptest.Faults{LosePacket: 20}}, encodedVideo(t, encoder, large))
			c := watch(t, &capture.Camera{Open: Open, URI: server.URL(0) + "#transport=udp", Retry: quick})
			c.waitForChange("that it runs", state(capture.Running))
			require.Eventually(t, func() bool { return c.Stats().Damaged > 3 }, patience, 10*time.Millisecond)
			c.moves(25)
			assert.Equal(t, "RTSP over UDP", c.Stats().Connection)
			assert.Equal(t, 1, server.Stats(0).Connections)
			assert.Zero(t, c.Stats().Reconnects)
		})
	}
}
