// Package broker is the embedded MQTT broker for machines without another one. It uses mochi-mqtt and adds protection against hostile
// clients: each packet is validated before the library sees it, and sizes, connections, idle times and retained messages are limited.
package broker

import (
	"cmp"
	"crypto/subtle"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"sync/atomic"
	"syscall"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Broker serves MQTT 3.1, 3.1.1 and 5. The exported fields must not change between Open and Close. Its methods may be called from any
// goroutine.
type Broker struct {
	Address string // 127.0.0.1:1883 when empty
	// User and Password are required of every client if User is set. An address reachable from other machines needs them or client
	// certificates.
	User         string
	Password     credentials.Secret
	PasswordFile string
	TLS          credentials.TLS // enabled by CertificateFile; CAFile makes client certificates mandatory
	Limits       Limits
	Logger       *slog.Logger // slog.Default when nil

	// Set by Open.
	server   *mochi.Server
	listener *listener
	retained *retained
	sessions *sessions
	queue    *queue
	pace     *pace // of copies of messages
	own      atomic.Pointer[[]string]
	address  string
	closed   atomic.Bool
}

// Stats holds counters since Open and current values.
type Stats struct {
	Connections      int    `json:"connections"`       // open now
	Refused          uint64 `json:"refused"`           // connections closed because of a limit or a malformed packet
	Panics           uint64 `json:"panics"`            // connections closed because the library panicked
	RetainedMessages int    `json:"retained_messages"` // held now
	RetainedBytes    int64  `json:"retained_bytes"`    // topics and payloads of these
	NotRetained      uint64 `json:"not_retained"`      // messages forwarded but not retained because of the limits
	Sessions         int    `json:"sessions"`          // connected clients and stored sessions now
	EvictedSessions  uint64 `json:"evicted_sessions"`  // stored sessions removed for new clients
	QueuedBytes      int64  `json:"queued_bytes"`      // of messages that wait for acknowledgement now
	RemovedSessions  uint64 `json:"removed_sessions"`  // sessions removed because too many bytes waited for them
	Undelivered      uint64 `json:"undelivered"`       // messages discarded for one client: too many waited for it, or they expired
	Delayed          uint64 `json:"delayed"`           // times a client waited because its address exceeded its share of the rate
}

// Open starts serving until Close. It refuses an address reachable from other machines without a password or client certificates.
func (b *Broker) Open() error {
	if err := b.open(); err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	return nil
}

// Check returns the error that Open would return, except for an address that is in use. It opens nothing.
func (b *Broker) Check() error {
	if _, _, _, err := b.check(); err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	return nil
}

// check validates the fields and reads the files.
func (b *Broker) check() (password, address string, encryption *tls.Config, err error) {
	if password, err = credentials.ReadSecret(b.Password, b.PasswordFile); err != nil {
		return "", "", nil, err
	}
	if address, err = b.checkAccess(password); err != nil {
		return "", "", nil, err
	}
	encryption, err = b.encryption()
	return password, address, encryption, err
}

func (b *Broker) open() error {
	b.closed.Store(false)
	if b.Logger == nil {
		b.Logger = slog.Default()
	}
	password, address, encryption, err := b.check()
	if err != nil {
		return err
	}
	b.Limits.setDefaults()
	if err := b.assemble(password); err != nil {
		return err
	}
	socket, err := net.Listen("tcp", address)
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%w (if that is a broker, publish to it with --mqtt tcp://%s, or choose another port)", err, address)
	}
	if err != nil {
		return err
	}
	if encryption != nil {
		socket = tls.NewListener(socket, encryption)
	}
	b.listener.Listener, b.address = socket, socket.Addr().String()
	if err := b.server.AddListener(b.listener); err != nil {
		socket.Close()
		return err
	}
	return b.server.Serve()
}

// checkAccess returns the address to listen on, or an error if clients on the network could log in without authentication.
func (b *Broker) checkAccess(password string) (string, error) {
	address := cmp.Or(b.Address, "127.0.0.1:1883")
	resolved, err := net.ResolveTCPAddr("tcp", address)
	switch {
	case err != nil:
		return "", fmt.Errorf("address %q: %w", address, err)
	case b.User != "" && password == "":
		return "", fmt.Errorf("user %q has no password (set one, or leave out the user)", b.User)
	case b.User == "" && b.TLS.CAFile == "" && !resolved.IP.IsLoopback():
		const remedy = "set a user and a password, or the authority of client certificates, or listen on 127.0.0.1"
		return "", fmt.Errorf("other machines reach %s: %s", address, remedy)
	}
	return resolved.String(), nil
}

func (b *Broker) encryption() (*tls.Config, error) {
	if b.TLS.CertificateFile == "" {
		return nil, nil
	}
	config, err := b.TLS.Load()
	if err == nil && config.RootCAs != nil {
		config.ClientCAs, config.ClientAuth = config.RootCAs, tls.RequireAndVerifyClientCert
	}
	return config, err
}

// assemble creates the library's server and its hooks, without a socket.
func (b *Broker) assemble(password string) error {
	capabilities := mochi.NewDefaultServerCapabilities()
	// With another value the library deletes retained messages after this time, and at once when the clock jumps.
	capabilities.MaximumMessageExpiryInterval = 0
	capabilities.MaximumSessionExpiryInterval = uint32(b.Limits.SessionExpiry.Seconds())
	capabilities.TopicAliasMaximum = topicAliases // each may hold 64 KiB
	capabilities.MaximumClientWritesPending = pendingMessages
	b.server = mochi.New(&mochi.Options{Capabilities: capabilities, Logger: debugLogger(b.Logger)})
	b.retained = newRetained(b.server, &b.Limits)
	b.sessions = &sessions{server: b.server, limit: b.Limits.Sessions}
	b.listener = newListener(&b.Limits, b.Logger)
	b.listener.dropClient = b.dropClient
	server := b.server
	b.listener.disconnect = func() {
		for _, client := range server.Clients.GetAll() {
			if client.Net.Listener == b.listener.ID() && !client.Closed() {
				_ = server.DisconnectClient(client, packets.ErrServerShuttingDown)
			}
		}
	}
	b.queue = &queue{
		sessions: b.sessions, limit: b.Limits.Queued, log: b.listener.logRefusal, published: &b.listener.published,
		clients: map[string]*unacknowledged{},
	}
	b.pace = newPace(b.Limits.Rate, b.listener.refuse)
	b.retained.queue = b.queue
	b.retained.pace = b.pace
	return b.server.AddHook(&policy{
		user: b.User, password: password, limits: &b.Limits, retained: b.retained, sessions: b.sessions, queue: b.queue,
		pace: b.pace, own: &b.own, log: b.listener.logRefusal,
	}, nil)
}

// topicAliases is the number of MQTT 5 topic aliases per client.
const topicAliases = 16

// dropClient forgets the client of a connection on which the library failed: it did not get to do so itself.
func (b *Broker) dropClient(conn net.Conn) {
	for _, client := range b.server.Clients.GetAll() {
		if client.Net.Conn == conn {
			b.sessions.end(client, errPanic)
		}
	}
}

// Addr returns host:port of the listener, with the actual port if Address has port 0. It is valid after Open.
func (b *Broker) Addr() string { return b.address }

// URL returns the address for clients on this machine.
func (b *Broker) URL() string {
	if b.TLS.CertificateFile != "" {
		return "tls://" + b.address
	}
	return "tcp://" + b.address
}

// Trust exempts clients with these identifiers from Limits.Rate if they connect from this machine: they belong to this process. Another
// program that logs in with such an identifier ends the connection of this process.
func (b *Broker) Trust(identifiers ...string) { b.own.Store(&identifiers) }

// Stats returns the broker's counters, zero before Open and after Close.
func (b *Broker) Stats() Stats {
	if b.server == nil || b.closed.Load() {
		return Stats{}
	}
	s := b.listener.stats()
	s.RetainedMessages, s.RetainedBytes, s.NotRetained = b.retained.stats()
	s.Sessions, s.EvictedSessions = b.server.Clients.Len(), b.sessions.evicted.Load()
	s.QueuedBytes, s.RemovedSessions = b.queue.stats()
	s.Delayed = b.pace.waits() + b.listener.packets.waits()
	info := b.server.Info
	s.Undelivered = uint64(atomic.LoadInt64(&info.MessagesDropped) + atomic.LoadInt64(&info.InflightDropped))
	return s
}

// Close closes all connections. It is idempotent and safe before Open.
func (b *Broker) Close() error {
	if b.server == nil || b.closed.Swap(true) {
		return nil
	}
	if err := b.server.Close(); err != nil {
		return fmt.Errorf("close embedded broker: %w", err)
	}
	return nil
}

// policy authenticates clients by user and password, if set, allows all topics, and limits subscriptions, sessions and retained messages.
type policy struct {
	mochi.HookBase
	user, password string
	limits         *Limits
	retained       *retained
	sessions       *sessions
	queue          *queue
	pace           *pace
	own            *atomic.Pointer[[]string]
	log            func(reason error, remote string)
}

// ID implements mochi.Hook.
func (*policy) ID() string { return "policy" }

// Provides implements mochi.Hook.
func (*policy) Provides(event byte) bool {
	switch event {
	case mochi.OnConnectAuthenticate, mochi.OnACLCheck, mochi.OnConnect, mochi.OnSessionEstablish, mochi.OnSessionEstablished,
		mochi.OnSubscribe, mochi.OnSubscribed, mochi.OnPacketProcessed, mochi.OnPublish, mochi.OnWill, mochi.OnRetainMessage,
		mochi.OnRetainedExpired, mochi.OnQosPublish, mochi.OnQosComplete, mochi.OnQosDropped, mochi.OnClientExpired:
		return true
	}
	return false
}

// OnConnectAuthenticate implements mochi.Hook.
func (p *policy) OnConnectAuthenticate(_ *mochi.Client, pk packets.Packet) bool {
	if p.user == "" {
		return true
	}
	user := subtle.ConstantTimeCompare(pk.Connect.Username, []byte(p.user))
	password := subtle.ConstantTimeCompare(pk.Connect.Password, []byte(p.password))
	return user&password == 1
}

// OnACLCheck is called before each message to a client, among others. All topics are allowed.
func (p *policy) OnACLCheck(client *mochi.Client, _ string, _ bool) bool {
	p.queue.unblock(client)
	return true
}

// OnConnect refuses a new client if the limit of sessions is reached and none can be evicted.
func (p *policy) OnConnect(client *mochi.Client, _ packets.Packet) error {
	const longestDelay = 300 // maximum delay of a will in seconds
	client.Properties.Will.WillDelayInterval = min(client.Properties.Will.WillDelayInterval, longestDelay)
	if !p.sessions.admits(client.ID) {
		p.log(errSessions, client.Net.Remote)
		return packets.ErrQuotaExceeded
	}
	return nil
}

// OnSessionEstablish is called when a client has logged in, before its session is created or continued.
func (p *policy) OnSessionEstablish(client *mochi.Client, _ packets.Packet) {
	if g, ok := client.Net.Conn.(*guard); ok {
		g.admit()
		g.own.Store(p.trusts(client.ID, g))
	}
	p.pace.wait(client.Net.Conn, loginCost+p.queue.bytesOf(client.ID))
	p.sessions.makeRoom(client.ID)
}

// trusts reports whether a client is one of this process: it has one of its identifiers and connects from this machine.
func (p *policy) trusts(id string, conn net.Conn) bool {
	own := p.own.Load()
	if own == nil || !slices.Contains(*own, id) {
		return false
	}
	host := hostOf(conn.RemoteAddr().String())
	address := net.ParseIP(host)
	return host == hostOf(conn.LocalAddr().String()) || address != nil && address.IsLoopback()
}

// OnSessionEstablished is called before the client's first packet after the login. It turns off the library's send quota: with a quota,
// Inflight.NextImmediate (v2.7.9) locks a mutex for reading twice, and a message for the client between the two blocks both for ever, and
// with them whoever publishes to the client. The Receive Maximum of MQTT 5 is not honoured therefore.
func (*policy) OnSessionEstablished(client *mochi.Client, _ packets.Packet) {
	client.State.Inflight.ResetSendQuota(0)
}

// OnQosPublish implements mochi.Hook.
func (p *policy) OnQosPublish(client *mochi.Client, pk packets.Packet, _ int64, _ int) {
	p.queue.add(client, &pk)
}

// OnQosComplete implements mochi.Hook.
func (p *policy) OnQosComplete(client *mochi.Client, pk packets.Packet) {
	p.queue.complete(client.ID, pk.PacketID)
}

// OnQosDropped implements mochi.Hook.
func (p *policy) OnQosDropped(client *mochi.Client, pk packets.Packet) {
	p.queue.complete(client.ID, pk.PacketID)
}

// OnClientExpired implements mochi.Hook.
func (p *policy) OnClientExpired(client *mochi.Client) { p.queue.forget(client.ID) }

// OnSubscribe refuses filters over the limit by emptying them, which the library rejects.
func (p *policy) OnSubscribe(client *mochi.Client, pk packets.Packet) packets.Packet {
	room := p.limits.Subscriptions - client.State.Subscriptions.Len()
	for i := range pk.Filters {
		if i >= room {
			pk.Filters[i].Filter = ""
		}
	}
	resolveRetainHandling(client, pk.Filters)
	return pk
}

// OnSubscribed selects the filters whose retained messages follow the SUBACK.
func (p *policy) OnSubscribed(client *mochi.Client, pk packets.Packet, reasonCodes []byte) {
	if g, ok := client.Net.Conn.(*guard); ok {
		g.due = takeOver(pk.Filters, reasonCodes)
	}
}

// OnPacketProcessed sends the retained messages of new subscriptions. It is called after the SUBACK has been written.
func (p *policy) OnPacketProcessed(client *mochi.Client, pk packets.Packet, err error) {
	g, ok := client.Net.Conn.(*guard)
	if !ok || pk.FixedHeader.Type != packets.Subscribe {
		return
	}
	due := g.due
	g.due = nil
	if err != nil {
		return
	}
	for _, sub := range due {
		p.retained.deliver(client, sub)
	}
}

// OnPublish forwards a message without retaining it if the limits are reached.
func (p *policy) OnPublish(client *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	p.queue.published.Add(int64(len(pk.TopicName) + len(pk.Payload)))
	p.pace.wait(client.Net.Conn, p.copies(pk.TopicName, pk.Payload))
	if pk.FixedHeader.Retain && !p.retained.fits(pk.TopicName, len(pk.Payload)) {
		pk.FixedHeader.Retain = false
		p.log(errRetained, client.Net.Remote)
	}
	return pk, nil
}

// copies returns the bytes that are copied when a message is published.
func (p *policy) copies(topic string, payload []byte) int64 {
	receivers := p.sessions.server.Topics.Subscribers(topic)
	return messageSize(topic, payload) * int64(1+len(receivers.Subscriptions)+len(receivers.Shared))
}

// OnWill delays a will in the same way. Its client is gone, so the delay applies to its address.
func (p *policy) OnWill(client *mochi.Client, will mochi.Will) (mochi.Will, error) {
	p.pace.wait(client.Net.Conn, p.copies(will.TopicName, will.Payload))
	if will.Retain && !p.retained.fits(will.TopicName, len(will.Payload)) {
		will.Retain = false
		p.log(errRetained, client.Net.Remote)
	}
	return will, nil
}

// OnRetainMessage implements mochi.Hook.
func (p *policy) OnRetainMessage(_ *mochi.Client, pk packets.Packet, _ int64) {
	p.retained.update(pk.TopicName)
}

// OnRetainedExpired implements mochi.Hook.
func (p *policy) OnRetainedExpired(topic string) { p.retained.update(topic) }
