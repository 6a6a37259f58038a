package credentials

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// TLS configures a connection's certificates (PEM files). The zero value trusts the system's authorities and presents no certificate. The
// minimum version is TLS 1.2.
type TLS struct {
	// client: authorities of the broker's certificate; broker: authorities of client certificates, which become mandatory
	CAFile          string
	CertificateFile string
	KeyFile         string
	ServerName      string // client: name expected in the broker's certificate if different from the host
	Insecure        bool   // client: do not check the broker's certificate at all
}

// Load reads the files. It is called for every connection, so that a renewed certificate needs no restart.
func (t TLS) Load() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName, InsecureSkipVerify: t.Insecure}
	if t.CAFile != "" {
		pem, err := boundedfile.Read(t.CAFile, boundedfile.Small)
		if err != nil {
			return nil, fmt.Errorf("read CA certificates: %w", err)
		}
		config.RootCAs = x509.NewCertPool()
		if !config.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("read CA certificates %s: no PEM certificate in it", t.CAFile)
		}
	}
	if (t.CertificateFile == "") != (t.KeyFile == "") {
		return nil, errors.New("a client certificate needs its key: name both files or neither")
	}
	if t.CertificateFile != "" {
		pair, err := boundedfile.KeyPair(t.CertificateFile, t.KeyFile)
		if err != nil {
			return nil, fmt.Errorf("load certificate %s: %w", t.CertificateFile, err)
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}
