package outputs

import (
	"crypto/x509"
	"encoding/pem"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/state"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// certificatePause is the interval between checks of certificates.
const certificatePause = time.Minute

// certificates are the configured certificates as of the last check.
type certificates struct {
	mu    sync.Mutex
	files [3]struct{ use, path string }
	at    time.Time
	all   []state.Certificate
}

// What certificates are for, by their place in certificates.files.
const (
	pageCertificate = iota
	brokerCertificate
	brokerAuthority
)

func (l *certificates) name(o *site.Outputs) {
	for i, use := range [...]string{"page", "mqtt", "mqtt authority"} {
		l.files[i].use = use
	}
	l.set(pageCertificate, o.Web.Certificate)
	l.set(brokerCertificate, o.MQTT.Certificate)
	l.set(brokerAuthority, o.MQTT.CA)
}

// set replaces a certificate, which is read anew.
func (l *certificates) set(at int, path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[at].path = path
	l.at = time.Time{}
}

func (l *certificates) read() []state.Certificate {
	l.mu.Lock()
	defer l.mu.Unlock()
	if now := time.Now(); now.Sub(l.at) >= certificatePause {
		l.at, l.all = now, nil
		for _, file := range l.files {
			if expires, ok := expiry(file.path); ok {
				l.all = append(l.all, state.Certificate{Use: file.use, Expires: expires})
			}
		}
	}
	return l.all
}

// expiry is when the first of a file's certificates is no longer valid; false when there is none in it.
func expiry(path string) (first time.Time, ok bool) {
	if path == "" {
		return time.Time{}, false
	}
	text, err := boundedfile.Read(path, boundedfile.Small)
	if err != nil {
		return time.Time{}, false
	}
	for block, rest := pem.Decode(text); block != nil; block, rest = pem.Decode(rest) {
		certificate, err := x509.ParseCertificate(block.Bytes)
		if err == nil && (!ok || certificate.NotAfter.Before(first)) {
			first, ok = certificate.NotAfter, true
		}
	}
	return first, ok
}
