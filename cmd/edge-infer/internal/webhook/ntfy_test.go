package webhook

import (
	"context"
	"io"
	"mime"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// topic is a topic of an ntfy server.
type topic struct {
	*httptest.Server
	t      *testing.T
	answer func(n *notification) int // the status; nil for 200

	mu  sync.Mutex
	all []notification // every attempt
}

// notification is what a subscriber gets.
type notification struct{ title, text, image, token string }

func newTopic(t *testing.T, answer func(n *notification) int) *topic {
	r := &topic{t: t, answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *topic) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	assert.Equal(r.t, http.MethodPut, request.Method)
	decode := func(name string) string {
		text, err := new(mime.WordDecoder).DecodeHeader(request.Header.Get(name))
		assert.NoError(r.t, err)
		return text
	}
	body, err := io.ReadAll(request.Body)
	assert.NoError(r.t, err)
	n := notification{title: decode("Title"), text: string(body), token: request.Header.Get("Authorization")}
	if request.Header.Get("Filename") != "" { // the body is an attachment then
		n.text, n.image = decode("Message"), string(body)
	}
	r.mu.Lock()
	r.all = append(r.all, n)
	r.mu.Unlock()
	if r.answer != nil {
		w.WriteHeader(r.answer(&n))
	}
}

func (r *topic) received() []notification {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]notification(nil), r.all...)
}

// TestNotifications: each kind of event as a sentence below the camera's name, with the image of the object where there is one.
func TestNotifications(t *testing.T) {
	to := newTopic(t, nil)
	file := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(file, []byte("tk_123\n"), 0o600))
	withImage := event("new", 1).Object
	s := start(t, &Sender{
		URL: to.URL, Format: config.Ntfy, SecretFile: file, Filter: Filter{Events: payload.EventTypes()},
		Image: func(_ context.Context, object string) []byte {
			if object == withImage {
				return []byte("a JPEG")
			}
			return nil
		},
	})
	require.NoError(t, s.CheckSecret())
	for n, e := range []payload.Event{
		{Type: "new", Score: 0.934},
		{Type: "update"},
		{Type: "enter", Zone: "Höfe", Entered: []string{"Höfe"}},
		{Type: "loiter", Zone: "Höfe", Dwell: 95 * time.Second},
		{Type: "leave", Zone: "Höfe", Dwell: 3100 * time.Millisecond},
		{Type: "cross", Line: "gate", Direction: "in"},
		{Type: "end"},
	} {
		full := event(e.Type, uint64(n+1))
		full.Camera, full.Score, full.Zone, full.Entered = "Süd", e.Score, e.Zone, e.Entered
		full.Dwell, full.Line, full.Direction = e.Dwell, e.Line, e.Direction
		if e.Type == "end" {
			full.Start, full.End = full.Time, full.Time.Add(12*time.Second)
		}
		s.Event(full)
	}
	eventually(t, func() bool { return s.Status().Delivered == 7 }, "delivery")
	var texts []string
	for _, n := range to.received() {
		texts = append(texts, n.text)
		assert.Equal(t, "Süd", n.title)
		assert.Equal(t, "Bearer tk_123", n.token)
	}
	require.Equal(t, []string{
		"person, 93 %", "person is still there", "person has entered Höfe", "person has been in Höfe for 1m35s", "person has left Höfe after 3s",
		"person has crossed gate (in)", "person has gone after 12s",
	}, texts)
	require.Equal(t, "a JPEG", to.received()[0].image)
	require.Empty(t, to.received()[1].image)
}

// TestAnImageThatIsRefused: the notification comes without it, and nothing is tried again.
func TestAnImageThatIsRefused(t *testing.T) {
	for _, status := range []int{http.StatusBadRequest, http.StatusRequestEntityTooLarge, http.StatusInsufficientStorage} {
		to := newTopic(t, func(n *notification) int {
			if n.image != "" {
				return status
			}
			return http.StatusOK
		})
		s := start(t, &Sender{
			URL: to.URL, Format: config.Ntfy, Image: func(context.Context, string) []byte { return []byte("large") },
		})
		s.Event(event("new", 1))
		eventually(t, func() bool { return s.Status().Delivered == 1 }, "delivery")
		require.Len(t, to.received(), 2)
		require.Equal(t, "person, 0 %", to.received()[1].text)
	}
}

// TestNotificationsAreTriedAgain: in order, as all that a webhook delivers, while the server is away.
func TestNotificationsAreTriedAgain(t *testing.T) {
	tries := 0
	to := newTopic(t, func(*notification) int {
		if tries++; tries < 4 {
			return http.StatusServiceUnavailable
		}
		return http.StatusOK
	})
	s := start(t, &Sender{URL: to.URL, Format: config.Ntfy})
	s.Event(event("new", 1))
	s.Event(event("end", 2))
	eventually(t, func() bool { return s.Status().Delivered == 2 }, "delivery")
	all := to.received()
	require.Len(t, all, 5)
	require.Equal(t, "person, 0 %", all[3].text)
}
