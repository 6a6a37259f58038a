package rtsp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5/pkg/headers"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/rtsp/rtsptest"
)

// selfSigned returns the TLS settings of a camera with a certificate of its own.
func selfSigned(t *testing.T) *tls.Config {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}}
}

// TestSRTP: packets of a camera that encrypts them (SAVP in its description, keys by MIKEY) are decrypted, over each transport.
func TestSRTP(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		t.Run(transport, func(t *testing.T) {
			c := newCamera(t, selfSigned(t))
			go c.send(t)
			s, r := relay(t, c.address("rtsps")+"#certificate=insecure&transport="+transport)
			first := play(t, r.Address())
			number := <-first
			if transport == "tcp" { // over UDP the camera may send before its reader listens
				assert.Zero(t, number)
			}
			for range 19 {
				number++
				assert.Equal(t, number, <-first)
			}
			require.NoError(t, s.Err())
			assert.Equal(t, headers.TransportProfileSAVP, s.camera.client.Transport().Session.Profile)
		})
	}
}

// TestSRTPWithoutKeys: a camera that encrypts packets with keys that it does not give by MIKEY is refused in one line.
func TestSRTPWithoutKeys(t *testing.T) {
	c := rawCamera(t, &rtsptest.Raw{
		SDP: owner + strings.Replace(h264Video, "RTP/AVP", "RTP/SAVP", 1) + "a=crypto:1 AES_CM_128_HMAC_SHA1_80 inline:x\r\n",
		TLS: selfSigned(t), Headers: map[string]string{"SETUP": "Session: 1\r\nTransport: RTP/SAVP/TCP;unicast;interleaved=0-1\r\n"},
	})
	_, err := open(t, c.URL()+"#certificate=insecure")
	require.ErrorIs(t, err, ErrRefused)
	assert.EqualError(t, err, "open "+c.URL()+": server did not provide key-mgmt data in any supported way")
	_, err = open(t, rawCamera(t, &rtsptest.Raw{SDP: owner + h264Video, TLS: selfSigned(t)}).URL()+"#certificate=insecure&transport=udp")
	require.ErrorContains(t, err, ": unable to setup secure UDP")
}

// TestMulticast: a camera that sends to a group is read.
func TestMulticast(t *testing.T) {
	group := &net.UDPAddr{IP: net.IPv4(239, 192, 7, 9)}
	sender, err := net.ListenPacket("udp4", "127.0.0.1:0") // the camera sends from the port that it sends to
	require.NoError(t, err)
	defer sender.Close()
	raw, err := sender.(*net.UDPConn).SyscallConn()
	require.NoError(t, err)
	require.NoError(t, raw.Control(func(fd uintptr) {
		err = unix.SetsockoptInet4Addr(int(fd), unix.IPPROTO_IP, unix.IP_MULTICAST_IF, [4]byte{127, 0, 0, 1})
	}))
	require.NoError(t, err)
	group.Port = sender.LocalAddr().(*net.UDPAddr).Port
	setup := fmt.Sprintf("Session: 1\r\nTransport: RTP/AVP;multicast;destination=%s;source=127.0.0.1;port=%d-%d;ttl=1\r\n",
		group.IP, group.Port, group.Port+1)
	c := rawCamera(t, &rtsptest.Raw{SDP: owner + h264Video, Headers: map[string]string{"SETUP": setup}, Play: func(func(*rtp.Packet) error) {
		sendUnits(func(packet *rtp.Packet) error {
			time.Sleep(time.Millisecond)
			data, err := packet.Marshal()
			require.NoError(t, err)
			_, err = sender.WriteTo(data, group)
			return errors.Join(err, t.Context().Err())
		})
	}})
	s, err := open(t, c.URL()+"#transport=multicast")
	if err != nil && strings.Contains(err.Error(), "no such device") {
		t.Skip("no multicast on loopback: " + err.Error())
	}
	require.NoError(t, err)
	assert.Equal(t, "RTSP over multicast", s.Connection())
	reader := s.Units()
	for range 20 {
		unit, err := reader.Next(t.Context())
		require.NoError(t, err)
		assert.Equal(t, capture.H264, unit.Codec)
	}
}
