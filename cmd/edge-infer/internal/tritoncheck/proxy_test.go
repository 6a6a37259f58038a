package tritoncheck

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// certificate is one for this machine that signs itself.
type certificate struct {
	tls.Certificate
	file string // PEM, for clients
}

func authority(t *testing.T) *certificate {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	require.NoError(t, err)
	about := &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: "check"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, about, about, &key.PublicKey, key)
	require.NoError(t, err)
	c := &certificate{tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, filepath.Join(t.TempDir(), "authority.pem")}
	require.NoError(t, os.WriteFile(c.file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), 0o600))
	return c
}

// proxy takes TLS away in front of a server without it.
type proxy struct {
	address, server string

	mu    sync.Mutex
	now   *certificate
	conns []net.Conn
	group sync.WaitGroup
}

func newProxy(t *testing.T, server string, c *certificate) *proxy {
	p := &proxy{server: server, now: c}
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		NextProtos: []string{"h2"}, MinVersion: tls.VersionTLS12,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			p.mu.Lock()
			defer p.mu.Unlock()
			return &p.now.Certificate, nil
		},
	})
	require.NoError(t, err)
	p.address = listener.Addr().String()
	p.group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			p.group.Go(func() { p.pass(conn) })
		}
	})
	t.Cleanup(func() {
		listener.Close()
		p.present(c)
		p.group.Wait()
	})
	return p
}

// present has new connections see another certificate, and ends those that there are.
func (p *proxy) present(c *certificate) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.now = c
	for _, conn := range p.conns {
		conn.Close()
	}
	p.conns = nil
}

// pass carries bytes both ways until one side ends.
func (p *proxy) pass(client net.Conn) {
	defer client.Close()
	server, err := net.Dial("tcp", p.server)
	if err != nil {
		return
	}
	defer server.Close()
	p.mu.Lock()
	p.conns = append(p.conns, client)
	p.mu.Unlock()
	p.group.Go(func() {
		_, _ = io.Copy(client, server) // ends when either connection does
		client.Close()
	})
	_, _ = io.Copy(server, client)
}
