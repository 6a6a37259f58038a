package verify

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/store"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"

// asking is a question as the service gets it.
type asking struct {
	Type      string
	Timestamp time.Time
	Data      struct {
		ID, Type, Device, Camera, Label, Object string
		Time                                    time.Time
		Seq                                     uint64
		Image                                   []byte
		Verified                                *bool
	}
}

// newService starts a service that verifies signatures and answers by a function.
func newService(t testing.TB, answers func(w http.ResponseWriter, q *asking)) *httptest.Server {
	hook, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // killed
		}
		assert.NoError(t, hook.Verify(body, r.Header))
		q := &asking{}
		assert.NoError(t, json.Unmarshal(body, q), "%s", body)
		assert.Equal(t, q.Data.ID, r.Header.Get("webhook-id"))
		assert.Regexp(t, `^[0-9a-z]+-[0-9]+$`, q.Data.ID)
		answers(w, q)
	}))
	t.Cleanup(server.Close)
	return server
}

// saying answers with a text.
func saying(text string) func(http.ResponseWriter, *asking) {
	return func(w http.ResponseWriter, _ *asking) { fmt.Fprint(w, text) }
}

// hanging answers nothing until the test ends.
func hanging(t testing.TB) func(http.ResponseWriter, *asking) {
	end := t.Context().Done() // before the server is closed, which waits
	return func(http.ResponseWriter, *asking) { <-end }
}

// passed is an output that records what it gets.
type passed struct {
	mu  sync.Mutex
	all []sink.Event
}

func (p *passed) Event(e *sink.Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, *e)
}

func (p *passed) events() []sink.Event {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]sink.Event(nil), p.all...)
}

// lines describes the events: object, type, label, and whether it was verified.
func (p *passed) lines() (all []string) {
	for _, e := range p.events() {
		text := fmt.Sprint(e.Message.Object, " ", e.Message.Type, " ", e.Message.Label)
		if e.Message.Verified != nil {
			text += fmt.Sprint(" ", *e.Message.Verified)
		}
		all = append(all, text)
	}
	return all
}

// start opens and runs a gate, and ends it with the test.
func start(t testing.TB, g *Gate, address string) (*Gate, *passed) {
	t.Helper()
	to := &passed{}
	g.To = []sink.Output{to}
	g.Endpoint = webhook.Endpoint{URL: address, Secret: secret}
	g.Device = "gate"
	if g.Timeout == 0 {
		g.Timeout = time.Minute
	}
	if g.Logger == nil {
		g.Logger = mqtttest.Discard()
	}
	require.NoError(t, g.Open())
	run(t, g)
	return g, to
}

func run(t testing.TB, g *Gate) {
	ended := make(chan error, 1)
	ctx := t.Context() // ends before the cleanup
	go func() { ended <- g.Run(ctx) }()
	t.Cleanup(func() {
		assert.NoError(t, <-ended)
		assert.NoError(t, g.Close())
	})
}

// event is an event of an object; the n-th of a test.
func event(kind, object string, n uint64) *sink.Event {
	e := &sink.Event{Message: payload.Event{
		Type: kind, Camera: "yard", Label: "person", Object: object, Sequence: n, Time: time.Unix(1_700_000_000, int64(n)*1e6),
	}}
	if kind != "update" {
		e.Stored = &store.Event{ID: object, Camera: "yard", Label: "person"}
	}
	return e
}

func photo(object string) *sink.ObjectImage {
	return &sink.ObjectImage{
		Snapshot: store.Snapshot{Camera: "yard", ID: object, Crop: []byte("crop of " + object), Frame: []byte("frame")},
		Label:    "person", Labels: []string{"person"},
	}
}

func eventually(t testing.TB, condition func() bool, text string) {
	t.Helper()
	require.Eventually(t, condition, mqtttest.Patience, time.Millisecond, text)
}

// TestVerdicts: each answer, for events, rows of the store and images.
func TestVerdicts(t *testing.T) {
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		assert.Equal(t, "event.verify", q.Type)
		assert.Equal(t, "gate", q.Data.Device)
		assert.Equal(t, "new", q.Data.Type)
		assert.Nil(t, q.Data.Verified)
		assert.Equal(t, "crop of "+q.Data.Object, string(q.Data.Image))
		switch q.Data.Object {
		case "friend":
			fmt.Fprint(w, `{"verdict": "relabel", "label": "Ann"}`)
		case "shadow":
			fmt.Fprint(w, `{"verdict": "drop"}`)
		default:
			fmt.Fprint(w, `{"verdict": "confirm", "label": "without meaning", "why": "known"}`)
		}
	})
	g, to := start(t, &Gate{Cameras: []string{"yard"}, Labels: []string{"person"}}, service.URL)
	var images []string
	deliver := func(i *sink.ObjectImage) { images = append(images, fmt.Sprint(i.ID, " ", i.Label, " ", i.Relabelled)) }
	dog, elsewhere := event("new", "dog", 1), event("new", "elsewhere", 1)
	dog.Message.Label = "dog"
	elsewhere.Message.Camera = "road"
	g.Event(dog)
	g.Event(elsewhere)
	require.Equal(t, []string{"dog new dog", "elsewhere new person"}, to.lines(), "nobody is asked about them")
	to.all = nil
	for n, object := range []string{"friend", "shadow", "stranger"} {
		g.Event(event("new", object, uint64(n)))
		g.Image(photo(object), deliver)
		eventually(t, func() bool { return g.Status().Held == 0 }, "an answer")
		g.Event(event("update", object, uint64(n)))
		g.Event(event("end", object, uint64(n)))
		g.Image(photo(object), deliver) // the encoder was late
	}
	require.Equal(t, []string{
		"friend new Ann true", "friend update Ann true", "friend end Ann true",
		"stranger new person true", "stranger update person true", "stranger end person true",
	}, to.lines())
	require.Equal(t, []string{"friend Ann true", "friend Ann true", "stranger person false", "stranger person false"}, images)
	for _, e := range to.events() {
		require.Equal(t, e.Message.Type == "new", e.Message.ID != "", "ids of events that were not held are those of the queue")
		if e.Stored != nil {
			require.Equal(t, e.Message.Label, e.Stored.Label)
			require.Equal(t, e.Message.Verified, e.Stored.Verified)
		}
	}
	s := g.Status()
	require.Positive(t, s.P50)
	require.GreaterOrEqual(t, s.P99, s.P50)
	s.P50, s.P99 = 0, 0
	require.Equal(t, Status{Host: service.URL, Asked: 3, Confirmed: 1, Relabelled: 1, Dropped: 1}, s)
}

// TestNoAnswer: whatever a service does instead of answering, the events are published or dropped as configured, with their own times.
func TestNoAnswer(t *testing.T) {
	services := map[string]func(w http.ResponseWriter, q *asking){
		"hangs":      nil,
		"is refused": nil,
		"garbage":    saying("yes"),
		"empty":      saying(""),
		"array":      saying("[]"),
		"no verdict": saying("{}"),
		"verdict":    saying(`{"verdict": "maybe"}`),
		"no label":   saying(`{"verdict": "relabel"}`),
		"two":        saying(`{"verdict": "drop"} {"verdict": "drop"}`),
		"oversized":  saying(`{"verdict": "drop", "why": "` + strings.Repeat("x", answerLimit) + `"}`),
		"404":        func(w http.ResponseWriter, _ *asking) { http.Error(w, `{"verdict": "drop"}`, http.StatusNotFound) },
		"503": func(w http.ResponseWriter, _ *asking) {
			http.Error(w, `{"verdict": "drop"}`, http.StatusServiceUnavailable)
		},
		"redirect": func(w http.ResponseWriter, _ *asking) {
			w.Header().Set("Location", "/")
			w.WriteHeader(http.StatusFound)
			fmt.Fprint(w, `{"verdict": "drop"}`)
		},
		"closes": func(http.ResponseWriter, *asking) { panic(http.ErrAbortHandler) },
		"half": func(w http.ResponseWriter, _ *asking) {
			w.Header().Set("Content-Length", "19")
			fmt.Fprint(w, `{"verdict": `)
		},
	}
	for name, answers := range services {
		for _, drop := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", drop ", drop), func(t *testing.T) {
				t.Parallel()
				address := "http://" + mqtttest.FreeAddress(t)
				limit, serving := time.Minute, answers
				if name == "hangs" {
					serving, limit = hanging(t), 30*time.Millisecond
				}
				if serving != nil {
					address = newService(t, serving).URL
				}
				g, to := start(t, &Gate{Timeout: limit, Drop: drop}, address)
				g.Event(event("new", "a", 1))
				g.Image(photo("a"), func(*sink.ObjectImage) {})
				eventually(t, func() bool { return g.Status().Held == 0 }, "it does not wait for ever")
				g.Event(event("end", "a", 2))
				if drop {
					require.Empty(t, to.events())
				} else {
					require.Equal(t, []string{"a new person false", "a end person false"}, to.lines())
					require.Equal(t, event("new", "a", 1).Message.Time, to.events()[0].Message.Time)
				}
				s := g.Status()
				require.NotEmpty(t, s.Error)
				require.EqualValues(t, 1, s.Unanswered)
			})
		}
	}
}

// TestOrderOfAnObject: what happens to an object waits behind its first event; other objects do not wait for it.
func TestOrderOfAnObject(t *testing.T) {
	answered := make(chan struct{})
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		if q.Data.Object == "slow" {
			<-answered
		}
		fmt.Fprint(w, `{"verdict": "relabel", "label": "cat"}`)
	})
	g, to := start(t, &Gate{}, service.URL)
	var want []string
	for n, kind := range []string{"new", "enter", "update", "cross", "leave", "end"} {
		g.Event(event(kind, "slow", uint64(n)))
		want = append(want, "slow "+kind+" cat true")
	}
	g.Event(event("new", "quick", 7))
	g.Image(photo("slow"), func(*sink.ObjectImage) {})
	g.Image(photo("quick"), func(*sink.ObjectImage) {})
	eventually(t, func() bool { return len(to.events()) == 1 }, "the quick one")
	close(answered)
	eventually(t, func() bool { return g.Status().Held == 0 }, "an answer")
	require.Equal(t, append([]string{"quick new cat true"}, want...), to.lines())
	for i, e := range to.events()[1:] {
		require.EqualValues(t, i, e.Message.Sequence)
	}
}

// TestAServiceThatIsAwayCostsOneTimeLimit: after that nothing waits; it is asked again with one object at a time, and each change is logged
// once.
func TestAServiceThatIsAwayCostsOneTimeLimit(t *testing.T) {
	var back atomic.Bool
	hang := hanging(t)
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		if !back.Load() {
			hang(w, q)
		}
		fmt.Fprint(w, `{"verdict": "confirm"}`)
	})
	log := &mqtttest.Journal{}
	hour := backoff.Exponential{Min: time.Hour, Max: time.Hour}
	g, to := start(t, &Gate{Timeout: 200 * time.Millisecond, Logger: log.Logger(), retry: hour}, service.URL)
	g.Event(event("new", "first", 1))
	g.Image(photo("first"), func(*sink.ObjectImage) {})
	eventually(t, func() bool { return len(to.events()) == 1 }, "the time limit")
	begun := time.Now()
	for n := range uint64(1000) {
		g.Event(event("new", fmt.Sprint(n), n))
	}
	require.Len(t, to.events(), 1001, "none is held")
	require.EqualValues(t, 1, g.Status().Asked)
	require.Less(t, time.Since(begun), 30*time.Second)
	require.Equal(t, 1, strings.Count(log.String(), "does not answer\""), "%s", log)

	back.Store(true)
	g.mu.Lock()
	g.retryAt = time.Now()
	g.mu.Unlock()
	g.Event(event("new", "probe", 1))
	g.Event(event("new", "beside", 1))
	require.Equal(t, "beside new person false", to.lines()[1001], "one is enough")
	g.Image(photo("probe"), func(*sink.ObjectImage) {})
	eventually(t, func() bool { return g.Status().Confirmed == 1 }, "an answer")
	g.Event(event("new", "next", 1))
	require.Equal(t, 1, g.Status().Held)
	require.Equal(t, 1, strings.Count(log.String(), "does not answer\""), "%s", log)
	require.Equal(t, 1, strings.Count(log.String(), "answers again\""), "%s", log)
	require.Empty(t, g.Status().Error)
}

// TestNobodyWaits: whoever hands events over does not wait for a service that hangs, and what is held is bounded: the oldest go first.
func TestNobodyWaits(t *testing.T) {
	service := newService(t, hanging(t))
	g, to := start(t, &Gate{maxEvents: 100}, service.URL)
	for n := range uint64(300) {
		g.Event(event("new", fmt.Sprint(n), n))
		g.Image(photo(fmt.Sprint(n)), func(*sink.ObjectImage) {})
	}
	require.Equal(t, 100, g.Status().Held)
	lines := to.lines()
	require.Len(t, lines, 200)
	for n, line := range lines {
		require.Equal(t, fmt.Sprint(n, " new person false"), line)
	}
	large, _ := start(t, &Gate{maxBytes: 1 << 20}, service.URL)
	for n := range uint64(10) {
		large.Event(event("new", fmt.Sprint(n), n))
		image := photo(fmt.Sprint(n))
		image.Frame = make([]byte, 300<<10)
		large.Image(image, func(*sink.ObjectImage) {})
	}
	require.Equal(t, 3, large.Status().Held)
	g.Event(event("update", "299", 1))
	require.LessOrEqual(t, g.Status().Held, 100)
	eventually(t, func() bool { return g.Status().Asked >= parallel }, "questions")
	require.LessOrEqual(t, g.Status().Asked, uint64(parallel), "no more at a time")
}

// TestAQuestionDoesNotWaitLongForItsImage: it goes without one.
func TestAQuestionDoesNotWaitLongForItsImage(t *testing.T) {
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		assert.Empty(t, q.Data.Image)
		fmt.Fprint(w, `{"verdict": "confirm"}`)
	})
	g, to := start(t, &Gate{}, service.URL)
	g.Event(event("new", "a", 1))
	eventually(t, func() bool { return len(to.events()) == 1 }, "an answer")
	require.Equal(t, []string{"a new person true"}, to.lines())
}

// TestTooManyObjects: those that are not asked about in time do not wait longer, and the service is not taken for away.
func TestTooManyObjects(t *testing.T) {
	service := newService(t, hanging(t))
	g, to := start(t, &Gate{Timeout: time.Minute}, service.URL)
	for n := range uint64(parallel + 1) {
		g.Event(event("new", fmt.Sprint(n), n))
		g.Image(photo(fmt.Sprint(n)), func(*sink.ObjectImage) {})
	}
	eventually(t, func() bool { return g.Status().Asked == parallel }, "questions")
	g.step(t.Context(), time.Now().Add(2*time.Minute))
	require.Equal(t, []string{fmt.Sprint(parallel, " new person false")}, to.lines())
	require.Equal(t, errTooMany.Error(), g.Status().Error)
	require.True(t, g.retryAt.IsZero())
}

// TestLabelsAreBounded: each has topics of its own.
func TestLabelsAreBounded(t *testing.T) {
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		fmt.Fprintf(w, `{"verdict": "relabel", "label": "name %s"}`, q.Data.Object)
	})
	g, _ := start(t, &Gate{}, service.URL)
	for n := range uint64(maxLabels + 2) {
		g.Event(event("new", fmt.Sprint(n), n))
		g.Image(photo(fmt.Sprint(n)), func(*sink.ObjectImage) {})
		eventually(t, func() bool { return g.Status().Held == 0 }, "an answer")
	}
	require.EqualValues(t, maxLabels, g.Status().Relabelled)
	require.EqualValues(t, 2, g.Status().Unanswered)
}

// TestEnds: at the end answers are waited for; in a hurry what is held is published after a moment.
func TestEnds(t *testing.T) {
	answered := make(chan struct{})
	service := newService(t, func(w http.ResponseWriter, _ *asking) {
		<-answered
		fmt.Fprint(w, `{"verdict": "confirm"}`)
	})
	g, to := start(t, &Gate{}, service.URL)
	g.Event(event("new", "a", 1))
	g.Image(photo("a"), func(*sink.ObjectImage) {})
	finished := make(chan error, 1)
	go func() { finished <- g.Finish(nil) }()
	eventually(t, func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.finishing
	}, "the end")
	close(answered)
	require.NoError(t, <-finished)
	require.Equal(t, []string{"a new person true"}, to.lines())

	hangs, to := start(t, &Gate{}, newService(t, hanging(t)).URL)
	hangs.Event(event("new", "a", 1))
	hangs.Image(photo("a"), func(*sink.ObjectImage) {})
	hurry := make(chan struct{})
	close(hurry)
	require.NoError(t, hangs.Finish(hurry))
	require.Equal(t, []string{"a new person false"}, to.lines())
	require.Empty(t, hangs.journal.pending)
}

// TestHeldEventsOutlastARun: the next run asks again, with the same id and the image; events that were passed on are forgotten only when
// they are on disk elsewhere, and dropped ones at once.
func TestHeldEventsOutlastARun(t *testing.T) {
	directory := t.TempDir()
	ids := map[string][]string{}
	var mu sync.Mutex
	var verdict atomic.Value
	verdict.Store("")
	service := newService(t, func(w http.ResponseWriter, q *asking) {
		mu.Lock()
		ids[q.Data.Object] = append(ids[q.Data.Object], q.Data.ID)
		mu.Unlock()
		assert.Equal(t, base64.StdEncoding.EncodeToString(photo(q.Data.Object).Crop), base64.StdEncoding.EncodeToString(q.Data.Image))
		if text := verdict.Load().(string); text != "" {
			fmt.Fprint(w, text)
			return
		}
		if q.Data.Object == "drop" {
			fmt.Fprint(w, `{"verdict": "drop"}`)
			return
		}
		w.WriteHeader(http.StatusNotFound)
	})
	full := errors.New("disk full")
	t.Run("first", func(t *testing.T) {
		g, to := start(t, &Gate{Journal: spool.Config{Directory: directory}, Durable: func() error { return full }}, service.URL)
		for _, object := range []string{"keep", "drop"} {
			g.Event(event("new", object, 1))
			g.Event(event("cross", object, 2))
			g.Image(photo(object), func(*sink.ObjectImage) {})
			eventually(t, func() bool { return g.Status().Held == 0 }, "an answer")
		}
		require.Equal(t, []string{"keep new person false", "keep cross person false"}, to.lines())
		require.ErrorIs(t, g.settle(), full)
		require.NoError(t, g.journal.records.Sync())
	})
	verdict.Store(`{"verdict": "confirm"}`)
	t.Run("second", func(t *testing.T) {
		g, to := start(t, &Gate{Journal: spool.Config{Directory: directory}}, service.URL)
		eventually(t, func() bool { return len(to.events()) == 2 }, "asked again")
		require.Equal(t, []string{"keep new person true", "keep cross person true"}, to.lines())
		require.True(t, to.events()[0].Stored.Ended, "nobody will see its end")
		require.Equal(t, ids["keep"][0], to.events()[0].Message.ID)
		require.NoError(t, g.settle())
		require.Empty(t, g.journal.pending)
	})
	t.Run("third", func(t *testing.T) {
		g, _ := start(t, &Gate{Journal: spool.Config{Directory: directory}}, service.URL)
		require.Zero(t, g.Status().Held)
	})
	require.Len(t, ids["keep"], 2)
	require.Equal(t, ids["keep"][0], ids["keep"][1])
	require.Len(t, ids["drop"], 1)
}

// TestAnswersThatDoNotEnd: a service that sends for ever does not keep the question beyond its limit.
func TestAnswersThatDoNotEnd(t *testing.T) {
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
				fmt.Fprint(c, "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
				for err == nil {
					_, err = c.Write(bytes.Repeat([]byte("4\r\nxxxx\r\n"), 100))
				}
			}()
		}
	}()
	g, to := start(t, &Gate{}, "http://"+listener.Addr().String())
	g.Event(event("new", "a", 1))
	eventually(t, func() bool { return len(to.events()) == 1 }, "it gives up")
	require.Equal(t, []string{"a new person false"}, to.lines())
}

func FuzzAnswer(f *testing.F) {
	for _, text := range []string{
		`{"verdict": "confirm"}`, `{"verdict": "relabel", "label": "Ann"}`, `{"verdict": "drop"}`, "", "null", `"confirm"`, `{"verdict": 1}`,
		`{"verdict": "relabel", "label": "\n"}`, `{"verdict":"relabel","label":"` + strings.Repeat("x", 65) + `"}`,
		"{\"verdict\":\"relabel\",\"label\":\"\xff\"}",
	} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		a, err := parseAnswer(body)
		if err != nil {
			require.Equal(t, answer{}, a)
			return
		}
		require.Contains(t, []verdict{confirmed, relabelled, dropped}, a.verdict)
		require.Equal(t, a.verdict == relabelled, a.label != "")
		require.NoError(t, checkLabelOf(a))
	})
}

func checkLabelOf(a answer) error {
	if a.verdict != relabelled {
		return nil
	}
	return checkLabel(a.label)
}
