// Package verify asks a service about objects before their events are published. A gate stands in front of the outputs that keep or publish
// events: it holds the events of a new object until the service has confirmed, relabelled or dropped it, or a time limit is over.
package verify

import (
	"cmp"
	"context"
	"log/slog"
	"net/url"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/webhook"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// Gate is a sink.Output and a sink.ImageHolder. Set the exported fields, Open it, Run it, Finish and Close it; the fields must not change
// after Open. Its methods may be called from any goroutine; none that takes events or images waits for the service or the disk.
type Gate struct {
	Endpoint webhook.Endpoint // of the service; Client is set by Open
	Device   string           // name of this device in the questions
	Timeout  time.Duration    // how long the events of a new object wait for the answer
	// Cameras and Labels select the objects that are asked about; empty for all.
	Cameras, Labels []string
	Drop            bool // events without an answer are dropped, not published
	// Journal keeps held events. Without a directory a kill loses them.
	Journal spool.Config
	To      []sink.Output // what events are passed on to, in this order; it may be set until Run
	// Durable returns when what To has got is on disk; nil if that cannot be known.
	Durable func() error
	Logger  *slog.Logger

	maxBytes, maxEvents int                 // limits of what is held; replaced by tests
	retry               backoff.Exponential // replaced by tests

	wake     chan struct{} // holds a token when there may be something to ask
	settling chan struct{} // holds a token when there may be records to forget
	asking   sync.WaitGroup

	mu        sync.Mutex
	journal   journal
	objects   map[key]*object
	undecided []*object       // in order of arrival
	finished  []*object       // decided ones that are over, whose images may still come; oldest first
	labels    map[string]bool // that answers have given so far
	released  []uint64        // records of events that were passed on
	events    int             // held
	inFlight  int
	failures  int       // questions in a row to a service that was away
	retryAt   time.Time // it is not asked before; zero if it is there
	finishing bool
	logged    time.Time // when a failure was logged last
	announced bool      // the log says that it fails
	status    Status
	latest    durations
}

var (
	_ sink.Output      = (*Gate)(nil)
	_ sink.ImageHolder = (*Gate)(nil)
)

const (
	// parallel is the number of questions that may be in flight.
	parallel = 4
	// imageWait is how long a question waits for the image of its object, at most half of the time limit.
	imageWait = 700 * time.Millisecond
	// maxBytes and maxEvents bound what is held.
	maxBytes  = 32 << 20
	maxEvents = 1000
	// maxFinished is the number of objects whose verdict is remembered after their end.
	maxFinished = 256
	// maxLabels is the number of labels that a service may give: each has topics of its own.
	maxLabels = 256
	// maxReleased is the number of records that are kept while the disk takes nothing elsewhere.
	maxReleased = 10_000
	// settleInterval is the time over which records that can be forgotten are gathered.
	settleInterval = 100 * time.Millisecond
	// finishLimit is how long answers are waited for when the run must end.
	finishLimit = time.Second
)

// Open opens the journal. It returns an error only if another process uses it. What an earlier run has held is asked about again by Run.
func (g *Gate) Open() error {
	g.maxBytes, g.maxEvents = cmp.Or(g.maxBytes, maxBytes), cmp.Or(g.maxEvents, maxEvents)
	g.retry = g.retry.OrElse(backoff.Exponential{Min: time.Second, Max: time.Minute})
	g.Endpoint.Client = webhook.NewClient(parallel, g.Timeout)
	g.wake, g.settling = make(chan struct{}, 1), make(chan struct{}, 1)
	g.objects, g.labels = map[key]*object{}, map[string]bool{}
	g.status.Host = host(g.Endpoint.URL)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.journal.records.Config = g.Journal
	restored, err := g.journal.open(g.Logger)
	if err != nil {
		return err
	}
	g.undecided = restored
	for _, o := range restored {
		g.objects[o.key] = o
		o.over = true
		g.events += len(o.held)
	}
	if len(restored) > 0 {
		g.Logger.Info("verify: events that an earlier run has held are asked about again", "objects", len(restored), "events", g.events)
	}
	return nil
}

// host returns scheme and host of an address, which are not secret.
func host(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host
}

// Event implements sink.Output: it passes an event on, or holds it.
func (g *Gate) Event(e *sink.Event) {
	g.mu.Lock()
	defer g.mu.Unlock()
	k := key{e.Message.Camera, e.Message.Object}
	o := g.objects[k]
	if o == nil {
		if !g.wants(e) {
			g.pass(e)
			return
		}
		o = g.begin(k)
	}
	o.over = o.over || e.Message.Type == "end"
	if o.state != decided {
		g.keep(o, e)
		return
	}
	g.passFor(o, e)
	g.retire(o)
}

// wants reports whether an event is the first of an object that is asked about.
func (g *Gate) wants(e *sink.Event) bool {
	m := &e.Message
	return m.Type == "new" && (len(g.Cameras) == 0 || slices.Contains(g.Cameras, m.Camera)) &&
		(len(g.Labels) == 0 || slices.Contains(g.Labels, m.Label))
}

// begin returns a new object. While the service is away it is decided at once, but for one object when it is time to ask again.
func (g *Gate) begin(k key) *object {
	now := time.Now()
	o := &object{key: k, deadline: now.Add(g.Timeout), imageUntil: now.Add(min(imageWait, g.Timeout/2))}
	g.objects[k] = o
	away := !g.retryAt.IsZero() && (now.Before(g.retryAt) || len(g.undecided) > 0)
	if away || g.finishing {
		o.state = decided
		g.status.account(unanswered)
		return o
	}
	g.undecided = append(g.undecided, o)
	return o
}

// keep holds an event. When too much is held, the object that waits longest is decided.
func (g *Gate) keep(o *object, e *sink.Event) {
	held := *e // it gets an id
	g.record(g.journal.event(o, &held))
	o.add(&held)
	g.events++
	g.enforce()
	g.notify()
}

// enforce decides the objects that wait longest while too much is held.
func (g *Gate) enforce() {
	for len(g.undecided) > 0 && (g.events > g.maxEvents || g.bytes() > g.maxBytes) {
		g.decide(g.undecided[0], answer{})
	}
}

func (g *Gate) bytes() (sum int) {
	for _, o := range g.undecided {
		sum += o.bytes
	}
	return sum
}

// record logs an event that the journal cannot take; it is held without.
func (g *Gate) record(err error) {
	if err != nil {
		g.Logger.Warn("verify: a held event is not written down, a kill would lose it", "error", err)
	}
}

// Image implements sink.ImageHolder.
func (g *Gate) Image(image *sink.ObjectImage, deliver func(*sink.ObjectImage)) {
	g.mu.Lock()
	defer g.mu.Unlock()
	o := g.objects[key{image.Camera, image.ID}]
	switch {
	case o == nil:
		deliver(image)
	case o.state == decided:
		g.deliver(o, image, deliver)
	default:
		if o.crop == nil {
			o.crop = image.Crop
			g.record(g.journal.image(o, image.Crop))
		}
		o.hold(image, deliver)
		g.enforce()
		g.notify()
	}
}

// deliver passes on an image of an object that was decided.
func (g *Gate) deliver(o *object, image *sink.ObjectImage, deliver func(*sink.ObjectImage)) {
	if g.drops(o) {
		return
	}
	if o.answer.verdict == relabelled {
		image.Label, image.Relabelled = o.answer.label, true
	}
	deliver(image)
}

// drops reports whether nothing of a decided object is passed on.
func (g *Gate) drops(o *object) bool {
	return o.answer.verdict == dropped || o.answer.verdict == unanswered && g.Drop
}

func (g *Gate) pass(e *sink.Event) {
	for _, output := range g.To {
		output.Event(e)
	}
}

// passFor passes on an event of an object that was decided.
func (g *Gate) passFor(o *object, e *sink.Event) {
	if g.drops(o) {
		return
	}
	now := *e
	verified := o.answer.verdict != unanswered
	now.Message.Verified = &verified
	if e.Stored != nil {
		stored := *e.Stored
		stored.Verified = &verified
		now.Stored = &stored
	}
	if o.answer.verdict == relabelled {
		now.Message.Label = o.answer.label
		if now.Stored != nil {
			now.Stored.Label = o.answer.label
		}
	}
	g.pass(&now)
}

// decide passes on what is held of an object, or drops it. The lock is held.
func (g *Gate) decide(o *object, a answer) {
	o.state, o.answer = decided, a
	g.undecided = slices.DeleteFunc(g.undecided, func(other *object) bool { return other == o })
	g.status.account(a.verdict)
	for _, e := range o.held {
		g.passFor(o, e)
	}
	g.events -= len(o.held)
	if o.image != nil {
		g.deliver(o, o.image, o.deliver)
	}
	if g.drops(o) {
		g.record(g.journal.decide(o))
	} else { // only when they are on disk elsewhere
		g.released = append(g.released, o.numbers...)
		token(g.settling)
	}
	o.held, o.image = nil, nil
	o.deliver, o.crop = nil, nil
	o.numbers, o.bytes = nil, 0
	g.retire(o)
}

// retire forgets the oldest objects that are over. The images of younger ones may still come.
func (g *Gate) retire(o *object) {
	if !o.over {
		return
	}
	g.finished = append(g.finished, o)
	if len(g.finished) > maxFinished {
		delete(g.objects, g.finished[0].key)
		g.finished = g.finished[1:]
	}
}

func (g *Gate) notify() { token(g.wake) }

// token puts a token into a channel that holds one.
func token(into chan<- struct{}) {
	select {
	case into <- struct{}{}:
	default:
	}
}

// Run asks until ctx ends. It must be called once.
func (g *Gate) Run(ctx context.Context) error {
	defer g.Endpoint.Client.CloseIdleConnections()
	defer g.asking.Wait()
	g.asking.Go(func() { g.settleLoop(ctx) })
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		if next := g.step(ctx, time.Now()); !next.IsZero() {
			timer.Reset(time.Until(next))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-g.wake:
		case <-timer.C:
		}
	}
}

// step begins the questions that can be asked, decides the objects that have waited too long to be asked about, and returns when there is
// something to do again, zero for unknown.
func (g *Gate) step(ctx context.Context, now time.Time) (next time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	sooner := func(at time.Time) {
		if !at.IsZero() && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	for _, o := range slices.Clone(g.undecided) {
		switch {
		case o.state != waiting:
		case !o.deadline.IsZero() && !now.Before(o.deadline):
			g.failing(errTooMany, now)
			g.decide(o, answer{})
		case o.crop == nil && now.Before(o.imageUntil):
			sooner(o.imageUntil)
		case g.inFlight < parallel:
			g.ask(ctx, o, now)
		default:
			sooner(o.deadline)
		}
	}
	return next
}
