package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// receiver takes webhooks and verifies each with the official library.
type receiver struct {
	*httptest.Server
	t      *testing.T
	answer func(w http.ResponseWriter, m *message) // writes the answer; nil for 204

	mu       sync.Mutex
	messages []message // every attempt
}

// message is one verified attempt.
type message struct {
	id   string
	Type string    `json:"type"`
	Time time.Time `json:"timestamp"`
	Data struct {
		ID, Device, Camera, Label, Object, Frame, Crop, Clip string
		Seq                                                  uint64
	} `json:"data"`
}

func newReceiver(t *testing.T, answer func(w http.ResponseWriter, m *message)) *receiver {
	r := &receiver{t: t, answer: answer}
	r.Server = httptest.NewServer(r)
	t.Cleanup(r.Close)
	return r
}

func (r *receiver) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	body, err := io.ReadAll(request.Body)
	assert.NoError(r.t, err)
	hook, err := standardwebhooks.NewWebhook(secret)
	assert.NoError(r.t, err)
	assert.NoError(r.t, hook.Verify(body, request.Header))
	assert.Equal(r.t, "application/json", request.Header.Get("Content-Type"))
	m := message{id: request.Header.Get("webhook-id")}
	assert.NoError(r.t, json.Unmarshal(body, &m), "%s", body)
	assert.Equal(r.t, m.id, m.Data.ID)
	r.mu.Lock()
	r.messages = append(r.messages, m)
	r.mu.Unlock()
	if r.answer == nil {
		w.WriteHeader(http.StatusNoContent)
		return
	}
	r.answer(w, &m)
}

// received returns the attempts so far.
func (r *receiver) received() []message {
	r.mu.Lock()
	defer r.mu.Unlock()
	return append([]message(nil), r.messages...)
}

// start opens and runs a sender, and ends it with the test.
func start(t *testing.T, s *Sender) *Sender {
	t.Helper()
	if s.Secret == "" && s.SecretFile == "" {
		s.Secret = secret
	}
	if s.Logger == nil {
		s.Logger = mqtttest.Discard()
	}
	s.Name, s.Device = "alarm", "gate"
	if s.retry.Min == 0 {
		s.retry = backoff.Exponential{Min: time.Millisecond, Max: 5 * time.Millisecond}
	}
	require.NoError(t, s.Open())
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(context.Background())
	running.Go(func() { assert.NoError(t, s.Run(ctx)) })
	t.Cleanup(func() {
		stop()
		running.Wait()
		assert.NoError(t, s.Close())
	})
	return s
}

func event(kind string, number uint64) *payload.Event {
	return &payload.Event{
		Type: kind, Camera: "yard", Label: "person", Object: fmt.Sprintf("1700000000.%06d-abc", number), Sequence: number,
		Time: time.Unix(1_700_000_000, int64(number)*1e6),
	}
}

func eventually(t *testing.T, condition func() bool, text string) {
	t.Helper()
	require.Eventually(t, condition, mqtttest.Patience, time.Millisecond, text)
}

func TestEventsAreSignedAndFiltered(t *testing.T) {
	to := newReceiver(t, nil)
	file := filepath.Join(t.TempDir(), "secret")
	require.NoError(t, os.WriteFile(file, []byte(secret+"\n"), 0o600))
	s := start(t, &Sender{
		URL: to.URL, SecretFile: file, Filter: Filter{Events: []string{"new", "enter"}, Cameras: []string{"yard"}, Zones: []string{"door"}},
		Links: func(_ context.Context, object string) Links {
			assert.Equal(t, event("", 2).Object, object)
			return Links{Frame: "/api/events/" + object + "/frame", Clip: `/a"b`}
		},
	})
	for _, e := range []payload.Event{
		{Type: "new", Camera: "yard"},
		{Type: "new", Camera: "roof", Entered: []string{"door"}},
		{Type: "end", Camera: "yard", Entered: []string{"door"}},
		{Type: "enter", Camera: "yard", Zone: "street", Entered: []string{"street", "door"}},
	} {
		s.Event(&e)
	}
	wanted := event("new", 2)
	wanted.Entered = []string{"street", "door"}
	s.Event(wanted)
	eventually(t, func() bool { return s.Status().Delivered == 1 }, "delivery")
	all := to.received()
	require.Len(t, all, 1)
	m := &all[0]
	assert.Equal(t, "event.new", m.Type)
	assert.Equal(t, wanted.Time.UTC(), m.Time)
	assert.Equal(t, "gate", m.Data.Device)
	assert.Equal(t, "/api/events/"+wanted.Object+"/frame", m.Data.Frame)
	assert.Equal(t, `/a"b`, m.Data.Clip)
	assert.Empty(t, m.Data.Crop)
	assert.Equal(t, Status{Name: "alarm", Host: to.URL, Delivered: 1}, s.Status())
}

// An event that had an id before it was queued keeps it, and has whether it was verified.
func TestEventsKeepTheirOwnID(t *testing.T) {
	to := newReceiver(t, nil)
	s := start(t, &Sender{URL: to.URL, Spool: spool.Config{Directory: t.TempDir()}})
	verified := event("new", 1)
	yes := true
	verified.ID, verified.Verified = "abcv-17", &yes
	s.Event(verified)
	s.Event(event("new", 2))
	require.NoError(t, s.Sync())
	eventually(t, func() bool { return s.Status().Delivered == 2 }, "delivery")
	all := to.received() // which compares the header with data.id
	assert.Equal(t, "abcv-17", all[0].id)
	assert.NotEqual(t, "abcv-17", all[1].id)
}

// A disk that hangs costs the links, not the events.
func TestLinksHang(t *testing.T) {
	to := newReceiver(t, nil)
	hang := make(chan struct{})
	calls := make(chan struct{}, 10)
	s := start(t, &Sender{URL: to.URL, Links: func(context.Context, string) Links {
		calls <- struct{}{}
		<-hang
		return Links{Frame: "/late"}
	}})
	for n := range uint64(3) {
		s.Event(event("new", n))
	}
	eventually(t, func() bool { return s.Status().Delivered == 3 }, "delivery")
	assert.Len(t, calls, 1)
	for _, m := range to.received() {
		assert.Empty(t, m.Data.Frame)
	}
	close(hang)
	eventually(t, func() bool { return !s.asking.Load() }, "it returns")
}

func TestUpdatesAreSentOnRequest(t *testing.T) {
	assert.False(t, (&Filter{}).Match(event("update", 1)))
	assert.True(t, (&Filter{}).Match(event("end", 1)))
	assert.True(t, (&Filter{Events: []string{"update"}}).Match(event("update", 1)))
	assert.False(t, (&Filter{Labels: []string{"car"}}).Match(event("end", 1)))
}

// A receiver that fails gets the same event again, with the same id and before any later one.
func TestAttemptsKeepIDAndOrder(t *testing.T) {
	failures := 0
	codes := []int{503, 500, 429, 302, 404, 502}
	to := newReceiver(t, func(w http.ResponseWriter, m *message) {
		if m.Data.Seq == 2 && failures < len(codes) {
			w.Header().Set("Location", "/elsewhere")
			w.WriteHeader(codes[failures])
			failures++
		}
	})
	s := start(t, &Sender{URL: to.URL})
	for n := range uint64(4) {
		s.Event(event("new", n+1))
	}
	eventually(t, func() bool { return s.Status().Delivered == 4 }, "delivery")
	var numbers []uint64
	ids := map[string]uint64{}
	for _, m := range to.received() {
		numbers = append(numbers, m.Data.Seq)
		ids[m.id] = m.Data.Seq
	}
	assert.Equal(t, []uint64{1, 2, 2, 2, 2, 2, 2, 2, 3, 4}, numbers)
	assert.Len(t, ids, 4)
	assert.Empty(t, s.Status().Error)
}

// An event that its receiver refuses is given up and recorded; the ones behind it arrive.
func TestARefusedEventIsDead(t *testing.T) {
	to := newReceiver(t, func(w http.ResponseWriter, m *message) {
		if m.Data.Seq == 1 {
			w.WriteHeader(http.StatusUnprocessableEntity)
		}
	})
	log := &mqtttest.Journal{}
	directory := t.TempDir()
	s := start(t, &Sender{URL: to.URL, Spool: spool.Config{Directory: directory}, Logger: log.Logger()})
	s.Event(event("new", 1))
	s.Event(event("new", 2))
	eventually(t, func() bool { return s.Status().Delivered == 1 }, "delivery")
	assert.Len(t, to.received(), attempts+1)
	status := s.Status()
	assert.EqualValues(t, 1, status.Dropped)
	assert.Empty(t, status.Error)
	assert.Contains(t, log.String(), "event not delivered, its receiver refuses it")
	record := s.ReadRecord()
	assert.EqualValues(t, 1, record.Dead)
	assert.Equal(t, "the receiver answers 422 Unprocessable Entity", record.Reason)
	assert.False(t, record.Disabled)
}

// After a receiver has answered 410, nothing is sent to it until its address changes, also after a restart.
func TestGone(t *testing.T) {
	to := newReceiver(t, func(w http.ResponseWriter, _ *message) { w.WriteHeader(http.StatusGone) })
	directory := t.TempDir()
	t.Run("first", func(t *testing.T) {
		s := start(t, &Sender{URL: to.URL, Spool: spool.Config{Directory: directory}})
		for n := range uint64(3) {
			s.Event(event("new", n))
		}
		eventually(t, func() bool { return s.Status().Queued == 0 }, "everything is dropped")
		assert.True(t, s.Status().Disabled)
	})
	t.Run("restart", func(t *testing.T) {
		s := start(t, &Sender{URL: to.URL, Spool: spool.Config{Directory: directory}})
		assert.True(t, s.Status().Disabled)
		assert.True(t, s.ReadRecord().Disabled)
		s.Event(event("new", 4))
		assert.Zero(t, s.Status().Queued)
	})
	assert.Len(t, to.received(), 1)
	t.Run("another address", func(t *testing.T) {
		other := newReceiver(t, nil)
		s := start(t, &Sender{URL: other.URL + "/other", Spool: spool.Config{Directory: directory}})
		assert.False(t, s.ReadRecord().Disabled)
		s.Event(event("new", 5))
		eventually(t, func() bool { return s.Status().Delivered == 1 }, "delivery")
	})
}

// No receiver can hold up whoever hands events over, whatever it does, and none of its faults loses an event.
func TestFaultyReceivers(t *testing.T) {
	hang := make(chan struct{})
	defer close(hang)
	answers := map[string]func(net.Conn){
		"hangs":           func(net.Conn) { <-hang },
		"closes":          func(net.Conn) {},
		"not http":        func(c net.Conn) { fmt.Fprint(c, "220 mail.example.org ESMTP\r\n") },
		"half an answer":  func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 200") },
		"endless headers": func(c net.Conn) { endless(c, "HTTP/1.1 200 OK\r\n", "X-Header: x\r\n") },
		"no status":       func(c net.Conn) { fmt.Fprint(c, "HTTP/1.1 999999999999 OK\r\n\r\n") },
	}
	for name, answer := range answers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			require.NoError(t, err)
			defer listener.Close()
			go func() {
				for {
					c, err := listener.Accept()
					if err != nil {
						return
					}
					go func() {
						defer c.Close()
						_, _ = io.ReadFull(c, make([]byte, 32))
						answer(c)
					}()
				}
			}()
			s := start(t, &Sender{URL: "http://" + listener.Addr().String(), timeout: 50 * time.Millisecond})
			s.Event(event("new", 1))
			eventually(t, func() bool { return s.Status().Error != "" }, "fault reported")
			for n := range uint64(100) { // while it is busy with the first
				s.Event(event("new", n))
			}
			status := s.Status()
			assert.EqualValues(t, 101, status.Queued)
			assert.Zero(t, status.Dropped)
			assert.NotContains(t, status.Error, "->", "local ports change")
		})
	}
}

func endless(c net.Conn, first, more string) {
	text := first
	for {
		_, err := io.WriteString(c, text)
		if err != nil {
			return
		}
		text = more
	}
}

// The status counts, whatever the body is.
func TestLyingAnswers(t *testing.T) {
	for name, answer := range map[string]string{
		"longer than it claims": "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nlong",
		"shorter":               "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nshort",
		"wrong encoding":        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 3\r\n\r\nabc",
	} {
		t.Run(name, func(t *testing.T) {
			to := newReceiver(t, func(w http.ResponseWriter, _ *message) {
				c, _, err := http.NewResponseController(w).Hijack()
				require.NoError(t, err)
				fmt.Fprint(c, answer)
				c.Close()
			})
			s := start(t, &Sender{URL: to.URL})
			for n := range uint64(3) {
				s.Event(event("new", n))
			}
			eventually(t, func() bool { return s.Status().Delivered == 3 }, "delivery")
			assert.Len(t, to.received(), 3)
		})
	}
}

// A receiver that comes back gets everything that waited, in order.
func TestAwayAndBack(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	require.NoError(t, listener.Close())
	s := start(t, &Sender{URL: "http://" + listener.Addr().String(), Spool: spool.Config{Directory: t.TempDir()}})
	for n := range uint64(50) {
		s.Event(event("new", n))
	}
	eventually(t, func() bool { return strings.Contains(s.Status().Error, "refused") }, "fault reported")
	to := &receiver{t: t}
	again, err := net.Listen("tcp", listener.Addr().String())
	require.NoError(t, err)
	server := &http.Server{Handler: to, ReadHeaderTimeout: time.Minute}
	go server.Serve(again)
	defer server.Close()
	eventually(t, func() bool { return s.Status().Delivered == 50 }, "delivery")
	for i, m := range to.received() {
		assert.EqualValues(t, i, m.Data.Seq)
	}
}

func TestTheQueueIsBounded(t *testing.T) {
	hang := make(chan struct{})
	to := newReceiver(t, func(http.ResponseWriter, *message) { <-hang })
	s := start(t, &Sender{URL: to.URL, Spool: spool.Config{MaxMessages: 10}})
	for n := range uint64(30) {
		s.Event(event("new", n))
	}
	status := s.Status()
	assert.EqualValues(t, 10, status.Queued)
	assert.EqualValues(t, 20, status.Dropped)
	close(hang)
}

// Addresses of chat services are secrets; neither they nor the signing secret are in anything that people read.
func TestSecretsStayIn(t *testing.T) {
	log := &mqtttest.Journal{}
	to := newReceiver(t, func(w http.ResponseWriter, _ *message) { w.WriteHeader(http.StatusInternalServerError) })
	for _, address := range []string{to.URL, "http://user:hunt-user@127.0.0.1:1"} {
		s := start(t, &Sender{URL: address + "/services/hunt-path?key=hunt-query", Logger: log.Logger()})
		s.Event(event("new", 1))
		eventually(t, func() bool { return s.Status().Error != "" && s.Status().Host != "" }, "fault")
		fmt.Fprintln(log, s.Status(), s.Secret)
	}
	for _, bad := range []string{"hunt-plain", "whsec_hunt", "whsec_" + strings.Repeat("hunt", 30)} {
		_, err := ParseSecret(bad)
		require.Error(t, err)
		assert.NotContains(t, err.Error(), "hunt")
	}
	s := start(t, &Sender{URL: to.URL, Secret: credentials.Secret("whsec_hunt"), Logger: log.Logger()})
	s.Event(event("new", 1))
	eventually(t, func() bool { return strings.HasPrefix(s.Status().Error, "signing secret: must be whsec_") }, "fault")
	assert.NotContains(t, log.String(), "hunt")
	assert.NotContains(t, log.String(), strings.TrimPrefix(secret, "whsec_"))
}

func TestRetryAfter(t *testing.T) {
	assert.Zero(t, retryAfter(""))
	assert.Zero(t, retryAfter("soon"))
	assert.Zero(t, retryAfter("-5"))
	assert.Equal(t, 7*time.Second, retryAfter("7"))
	assert.Equal(t, longestPause, retryAfter("99999999"))
	assert.Equal(t, longestPause, retryAfter(time.Now().Add(24*time.Hour).UTC().Format(http.TimeFormat)))
	assert.Zero(t, retryAfter(time.Now().Add(-time.Hour).UTC().Format(http.TimeFormat)))
}
