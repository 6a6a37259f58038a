package mqtt

import (
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/spool"
)

// Link connects a device to its broker and sends its queues: the newest-wins messages of both qualities of service and the durable events.
// It knows no topics. A Client embeds one and opens, runs and closes it; the exported fields must not change after Open.
type Link struct {
	Access          // Client.Reconnect changes it
	ClientID string // unique per device; made of the device name and the machine's identity when empty

	KeepAlive      time.Duration // 30 s
	ConnectTimeout time.Duration // for each address, 10 s
	WriteTimeout   time.Duration // how long a broker may stop reading, 5 s
	AckTimeout     time.Duration // how long a broker may leave a message unacknowledged, 30 s
	RetryMin       time.Duration // pause after the first failure, 0.5 s; doubled for each further one
	RetryMax       time.Duration // 30 s
	RefusedRetry   time.Duration // pause after a refused login, 1 min

	Spool spool.Config
	// Window is how many messages may wait for their acknowledgement, 16. Brokers drop what a slow subscriber cannot take; a small window
	// and ReplayRate keep the replay of a long queue under what their default limits allow.
	Window     int
	ReplayRate int // replayed events per second, 2000

	// BeforeEvent is called before an event leaves for the broker, to store it elsewhere first; it must return soon. It may be nil.
	BeforeEvent func()
	// Acknowledged is called with the acknowledgement latency of each QoS 1 message and must not block; may be nil.
	Acknowledged func(time.Duration)
	Logger       *slog.Logger // slog.Default when nil

	// Set by open.
	device    device
	addresses []address.Address
	replayGap time.Duration
	qos0      *mailboxQueue
	qos1      *mailboxQueue
	events    *spool.Spool
	closing   context.Context // ends when Close is called
	close     context.CancelFunc
	running   sync.WaitGroup
	changes   chan func() // that Run makes between two connections

	sizes    packetLimits
	accounts struct{ detections, state ledger.Ledger }

	mu         sync.Mutex
	connection Connection
	connects   uint64
	repeats    uint64            // events that were sent again
	sentEvent  uint64            // number of the newest event that was sent
	reasons    map[string]string // why there is no connection, as logged last, by address
	opened     bool
}

// device is who a Link connects. Its methods may be called from any goroutine while the link runs.
type device interface {
	// availability returns the topic that is "online" while the device is connected.
	availability() string
	// subscriptions returns the filters to subscribe to, and refusedFilter logs that the broker does not allow one of them.
	subscriptions() []string
	refusedFilter(filter string)
	// retained returns the mailboxes whose last message is repeated on a new connection.
	retained() []*mailbox
	// dueAt returns the time up to which messages are due.
	dueAt(now time.Time, ending <-chan struct{}) time.Time
	// accompany does what belongs to a connection until ctx ends; its cause is errMainConnectionLost if the connection was lost.
	accompany(ctx context.Context, to address.Address)
	// receive handles a received message; refuse reports one that is not handled.
	receive(ctx context.Context, broker string, m paho.Message)
	refuse(topic string, reason error)
}

// shutdownLimit bounds the time Run takes to send queued messages and publish "stopped" when it ends.
const shutdownLimit = 1500 * time.Millisecond

// open sets the defaults and opens the spool.
func (l *Link) open(of device) error {
	l.device = of
	addresses, err := l.Access.addresses()
	if err != nil {
		return err
	}
	l.addresses = addresses
	l.KeepAlive = positive(l.KeepAlive, 30*time.Second)
	l.ConnectTimeout = positive(l.ConnectTimeout, 10*time.Second)
	l.WriteTimeout = positive(l.WriteTimeout, 5*time.Second)
	l.AckTimeout = positive(l.AckTimeout, 30*time.Second)
	l.RetryMin = positive(l.RetryMin, 500*time.Millisecond)
	l.RetryMax = positive(l.RetryMax, 30*time.Second)
	l.RefusedRetry = positive(l.RefusedRetry, time.Minute)
	l.Window = positive(l.Window, 16)
	l.replayGap = time.Second / time.Duration(positive(l.ReplayRate, 2000))
	if l.Logger == nil {
		l.Logger = slog.Default()
	}
	l.qos0, l.qos1 = newMailboxQueue(), newMailboxQueue()
	l.changes = make(chan func())
	l.reasons = map[string]string{}
	l.sizes.MaxPacket = l.MaxPacket
	l.events = &spool.Spool{Config: l.Spool, Logger: l.Logger, Notify: l.qos1.Signal}
	if err := l.events.Open(); err != nil {
		return err
	}
	l.closing, l.close = context.WithCancel(context.Background())
	return nil
}

// positive returns value, or standard if value is not set.
func positive[T int | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// Run connects, reconnects and sends until the context ends or Close is called; it then publishes "stopped" and returns within two seconds.
// An unreachable broker is not an error: Run logs each new reason and retries. Run must be called once.
func (l *Link) Run(ctx context.Context) error {
	l.mu.Lock()
	if !l.opened || l.closing.Err() != nil {
		l.mu.Unlock()
		return errors.New("run mqtt: client is not open")
	}
	l.running.Add(1)
	l.mu.Unlock()
	defer l.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(l.closing, cancel)()

	for ctx.Err() == nil {
		period, end := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			l.stayConnected(period)
		}()
		var change func()
		select {
		case <-ctx.Done():
		case change = <-l.changes:
		}
		end()
		<-ended
		if change != nil {
			change()
		}
	}
	return nil
}

// stayConnected connects, reconnects and sends until ctx ends.
func (l *Link) stayConnected(ctx context.Context) {
	t := retryState{blocked: make([]time.Time, len(l.addresses))}
	for ctx.Err() == nil {
		pause := l.attempt(ctx, &t)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// abandonLimit is how long Abandon waits for the disk.
const abandonLimit = 200 * time.Millisecond

// Abandon is Close for a process that ends at once, also while Close waits for a broker or a disk that hangs: it does not wait for Run.
func (l *Link) Abandon() error {
	if !l.isOpen() {
		return nil
	}
	l.close()
	return l.events.CloseWithin(abandonLimit)
}

func (l *Link) isOpen() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.opened
}

// Sync waits until every event queued before the call is on disk, or returns an error.
func (l *Link) Sync() error { return l.events.Sync() }

// Accounting counts what became of the messages, by how they are sent.
type Accounting struct {
	Detections ledger.Account `json:"detections"` // per-frame detections and stats: newest wins, QoS 0
	State      ledger.Account `json:"state"`      // status, counts, settings, snapshots, discovery: newest wins, retained
	Events     ledger.Account `json:"events"`     // the durable queue
}

// Accounting returns the message accounts since Open.
func (l *Link) Accounting() Accounting {
	return Accounting{Detections: l.accounts.detections.Read(), State: l.accounts.state.Read(), Events: l.events.Account()}
}

// Sum returns the account of the events and the sum of all classes.
func (a Accounting) Sum() (events, all ledger.Account) {
	for _, class := range []ledger.Account{a.Detections, a.State, a.Events} {
		all.Offered += class.Offered
		all.Delivered += class.Delivered
		all.Superseded += class.Superseded
		all.Dropped += class.Dropped
		all.Queued += class.Queued
	}
	return a.Events, all
}

// noteSent records that an event was sent and counts repeats.
func (l *Link) noteSent(event uint64) {
	l.mu.Lock()
	if event <= l.sentEvent {
		l.repeats++
	}
	l.sentEvent = max(l.sentEvent, event)
	l.mu.Unlock()
}

// statePath returns the path of a file beside the event spool, or "" if nothing is stored.
func (l *Link) statePath(name string) string {
	if l.events.Directory == "" {
		return ""
	}
	return filepath.Join(l.events.Directory, name)
}
