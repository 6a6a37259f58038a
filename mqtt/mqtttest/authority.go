// Package mqtttest has what the tests of MQTT need: brokers, subscribers that are not the code under test, certificates. Only tests import
// it.
package mqtttest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Authority is a certificate authority that a test makes.
type Authority struct {
	directory   string
	certificate *x509.Certificate
	key         *ecdsa.PrivateKey
}

// NewAuthority makes one whose files go with the test.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test authority"}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageCertSign, NotBefore: time.Now().Add(-48 * time.Hour), NotAfter: time.Now().Add(time.Hour),
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	require.NoError(t, err)
	certificate, err := x509.ParseCertificate(der)
	require.NoError(t, err)
	// mosquitto gives up root and must still be able to read.
	directory := t.TempDir()
	require.NoError(t, os.Chmod(directory, 0o755))
	require.NoError(t, os.Chmod(filepath.Dir(directory), 0o755))
	a := &Authority{directory: directory, certificate: certificate, key: key}
	a.write(t, "ca.pem", "CERTIFICATE", der)
	return a
}

func (a *Authority) write(t testing.TB, name, kind string, der []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(a.path(name), pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o644))
}

func (a *Authority) path(name string) string { return filepath.Join(a.directory, name) }

// Issue makes name.pem and name.key for 127.0.0.1, valid until the given time.
func (a *Authority) Issue(t testing.TB, name string, until time.Time) credentials.TLS {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	require.NoError(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
		NotBefore: time.Now().Add(-24 * time.Hour), NotAfter: until, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.certificate, &key.PublicKey, a.key)
	require.NoError(t, err)
	a.write(t, name+".pem", "CERTIFICATE", der)
	der, err = x509.MarshalECPrivateKey(key)
	require.NoError(t, err)
	a.write(t, name+".key", "EC PRIVATE KEY", der)
	return credentials.TLS{CAFile: a.path("ca.pem"), CertificateFile: a.path(name + ".pem"), KeyFile: a.path(name + ".key")}
}
