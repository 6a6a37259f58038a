// Package broker is the embedded MQTT broker, for machines that have no other. The protocol is mochi-mqtt's. In front of it every packet is
// validated as a whole, and sizes, connections, idle times and retained messages are bounded, so that no client can take the process down.
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
	"syscall"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"

	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

// Broker serves MQTT 3.1, 3.1.1 and 5. The exported fields must not change between Open and Close. Its methods may be called from any
// goroutine.
type Broker struct {
	Address string // 127.0.0.1:1883 when empty
	// User and Password are asked of every client when User is set. An address that other machines reach needs them, or client certificates.
	User         string
	Password     credentials.Secret
	PasswordFile string
	TLS          credentials.TLS // TLS when CertificateFile is set, clients must show a certificate when CAFile is set too
	Limits       Limits
	Logger       *slog.Logger // slog.Default when nil

	// Set by Open.
	server   *mochi.Server
	listener *listener
	retained *retained
	address  string
}

// Stats is what a broker has done since Open and what it holds now.
type Stats struct {
	Connections      int    `json:"connections"`       // open now
	Refused          uint64 `json:"refused"`           // connections ended because a limit or a packet's form was not kept
	Panics           uint64 `json:"panics"`            // connections ended because the library failed on them
	RetainedMessages int    `json:"retained_messages"` // held now
	RetainedBytes    int64  `json:"retained_bytes"`    // topics and payloads of those
	NotRetained      uint64 `json:"not_retained"`      // messages that were passed on and not kept: the limits were reached
}

// Open listens and serves until Close. An address beyond this machine without a password or client certificates is refused.
func (b *Broker) Open() error {
	if err := b.open(); err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	return nil
}

// Check says what Open would refuse, except an address that is in use, and opens nothing.
func (b *Broker) Check() error {
	if _, _, _, err := b.check(); err != nil {
		return fmt.Errorf("open embedded broker: %w", err)
	}
	return nil
}

// check reads what the fields name.
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
	if err := b.server.Serve(); err != nil {
		return err
	}
	for topic := range b.server.Topics.Retained.GetAll() { // the $SYS topics, published once: an empty index is never scanned
		b.server.Topics.Retained.Delete(topic)
	}
	close(b.listener.ready)
	return nil
}

// checkAccess returns the address to listen on, and refuses to take anyone on the network.
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

// assemble makes the library's server and what stands before it, without a socket.
func (b *Broker) assemble(password string) error {
	capabilities := mochi.NewDefaultServerCapabilities()
	// The library would throw away what is retained after this time, and at once when the clock jumps.
	capabilities.MaximumMessageExpiryInterval = 0
	capabilities.MaximumSessionExpiryInterval = uint32(b.Limits.SessionExpiry.Seconds())
	capabilities.TopicAliasMaximum = topicAliases // each may hold 64 KiB
	capabilities.RetainAvailable = 0              // the library's index has a data race, see retained
	b.server = mochi.New(&mochi.Options{Capabilities: capabilities, Logger: demoted(b.Logger), SysTopicResendInterval: never})
	b.retained = &retained{limits: &b.Limits, messages: map[string]packets.Packet{}}
	b.listener = newListener(&b.Limits, b.Logger)
	b.listener.abandon = b.abandon
	return b.server.AddHook(&policy{
		user: b.User, password: password, limits: &b.Limits, retained: b.retained, sessions: b.server.Clients.Len, log: b.listener.complain,
		delivery: deliveryInfo{
			maximumQoS: capabilities.MaximumQos, maximumInflight: int(capabilities.MaximumInflight),
			receiveMaximum: int(capabilities.ReceiveMaximum), inflight: &b.server.Info.Inflight,
		},
	}, nil)
}

// never is the interval in seconds at which the library publishes its $SYS topics.
const never = 1 << 30

// topicAliases is how many topics of MQTT 5 a client may abbreviate.
const topicAliases = 16

// abandon forgets the client of a connection on which the library failed: it did not get to do so itself.
func (b *Broker) abandon(conn net.Conn) {
	for _, client := range b.server.Clients.GetAll() {
		if client.Net.Conn == conn {
			client.Stop(errPanic)
			client.ClearInflights()
			b.server.UnsubscribeClient(client)
			b.server.Clients.Delete(client.ID)
		}
	}
}

// Addr is host:port of the listener, with the port that was chosen when Address asked for port 0. It is valid after Open.
func (b *Broker) Addr() string { return b.address }

// URL is the address for clients on this machine.
func (b *Broker) URL() string {
	if b.TLS.CertificateFile != "" {
		return "tls://" + b.address
	}
	return "tcp://" + b.address
}

// Stats says how the broker stands; zero before Open and after Close.
func (b *Broker) Stats() Stats {
	if b.server == nil {
		return Stats{}
	}
	s := b.listener.stats()
	s.RetainedMessages, s.RetainedBytes, s.NotRetained = b.retained.stats()
	return s
}

// Close ends all connections. It is idempotent and safe on a broker that was never opened.
func (b *Broker) Close() error {
	if b.server == nil {
		return nil
	}
	server := b.server
	b.server = nil
	if err := server.Close(); err != nil {
		return fmt.Errorf("close embedded broker: %w", err)
	}
	return nil
}

// policy lets clients in by user and password, or all when no user is set, and to every topic; and bounds what they leave behind.
type policy struct {
	mochi.HookBase
	user, password string
	limits         *Limits
	retained       *retained
	sessions       func() int // how many clients are remembered
	log            func(reason error, remote string)
	delivery       deliveryInfo
}

// ID implements mochi.Hook.
func (*policy) ID() string { return "policy" }

// Provides implements mochi.Hook.
func (*policy) Provides(event byte) bool {
	switch event {
	case mochi.OnConnectAuthenticate, mochi.OnACLCheck, mochi.OnConnect, mochi.OnSessionEstablish, mochi.OnSubscribe, mochi.OnSubscribed,
		mochi.OnPublish, mochi.OnPacketRead, mochi.OnWill, mochi.OnWillSent:
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

// OnACLCheck implements mochi.Hook.
func (*policy) OnACLCheck(*mochi.Client, string, bool) bool { return true }

// OnConnect refuses a new client when too many that left are remembered.
func (p *policy) OnConnect(client *mochi.Client, _ packets.Packet) error {
	const longestDelay = 300 // seconds that a will may wait; each is kept meanwhile
	client.Properties.Will.WillDelayInterval = min(client.Properties.Will.WillDelayInterval, longestDelay)
	if p.sessions() >= p.limits.Sessions {
		p.log(errSessions, client.Net.Remote)
		return packets.ErrQuotaExceeded
	}
	return nil
}

// OnSessionEstablish is called when a client is let in.
func (*policy) OnSessionEstablish(client *mochi.Client, _ packets.Packet) {
	if g, ok := client.Net.Conn.(*guard); ok {
		g.admit()
	}
}

// OnSubscribe refuses the filters over the limit: the library answers an empty one with a refusal. A subscription that exists and asks for
// retained messages of new ones only gets none.
func (p *policy) OnSubscribe(client *mochi.Client, pk packets.Packet) packets.Packet {
	room := p.limits.Subscriptions - client.State.Subscriptions.Len()
	for i := range pk.Filters {
		filter := &pk.Filters[i]
		if i >= room {
			filter.Filter = ""
		}
		if _, exists := client.State.Subscriptions.Get(filter.Filter); exists && filter.RetainHandling == sendIfNew {
			filter.RetainHandling = sendNever
		}
	}
	return pk
}

// Values of a subscription's retain handling, section 3.8.3.1 of MQTT 5.
const (
	sendIfNew = 1
	sendNever = 2
)

// OnSubscribed sends the retained messages of the granted subscriptions, before the library acknowledges them, as section 3.8.4 of MQTT
// allows. A message that is published meanwhile arrives as a live one: the library has the subscriptions already.
func (p *policy) OnSubscribed(client *mochi.Client, pk packets.Packet, reasonCodes []byte) {
	for i := range pk.Filters {
		filter := &pk.Filters[i]
		granted := i < len(reasonCodes) && reasonCodes[i] < packets.ErrUnspecifiedError.Code
		if granted && filter.RetainHandling != sendNever && !mochi.IsSharedFilter(filter.Filter) {
			p.retained.deliver(client, filter, &p.delivery)
		}
	}
}

// OnPublish keeps a retained message, or passes it on without keeping it if there is no room.
func (p *policy) OnPublish(client *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	switch {
	case !pk.FixedHeader.Retain:
	case p.retained.fits(pk.TopicName, len(pk.Payload)):
		p.retained.put(pk)
	default:
		pk.FixedHeader.Retain = false
		p.log(errRetained, client.Net.Remote)
	}
	return pk, nil
}

// retainedWill marks a will that is to be retained, among its user properties: the library refuses such wills when it does not retain itself.
const retainedWill = "\x00retain"

// OnPacketRead marks a retained will of a CONNECT packet.
func (*policy) OnPacketRead(_ *mochi.Client, pk packets.Packet) (packets.Packet, error) {
	if pk.FixedHeader.Type == packets.Connect && pk.Connect.WillRetain {
		pk.Connect.WillRetain = false
		pk.Connect.WillProperties.User = append(pk.Connect.WillProperties.User, packets.UserProperty{Key: retainedWill})
	}
	return pk, nil
}

// OnWill restores the retain flag of a will. One without room is passed on and not kept.
func (p *policy) OnWill(client *mochi.Client, will mochi.Will) (mochi.Will, error) {
	marked := slices.IndexFunc(will.User, func(property packets.UserProperty) bool { return property.Key == retainedWill })
	if marked < 0 {
		return will, nil
	}
	will.User = slices.Delete(slices.Clone(will.User), marked, marked+1)
	will.Retain = p.retained.fits(will.TopicName, len(will.Payload))
	if !will.Retain {
		p.log(errRetained, client.Net.Remote)
	}
	return will, nil
}

// OnWillSent keeps a retained will.
func (p *policy) OnWillSent(_ *mochi.Client, pk packets.Packet) {
	if pk.FixedHeader.Retain {
		p.retained.put(pk)
	}
}
