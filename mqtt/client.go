// Package mqtt takes detections, state and events from the frame loop to an MQTT broker without ever holding up the frame loop. Detections
// are newest-wins in memory; events go through a durable queue; every message is delivered, dropped and counted, or still queued. The
// package also contains remote control and Home Assistant discovery.
package mqtt

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/command"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
	"github.com/edge-infer/edge-infer/mqtt/homeassistant"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/spool"
	"github.com/edge-infer/edge-infer/mqtt/topic"
)

// Client publishes for one device. Fill in the exported fields, Open it, Run it, Close it; the fields must not change after Open. All
// methods may be called from any goroutine, the publishing ones at any time between Open and Close, connected or not.
type Client struct {
	Root   string // first topic level, topic.DefaultRoot when empty
	Device string // second topic level
	// Brokers are tcp://, tls://, ws:// or wss:// addresses in order of preference; credentials in an address override User and Password.
	Brokers []string
	User    string
	// Password, or a file that holds it and is read for each connection.
	Password     credentials.Secret
	PasswordFile string
	TLS          credentials.TLS
	ClientID     string // unique per device; made of the device name and the machine's identity when empty

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

	// MaxPacket limits the packets sent to a broker, in bytes; larger messages are discarded. 0 detects the broker's own limit.
	MaxPacket int

	// DetectionsInterval is the minimum time between two detections messages of a camera; 0 publishes every frame.
	DetectionsInterval time.Duration
	// CountInterval is the minimum time between two messages of a count, of a line or of a label's snapshot, so that a flickering detection
	// does not fill the database of who records them. The first object after none does not wait. 0 publishes every change.
	CountInterval time.Duration

	// DiscoveryPrefix is the first topic level of Home Assistant's discovery, usually "homeassistant"; empty turns it off.
	DiscoveryPrefix string
	// Frigate is the topic prefix of the additional Frigate-compatible messages; empty disables them.
	Frigate topic.Frigate
	// DeepStream is the topic of the additional DeepStream-compatible messages; empty disables them.
	DeepStream string
	// DeepStreamFull publishes events in DeepStream's full schema instead of frames in the minimal one.
	DeepStreamFull bool
	// BeforeEvent is called before an event leaves for the broker, to store it elsewhere first; it must return soon. It may be nil.
	BeforeEvent func()
	// Acknowledged is called with the acknowledgement latency of each QoS 1 message and must not block; may be nil.
	Acknowledged func(time.Duration)
	// Changed is called after each command that was carried out, on the goroutine of the command; camera is empty for the device's own. It may
	// be nil.
	Changed func(camera, control, value, broker string)
	// Controller executes remote commands; nil disables remote control.
	Controller Controller

	Logger *slog.Logger // slog.Default when nil

	// Set by Open.
	topics    topic.Tree
	addresses []address.Address
	run       string // makes event ids unique over restarts
	replayGap time.Duration
	qos0      *mailboxQueue
	qos1      *mailboxQueue
	events    *spool.Spool
	closing   context.Context // ends when Close is called
	close     context.CancelFunc
	running   sync.WaitGroup

	sizes      packetLimits
	detections ledger.Ledger
	state      ledger.Ledger

	mu         sync.Mutex
	feeds      []feed // of the cameras
	mailboxes  map[topicKey]*mailbox
	order      []*mailbox        // in the order of their making
	cameras    map[string]string // name by topic level, of cameras that have controls
	remote     map[string]command.Kept
	connection Connection
	connects   uint64
	repeats    uint64            // events that were sent again
	sentEvent  uint64            // number of the newest event that was sent
	reasons    map[string]string // why there is no connection, as logged last, by address
	opened     bool
	stale      staleTopics
	conflict   nameConflict

	refusals, commands logLimit
	restarting         atomic.Bool // the controller prepares a restart
	remoteFile         coalesced   // writes remote.json
	// The entities announced to Home Assistant, and their saved form. Guarded by announcing, which is locked before mu.
	announcing     sync.Mutex
	announced      homeassistant.Announced
	announcedSaved string
}

// shutdownLimit bounds the time Run takes to send queued messages and publish "stopped" when it ends.
const shutdownLimit = 1500 * time.Millisecond

// topicLimit bounds the number of topics with newest-wins messages.
const topicLimit = 8192

// Check returns the error that Open would return, except for a spool that is in use. It opens nothing.
func (c *Client) Check() error {
	if err := (topic.Tree{Root: cmp.Or(c.Root, topic.DefaultRoot), Device: c.Device}).Check(); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	if strings.ContainsAny(c.DiscoveryPrefix, "+#\x00") {
		return fmt.Errorf("open mqtt: discovery prefix %q cannot start a topic (leave out + and #)", c.DiscoveryPrefix)
	}
	if len(c.Brokers) == 0 {
		return errors.New("open mqtt: no broker address")
	}
	for _, text := range c.Brokers {
		if _, err := address.Parse(text); err != nil {
			return fmt.Errorf("open mqtt: %w", err)
		}
	}
	if _, err := c.TLS.Load(); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	if _, err := credentials.ReadSecret(c.Password, c.PasswordFile); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	return nil
}

// Open checks the configuration and opens the spool. Messages may be published from here on.
func (c *Client) Open() error {
	if err := c.Check(); err != nil {
		return err
	}
	c.Root = cmp.Or(c.Root, topic.DefaultRoot)
	c.topics = topic.Tree{Root: c.Root, Device: c.Device}
	c.addresses = nil
	for _, text := range c.Brokers {
		a, err := address.Parse(text)
		if err != nil {
			return fmt.Errorf("open mqtt: %w", err)
		}
		c.addresses = append(c.addresses, a)
	}
	c.ClientID = cmp.Or(c.ClientID, defaultClientID(c.Device))
	c.KeepAlive = positive(c.KeepAlive, 30*time.Second)
	c.ConnectTimeout = positive(c.ConnectTimeout, 10*time.Second)
	c.WriteTimeout = positive(c.WriteTimeout, 5*time.Second)
	c.AckTimeout = positive(c.AckTimeout, 30*time.Second)
	c.RetryMin = positive(c.RetryMin, 500*time.Millisecond)
	c.RetryMax = positive(c.RetryMax, 30*time.Second)
	c.RefusedRetry = positive(c.RefusedRetry, time.Minute)
	c.Window = positive(c.Window, 16)
	c.replayGap = time.Second / time.Duration(positive(c.ReplayRate, 2000))
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	c.run = strconv.FormatInt(time.Now().UnixMicro(), 36)
	c.qos0, c.qos1 = newMailboxQueue(), newMailboxQueue()
	c.mailboxes, c.cameras, c.reasons = map[topicKey]*mailbox{}, map[string]string{}, map[string]string{}
	c.stale = staleTopics{announced: make(chan struct{}), checked: map[string]struct{}{}}
	c.sizes.MaxPacket = c.MaxPacket
	c.events = &spool.Spool{Config: c.Spool, Logger: c.Logger, Notify: c.qos1.Signal}
	if err := c.events.Open(); err != nil {
		return fmt.Errorf("open mqtt: %w", err)
	}
	c.remoteFile.pause, c.remoteFile.run = remotePause, c.saveRemote
	c.loadRemote()
	c.loadAnnounced()
	c.closing, c.close = context.WithCancel(context.Background())
	if c.Controller != nil { // without remote control the client does not subscribe to its own topics
		c.announceMachine()
	}
	c.mu.Lock()
	c.opened = true
	c.mu.Unlock()
	return nil
}

// Run connects, reconnects and sends until the context ends or Close is called; it then publishes "stopped" and returns within two seconds.
// An unreachable broker is not an error: Run logs each new reason and retries. Run must be called once.
func (c *Client) Run(ctx context.Context) error {
	c.mu.Lock()
	if !c.opened || c.closing.Err() != nil {
		c.mu.Unlock()
		return errors.New("run mqtt: client is not open")
	}
	c.running.Add(1)
	c.mu.Unlock()
	defer c.running.Done()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(c.closing, cancel)()

	t := retryState{blocked: make([]time.Time, len(c.addresses))}
	for ctx.Err() == nil {
		pause := c.attempt(ctx, &t)
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
	return nil
}

// positive returns value, or standard if value is not set.
func positive[T int | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// Close ends Run, waits for it, and writes the queued events to disk. Afterwards every event is delivered, on disk, or accounted as
// dropped; see spool.Spool.Close for the error. It is idempotent and safe on a client that was never opened.
func (c *Client) Close() error {
	if !c.isOpen() {
		return nil
	}
	c.close()
	c.running.Wait()
	c.remoteFile.Flush()
	c.announcing.Lock()
	c.settleAnnounced()
	c.saveAnnounced()
	c.announcing.Unlock()
	return c.events.Close()
}

// abandonLimit is how long Abandon waits for the disk.
const abandonLimit = 200 * time.Millisecond

// Abandon is Close for a process that ends at once, also while Close waits for a broker or a disk that hangs: it does not wait for Run.
func (c *Client) Abandon() error {
	if !c.isOpen() {
		return nil
	}
	c.close()
	return c.events.CloseWithin(abandonLimit)
}

func (c *Client) isOpen() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.opened
}

// Sync waits until every event queued before the call is on disk, or returns an error.
func (c *Client) Sync() error { return c.events.Sync() }

// Topics returns the client's topic tree. It is valid after Open.
func (c *Client) Topics() topic.Tree { return c.topics }

// Accounting is one account per outgoing class.
type Accounting struct {
	Detections ledger.Account `json:"detections"` // per-frame detections and stats: newest wins, QoS 0
	State      ledger.Account `json:"state"`      // status, counts, settings, snapshots, discovery: newest wins, retained
	Events     ledger.Account `json:"events"`     // the durable queue
}

// Accounting returns the message accounts since Open.
func (c *Client) Accounting() Accounting {
	return Accounting{Detections: c.detections.Read(), State: c.state.Read(), Events: c.events.Account()}
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
func (c *Client) noteSent(event uint64) {
	c.mu.Lock()
	if event <= c.sentEvent {
		c.repeats++
	}
	c.sentEvent = max(c.sentEvent, event)
	c.mu.Unlock()
}

func (c *Client) user(to address.Address) string { return cmp.Or(to.User, c.User) }

func (c *Client) password(to address.Address) (string, error) {
	if to.Password != "" {
		return string(to.Password), nil
	}
	return credentials.ReadSecret(c.Password, c.PasswordFile)
}

// defaultClientID returns a client id that is stable across restarts and differs between machines with the same device name.
func defaultClientID(device string) string {
	return fmt.Sprintf("edge-infer-%s-%s", strings.ToValidUTF8(device, "_"), machineID(device))
}
