package webhook

import (
	"context"
	"crypto/ecdh"
	"encoding/base64"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// pushService is the push service of a browser. It takes what is signed and encrypted, and answers with a status.
type pushService struct {
	*httptest.Server
	status atomic.Int32

	mu    sync.Mutex
	taken []http.Header
	sizes []int
}

func newPushService(t *testing.T) *pushService {
	p := &pushService{}
	p.status.Store(http.StatusCreated)
	p.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		p.mu.Lock()
		p.taken, p.sizes = append(p.taken, r.Header), append(p.sizes, len(body))
		p.mu.Unlock()
		w.WriteHeader(int(p.status.Load()))
	}))
	t.Cleanup(p.Close)
	return p
}

func (p *pushService) count() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.taken)
}

// browserSender returns a running sender to a browser of a push service.
func browserSender(t *testing.T, service *pushService) (s *Sender, gone chan bool) {
	private, err := ecdh.P256().GenerateKey(nil)
	require.NoError(t, err)
	encode := base64.RawURLEncoding.EncodeToString
	gone = make(chan bool, 10)
	s = &Sender{
		Name: "browser-1", URL: service.URL + "/subscription", Device: "hall", Format: config.WebPush, Filter: Filter{Events: []string{"new"}},
		Secret:   credentials.Secret(encode(private.PublicKey().Bytes()) + "." + encode(make([]byte, 16))),
		Identity: filepath.Join(t.TempDir(), identityName), Spool: spool.Config{Directory: t.TempDir()}, Logger: slog.New(slog.DiscardHandler),
		Gone: func() { gone <- true }, dial: new(net.Dialer).DialContext,
	}
	require.NoError(t, s.Open())
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		assert.NoError(t, s.Run(ctx))
	}()
	t.Cleanup(func() {
		cancel()
		<-ended
		assert.NoError(t, s.Close())
	})
	return s, gone
}

func pushEvent(s *Sender, kind string) {
	s.Event(&payload.Event{Type: kind, Camera: "gate", Label: "person", Score: 0.9, Object: "1-2", Time: time.Now()})
}

// TestBrowsersAreNotified: what a push service gets is signed, encrypted and short-lived.
func TestBrowsersAreNotified(t *testing.T) {
	service := newPushService(t)
	s, _ := browserSender(t, service)
	pushEvent(s, "end")
	pushEvent(s, "new")
	require.Eventually(t, func() bool { return s.Status().Delivered == 1 }, mqtttest.Patience, time.Millisecond)
	require.Equal(t, 1, service.count())
	header := service.taken[0]
	assert.True(t, strings.HasPrefix(header.Get("Authorization"), "vapid t="))
	assert.Equal(t, "aes128gcm", header.Get("Content-Encoding"))
	assert.Equal(t, "3600", header.Get("TTL"))
	assert.Greater(t, service.sizes[0], 86+17)
	assert.Empty(t, header.Get("webhook-signature"))
}

// TestABrowserThatIsGoneIsRemoved: for 404 as well as 410; other answers are repeated.
func TestABrowserThatIsGoneIsRemoved(t *testing.T) {
	for _, status := range []int32{http.StatusNotFound, http.StatusGone} {
		service := newPushService(t)
		service.status.Store(status)
		s, gone := browserSender(t, service)
		pushEvent(s, "new")
		select {
		case <-gone:
		case <-time.After(mqtttest.Patience):
			t.Fatal("not removed")
		}
		pushEvent(s, "new")
		assert.True(t, s.Status().Disabled)
		assert.Equal(t, 1, service.count())
	}
	service := newPushService(t)
	service.status.Store(http.StatusTooManyRequests)
	s, _ := browserSender(t, service)
	pushEvent(s, "new")
	require.Eventually(t, func() bool { return s.Status().Error != "" }, mqtttest.Patience, time.Millisecond)
	service.status.Store(http.StatusCreated)
	require.Eventually(t, func() bool { return s.Status().Delivered == 1 }, mqtttest.Patience, time.Millisecond)
}

// TestPushServicesAreOnTheInternet: a name of this network is not connected to.
func TestPushServicesAreOnTheInternet(t *testing.T) {
	dialer := publicDialer()
	for _, address := range []string{
		"127.0.0.1:80", "10.1.2.3:80", "192.168.1.1:443", "169.254.169.254:80", "[::1]:80", "[fd00::1]:80", "[::ffff:10.0.0.1]:80",
	} {
		require.ErrorContains(t, dialer.Control("tcp", address, nil), "is no address of the internet", address)
	}
	require.NoError(t, dialer.Control("tcp", "203.0.114.7:443", nil))
}
