// Package webhook delivers events to HTTP receivers, in order and from a durable queue: as Standard Webhooks specifies, signed and with an
// id that stays the same when an event is sent again, or as notifications of ntfy.
package webhook

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/payload"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// Sender delivers events to one receiver. Set the exported fields, Open it, Run it, Close it; the fields must not change after Open. Its
// methods may be called from any goroutine. No other output waits for it.
type Sender struct {
	Name   string // in logs and metrics
	URL    string // of the receiver; it may contain secrets and is in no message
	Device string // name of this device in the events
	Filter Filter
	// Format is config.Ntfy or config.WebPush for notifications, else events are posted as Standard Webhooks specifies.
	Format string
	// Secret signs the events, whsec_ and base64, or is the access token of ntfy or the keys of a browser; SecretFile is a file that holds it
	// and is read for each attempt.
	Secret     credentials.Secret
	SecretFile string
	Identity   string // file with the identity of this device, for config.WebPush
	Gone       func() // called once when the receiver says that it is gone for ever; may be nil
	Spool      spool.Config
	Version    string // of this program, for the User-Agent
	// Links returns the paths of the images and the clip of an object that exist by now; nil for none. If it does not return soon, events are
	// sent without.
	Links func(ctx context.Context, object string) Links
	// Image returns a JPEG of an object, nil for none; only notifications contain it. It is waited for as Links is.
	Image  func(ctx context.Context, object string) []byte
	Logger *slog.Logger

	// Replaced by tests.
	retry   backoff.Exponential
	timeout time.Duration
	dial    func(ctx context.Context, network, address string) (net.Conn, error)

	// Set by Open.
	host   string
	run    string // makes ids unique over queues that were lost
	events *spool.Spool
	wake   chan struct{} // holds a token when there may be an event
	client *http.Client
	before *Sender     // whose queue it takes over; nil for none, and once Run has begun
	left   atomic.Bool // another sender takes over the queue

	asking atomic.Bool // Links or Image has not returned

	mu      sync.Mutex
	problem string // why the newest attempt failed; empty after one that did not
	state   state
}

// Links are paths on this device's page.
type Links struct{ Frame, Crop, Clip string }

// Defaults of the fields for tests, and limits.
const (
	retryMin = time.Second
	retryMax = 5 * time.Minute
	// timeout bounds one attempt, from the connection to the end of the answer.
	timeout = 15 * time.Second
	// askLimit bounds how long Links and Image are waited for: the disk may hang.
	askLimit = time.Second
	// attempts is the number of answers with an error after which an event is given up: the receiver is there, but does not take it.
	attempts = 12
	// maxAge is how long an event waits for a receiver that is away.
	maxAge = 72 * time.Hour
	// maxBytes and maxMessages bound the queue of a receiver.
	maxBytes    = 16 << 20
	maxMessages = 20_000
	// shutdownLimit bounds how long Run delivers queued events when it ends.
	shutdownLimit = 1500 * time.Millisecond
)

// ParseSecret checks a signing secret. The error does not contain it.
func ParseSecret(secret string) (*standardwebhooks.Webhook, error) {
	hook, err := standardwebhooks.NewWebhook(secret)
	if err != nil || !config.ValidWebhookSecret(secret) {
		return nil, errors.New(`must be whsec_ and the base64 of 24 to 64 random bytes: echo "whsec_$(openssl rand -base64 32)"`)
	}
	return hook, nil
}

// Open opens the queue. It returns an error only if another process uses it; an unusable directory costs the queue's durability.
func (s *Sender) Open() error {
	if err := s.prepare(); err != nil {
		return err
	}
	s.run = strconv.FormatInt(time.Now().UnixMicro(), 36)
	s.wake = make(chan struct{}, 1)
	queue := s.Spool
	if queue == (spool.Config{Directory: queue.Directory}) {
		queue.MaxBytes, queue.MaxMessages, queue.MaxAge = maxBytes, maxMessages, maxAge
		if s.Format == config.WebPush {
			queue.MaxAge = pushAge
		}
	}
	s.events = &spool.Spool{Config: queue, Logger: s.Logger, Notify: s.notify}
	if err := s.events.Open(); err != nil {
		return fmt.Errorf("open webhook %s: %w", s.Name, err)
	}
	s.begin(readState(queue.Directory))
	return nil
}

// prepare sets what is derived from the fields, except for the queue.
func (s *Sender) prepare() error {
	request, err := http.NewRequest(http.MethodPost, s.URL, nil)
	if err != nil {
		return fmt.Errorf("open webhook %s: its url cannot be read", s.Name)
	}
	s.host = request.URL.Scheme + "://" + request.URL.Host
	s.retry = s.retry.OrElse(backoff.Exponential{Min: retryMin, Max: retryMax})
	s.timeout = cmp.Or(s.timeout, timeout)
	if s.Logger == nil {
		s.Logger = slog.Default()
	}
	s.Logger = s.Logger.With("webhook", s.Name)
	s.client = NewClient(1, s.timeout)
	if s.Format == config.WebPush && s.dial == nil {
		s.dial = publicDialer().DialContext
	}
	if s.dial != nil {
		s.client.Transport.(*http.Transport).DialContext = s.dial
	}
	return nil
}

func (s *Sender) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// Event queues an event if the filter selects it. It does not wait for the disk or the network. The event may be changed afterwards.
func (s *Sender) Event(e *payload.Event) {
	if !s.Filter.Match(e) || s.disabled() {
		return
	}
	id := s.run
	if e.ID != "" {
		id = ownID + e.ID
	}
	s.events.Offer(id+" "+e.Object, func(buf []byte, number uint64) []byte {
		buf = append(buf, `{"type":`...)
		buf = payload.AppendString(buf, "event."+e.Type)
		buf = append(buf, `,"timestamp":"`...)
		buf = e.Time.UTC().AppendFormat(buf, time.RFC3339Nano)
		buf = append(buf, `","data":`...)
		return append(e.AppendJSON(buf, s.Device, s.run, number), '}')
	})
}

// begin sets the stored state. That of another receiver does not disable this one.
func (s *Sender) begin(stored state) {
	if stored.Gone != s.receiver() {
		stored.Gone = ""
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.state = stored
}

// Run delivers until ctx ends, and what is queued for a moment longer unless another sender takes over the queue. It must be called once.
func (s *Sender) Run(ctx context.Context) error {
	s.inherit()
	defer s.client.CloseIdleConnections()
	d := delivery{Sender: s}
	for d.next(ctx) && ctx.Err() == nil {
	}
	if s.left.Load() {
		return nil
	}
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownLimit)
	defer cancel()
	d.drain(last)
	return nil
}

// Sync returns when the queued events are on disk.
func (s *Sender) Sync() error { return s.events.Sync() }

// Close writes the queued events to disk. It is idempotent and safe on a sender that was never opened.
func (s *Sender) Close() error {
	if s.events == nil {
		return nil
	}
	return s.events.Close()
}

// Status is the state of a sender. Counters run from Open.
type Status struct {
	Name      string `json:"name"`
	Host      string `json:"host"` // scheme and host of the receiver
	Delivered uint64 `json:"delivered"`
	Dropped   uint64 `json:"dropped"` // refused by the receiver too often, too old or too many
	Queued    uint64 `json:"queued"`
	Error     string `json:"error,omitempty"` // why the newest attempt failed; empty after one that did not
	Disabled  bool   `json:"disabled"`        // the receiver has answered 410 Gone
}

// Status returns the current state.
func (s *Sender) Status() Status {
	account := s.events.Account()
	s.mu.Lock()
	defer s.mu.Unlock()
	return Status{
		Name: s.Name, Host: s.host, Delivered: account.Delivered, Dropped: account.Dropped, Queued: account.Queued, Error: s.problem,
		Disabled: s.state.Gone != "",
	}
}
