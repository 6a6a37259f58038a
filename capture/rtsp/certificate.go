package rtsp

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// insecure accepts any certificate.
const insecure = "insecure"

// certificateError reports a certificate that is not trusted.
type certificateError struct {
	cause       error
	fingerprint string // hexadecimal SHA-256 of the certificate
}

func (e *certificateError) Error() string {
	return "its certificate is not trusted: " + e.cause.Error()
}
func (e *certificateError) Unwrap() error { return e.cause }

// trust is what a camera's certificate is compared with.
type trust struct {
	insecure    bool           // nothing
	fingerprint string         // hexadecimal SHA-256; if empty, the chain is verified against roots
	roots       *x509.CertPool // nil for the system's authorities
}

// newTrust parses capture.URI.Certificate and reads its file.
func newTrust(certificate string) (trust, error) {
	if fingerprint, ok := strings.CutPrefix(certificate, "sha256:"); ok {
		return trust{fingerprint: fingerprint}, nil
	}
	switch certificate {
	case "":
		return trust{}, nil
	case insecure:
		return trust{insecure: true}, nil
	}
	data, err := boundedfile.Read(certificate, boundedfile.Small)
	if failed, known := errors.AsType[*fs.PathError](err); known {
		err = failed.Err // without the path, which is in the message
	}
	if err != nil {
		return trust{}, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(data) {
		return trust{}, errors.New("no certificate in PEM format")
	}
	return trust{roots: roots}, nil
}

// config returns the TLS settings for a connection to host.
func (t trust) config(host string) *tls.Config {
	return &tls.Config{
		ServerName: host,
		// VerifyConnection verifies instead, because the error must contain the fingerprint.
		InsecureSkipVerify: true, //nolint:gosec // see above
		VerifyConnection:   func(state tls.ConnectionState) error { return t.verify(state.PeerCertificates, host) },
	}
}

// verify checks the chain of certificates of a camera.
func (t trust) verify(chain []*x509.Certificate, host string) error {
	if t.insecure {
		return nil
	}
	sum := sha256.Sum256(chain[0].Raw)
	fingerprint := hex.EncodeToString(sum[:])
	if t.fingerprint == fingerprint {
		return nil
	}
	if t.fingerprint != "" {
		return &certificateError{fmt.Errorf("its fingerprint is %s, not %s", fingerprint, t.fingerprint), fingerprint}
	}
	options := x509.VerifyOptions{DNSName: host, Roots: t.roots, Intermediates: x509.NewCertPool()}
	for _, intermediate := range chain[1:] {
		options.Intermediates.AddCert(intermediate)
	}
	if _, err := chain[0].Verify(options); err != nil {
		return &certificateError{err, fingerprint}
	}
	return nil
}
