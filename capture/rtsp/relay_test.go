package rtsp

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/bluenviron/gortsplib/v5"
	"github.com/bluenviron/gortsplib/v5/pkg/base"
	"github.com/bluenviron/gortsplib/v5/pkg/description"
	"github.com/bluenviron/gortsplib/v5/pkg/format"
	"github.com/pion/rtp"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

var limits = Options{OpenTimeout: 20 * time.Second, ReadTimeout: 20 * time.Second}

// camera is an RTSP server that sends numbered packets, from 0, to the client that plays.
type camera struct {
	server      *gortsplib.Server
	stream      *gortsplib.ServerStream
	connections atomic.Int32
	playing     chan struct{}
}

func newCamera(t *testing.T, secure *tls.Config) *camera {
	c := &camera{playing: make(chan struct{}, 8)}
	c.server = &gortsplib.Server{Handler: c, RTSPAddress: "127.0.0.1:0", TLSConfig: secure}
	for port := 20000; ; port += 2 { // RTP has an even port, RTCP the next one
		c.server.UDPRTPAddress, c.server.UDPRTCPAddress = "127.0.0.1:"+strconv.Itoa(port), "127.0.0.1:"+strconv.Itoa(port+1)
		if err := c.server.Start(); err == nil {
			break
		}
		require.Less(t, port, 30000)
	}
	t.Cleanup(c.server.Close)
	c.stream = &gortsplib.ServerStream{Server: c.server, Desc: &description.Session{Medias: []*description.Media{
		{Type: description.MediaTypeAudio, Formats: []format.Format{&format.G711{PayloadTyp: 8, SampleRate: 8000, ChannelCount: 1}}},
		{Type: description.MediaTypeVideo, Formats: []format.Format{&format.H265{PayloadTyp: 96}}},
	}}}
	require.NoError(t, c.stream.Initialize())
	t.Cleanup(c.stream.Close)
	return c
}

func (c *camera) address(scheme string) string {
	return scheme + "://" + c.server.NetListener().Addr().(*net.TCPAddr).String() + "/video"
}

func (c *camera) OnConnOpen(*gortsplib.ServerHandlerOnConnOpenCtx) { c.connections.Add(1) }

func (c *camera) OnDescribe(*gortsplib.ServerHandlerOnDescribeCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, c.stream, nil
}

func (c *camera) OnSetup(*gortsplib.ServerHandlerOnSetupCtx) (*base.Response, *gortsplib.ServerStream, error) {
	return &base.Response{StatusCode: base.StatusOK}, c.stream, nil
}

func (c *camera) OnPlay(*gortsplib.ServerHandlerOnPlayCtx) (*base.Response, error) {
	c.playing <- struct{}{}
	return &base.Response{StatusCode: base.StatusOK}, nil
}

// send sends numbered packets of video until the test ends.
func (c *camera) send(t *testing.T) {
	<-c.playing
	for number := 0; t.Context().Err() == nil; number++ {
		packet := &rtp.Packet{
			Header:  rtp.Header{Version: 2, PayloadType: 96, SequenceNumber: uint16(number), Timestamp: uint32(number) * 3000, Marker: true},
			Payload: []byte{byte(number), 1, 2, 3},
		}
		_ = c.stream.WritePacketRTP(c.stream.Desc.Medias[1], packet)
		time.Sleep(time.Millisecond)
	}
}

// open opens the camera with a URI.
func open(t *testing.T, uri string) (*Stream, error) {
	u, err := capture.ParseURI(uri)
	require.NoError(t, err)
	s, err := Open(t.Context(), u, limits)
	if err == nil {
		t.Cleanup(func() { require.NoError(t, s.Close()) })
	}
	return s, err
}

// relay opens the camera with a URI for decoders that open URLs.
func relay(t *testing.T, uri string) (*Stream, *Relay) {
	s, err := open(t, uri)
	require.NoError(t, err)
	r, err := s.Serve()
	require.NoError(t, err)
	return s, r
}

// play reads packets as a decoder does and returns a channel with their first bytes.
func play(t *testing.T, address string) <-chan byte {
	at, err := base.ParseURL(address)
	require.NoError(t, err)
	tcp := gortsplib.ProtocolTCP
	decoder := &gortsplib.Client{Scheme: at.Scheme, Host: at.Host, Protocol: &tcp}
	require.NoError(t, decoder.Start())
	t.Cleanup(decoder.Close)
	described, _, err := decoder.Describe(at)
	require.NoError(t, err)
	require.Len(t, described.Medias, 1, "the video alone")
	require.NoError(t, decoder.SetupAll(described.BaseURL, described.Medias))
	got := make(chan byte, 1<<16)
	decoder.OnPacketRTPAny(func(_ *description.Media, _ format.Format, packet *rtp.Packet) { got <- packet.Payload[0] })
	_, err = decoder.Play(nil)
	require.NoError(t, err)
	return got
}

// TestOneConnection: two decoders read what the camera sends to one client, the first of them from the first packet on.
func TestOneConnection(t *testing.T) {
	for _, transport := range []string{"tcp", "udp"} {
		t.Run(transport, func(t *testing.T) {
			c := newCamera(t, nil)
			go c.send(t)
			s, r := relay(t, c.address("rtsp")+"#transport="+transport)
			assert.Equal(t, map[string]string{"tcp": "RTSP over TCP", "udp": "RTSP over UDP"}[transport], s.Connection())
			first := play(t, r.Address())
			for number := range 50 {
				assert.Equal(t, byte(number), <-first)
			}
			second := play(t, r.Address())
			before := <-second
			assert.Equal(t, before+1, <-second)
			assert.Equal(t, int32(1), c.connections.Load())
			require.NoError(t, s.Err())
		})
	}
}

// TestUnknownPath: the address of the relay is not to be guessed.
func TestUnknownPath(t *testing.T) {
	c := newCamera(t, nil)
	_, r := relay(t, c.address("rtsp"))
	_, err := open(t, "rtsp://"+r.server.NetListener().Addr().String()+"/video")
	require.ErrorIs(t, err, capture.ErrUnavailable)
	assert.Contains(t, err.Error(), "the server answers 404 Not Found (check the path)")
}

// TestCameraGoes: the decoder's connection ends with the camera's, for a reason that is not the end of a file.
func TestCameraGoes(t *testing.T) {
	c := newCamera(t, nil)
	go c.send(t)
	s, r := relay(t, c.address("rtsp"))
	<-play(t, r.Address())
	c.server.Close()
	<-s.ended
	require.Error(t, s.Err())
	require.NotErrorIs(t, s.Err(), io.EOF)
}

// TestCertificate: a camera with a certificate of its own is read if its fingerprint or CA is given, or insecurely, which is reported.
func TestCertificate(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "camera"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	file := filepath.Join(t.TempDir(), "ca.pem")
	require.NoError(t, os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	sum := sha256.Sum256(der)
	fingerprint := hex.EncodeToString(sum[:])
	c := newCamera(t, &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	uri := c.address("rtsps")

	for certificate, connection := range map[string]string{
		"sha256:" + fingerprint: "RTSP over TCP, encrypted",
		file:                    "RTSP over TCP, encrypted",
		"insecure":              "RTSP over TCP, encrypted, certificate not verified",
	} {
		r, err := open(t, uri+"#certificate="+certificate)
		require.NoError(t, err, certificate)
		assert.Equal(t, connection, r.Connection())
	}
	other := hex.EncodeToString(make([]byte, sha256.Size))
	for _, uri := range []string{uri, uri + "#certificate=sha256:" + other} {
		_, err = open(t, uri)
		require.ErrorIs(t, err, capture.ErrUnavailable)
		require.NotErrorIs(t, err, ErrRefused)
		assert.Contains(t, err.Error(), "its certificate is not trusted: ")
		assert.Contains(t, err.Error(), "#certificate=sha256:"+fingerprint+" to the address if this is your camera")
	}
	_, err = open(t, uri+"#certificate=/dev/zero")
	require.ErrorContains(t, err, "the file with the camera's CA cannot be read: a pipe or a device, not a regular file")
	_, err = open(t, uri+"#certificate=/no/such/file")
	require.ErrorContains(t, err, "the file with the camera's CA cannot be read: no such file or directory")
	require.NoError(t, os.WriteFile(file, []byte("no PEM"), 0o600))
	_, err = open(t, uri+"#certificate="+file)
	require.ErrorContains(t, err, "the file with the camera's CA cannot be read: no certificate in PEM format")
	require.NotErrorIs(t, err, ErrRefused)
}
