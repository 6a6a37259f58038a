package outputs

import (
	"crypto/x509"
	"encoding/pem"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
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

func (l *certificates) name(c *config.Config) {
	l.files[0].use, l.files[0].path = "page", c.Web.Certificate
	l.files[1].use, l.files[1].path = "mqtt", c.MQTT.Certificate
	l.files[2].use, l.files[2].path = "mqtt authority", c.MQTT.CA
}

// setPage replaces the page's certificate.
func (l *certificates) setPage(path string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.files[0].path = path
	l.at = time.Time{} // read anew
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
