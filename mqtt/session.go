package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"sync"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/address"
	"github.com/edge-infer/edge-infer/mqtt/topic"
	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// session is one connection to one broker, from CONNECT to its loss. A new paho client serves each: paho's own reconnecting would keep an
// unbounded store, replay it out of order, and hide why a broker refused.
type session struct {
	link   *Link
	paho   paho.Client
	conn   *transport.Conn
	broker string
	mark   uint64 // events up to this number were queued before the connection was up

	unconfirmed unconfirmedPackets

	ending chan struct{} // closed when the senders must finish queued messages and return
	abort  chan struct{} // closed when the senders must return at once
	done   chan struct{} // closed when the connection is lost
	once   sync.Once
	err    error // why; set before done is closed

	calls  chan func() paho.Token
	tokens chan paho.Token

	inbound chan paho.Message
}

// publication is one QoS 1 message on its way to paho.
type publication struct {
	topic   string
	retain  bool
	payload []byte
}

// fail ends the session; the first reason counts.
func (s *session) fail(err error) {
	s.once.Do(func() {
		s.err = err
		close(s.done)
		if s.conn != nil {
			s.conn.Close()
		}
	})
}

// identity is how a session presents itself.
type identity struct {
	id   string
	will string // topic of the last will "offline", retained; empty for none
	// Limits of received messages: how many may be queued, and the size of one in bytes.
	inbound, largest int
}

// connect opens a session. The context ends the attempt.
func (l *Link) connect(ctx context.Context, to address.Address, as identity) (*session, error) {
	password, err := l.password(to)
	if err != nil {
		return nil, err
	}
	conn, err := transport.Dial(ctx, to, l.TLS, l.ConnectTimeout)
	if err != nil {
		return nil, err
	}
	s := &session{
		link: l, broker: to.String(),
		ending: make(chan struct{}), abort: make(chan struct{}), done: make(chan struct{}),
		calls: make(chan func() paho.Token), tokens: make(chan paho.Token, 1),
		inbound: make(chan paho.Message, as.inbound),
	}
	s.conn = transport.New(conn, l.WriteTimeout, as.largest, func(size int) {
		l.device.refuse("", fmt.Errorf("%d bytes are too large for a command", size))
	}, s.fail)

	options := paho.NewClientOptions()
	options.AddBroker(to.String())
	options.SetClientID(as.id)
	options.SetUsername(l.user(to))
	options.SetPassword(password)
	options.SetProtocolVersion(4) // a fixed version: paho would answer a refused login by a second one in MQTT 3.1
	options.SetCleanSession(true)
	options.SetAutoReconnect(false)
	options.SetConnectRetry(false)
	options.SetConnectTimeout(l.ConnectTimeout)
	options.SetKeepAlive(l.KeepAlive)
	options.SetPingTimeout(l.KeepAlive / 2)
	options.SetWriteTimeout(l.WriteTimeout)
	options.SetOrderMatters(true)
	if as.will != "" {
		options.SetBinaryWill(as.will, []byte(topic.Offline), 1, true)
	}
	options.SetDefaultPublishHandler(func(_ paho.Client, m paho.Message) { s.receive(m) })
	options.SetConnectionLostHandler(func(_ paho.Client, err error) { s.fail(err) })
	options.SetCustomOpenConnectionFn(func(*url.URL, paho.ClientOptions) (net.Conn, error) { return s.conn, nil })
	s.paho = paho.NewClient(options)

	stop := context.AfterFunc(ctx, func() { s.conn.Close() })
	defer stop()
	token := s.paho.Connect()
	<-token.Done() // the connection's deadline ends it
	if err := token.Error(); err != nil {
		s.conn.Close()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		return nil, err
	}
	return s, nil
}

// serve sends until the connection is lost or the context ends; in the latter case it shuts down cleanly.
func (s *session) serve(ctx context.Context) error {
	s.mark = s.link.events.Last()
	for _, box := range s.link.device.retained() {
		box.Renew()
	}
	go s.callPaho()
	go s.handleInbound(ctx) // not waited for: a command may take its time
	var senders sync.WaitGroup
	drained := make(chan struct{})
	senders.Go(s.sendQoS0)
	senders.Go(func() {
		defer close(drained)
		s.sendQoS1()
	})

	select {
	case <-s.done:
	case <-ctx.Done():
		s.leave(drained)
	}
	senders.Wait()
	s.paho.Disconnect(0)
	return s.err
}

// leave lets the senders finish, publishes "stopped" and disconnects, all within shutdownLimit. drained is closed when sendQoS1 has
// returned.
func (s *session) leave(drained <-chan struct{}) {
	half, limit := time.NewTimer(shutdownLimit/2), time.NewTimer(shutdownLimit)
	defer half.Stop()
	defer limit.Stop()
	defer s.fail(errStopped)
	close(s.ending)
	select {
	case <-drained:
	case <-half.C:
	case <-s.done:
	}
	close(s.abort)
	select {
	case <-drained:
	case <-limit.C:
		return
	}
	token := s.publish(publication{s.link.device.availability(), true, []byte(topic.Stopped)}, limit.C)
	if token == nil {
		return
	}
	select {
	case <-token.Done():
		s.paho.Disconnect(uint(shutdownLimit.Milliseconds() / 8))
	case <-limit.C:
	case <-s.done:
	}
}

var errStopped = errors.New("stopped")

// callPaho makes those calls of paho that may block for the whole write timeout, even after the connection is lost. The goroutine ends with
// the session; nothing waits for it.
func (s *session) callPaho() {
	for {
		select {
		case call := <-s.calls:
			s.tokens <- call()
		case <-s.done:
			return
		}
	}
}

// call executes a call on callPaho's goroutine. It returns nil if the session ends or the limit fires first. One goroutine at a time may
// use it.
func (s *session) call(call func() paho.Token, limit <-chan time.Time) paho.Token {
	select {
	case s.calls <- call:
	case <-s.done:
		return nil
	case <-limit:
		return nil
	}
	select {
	case token := <-s.tokens:
		return token
	case <-s.done:
		return nil
	case <-limit:
		return nil
	}
}

// sizeLimit is the number of packets of this many bytes or more are discarded.
func (s *session) sizeLimit(now time.Time) int { return s.link.sizes.Limit(s.broker, now) }

// publish hands a QoS 1 message to paho, see call.
func (s *session) publish(p publication, limit <-chan time.Time) paho.Token {
	return s.call(func() paho.Token { return s.paho.Publish(p.topic, 1, p.retain, p.payload) }, limit)
}

func newIdleTimer() *time.Timer {
	timer := time.NewTimer(time.Hour)
	timer.Stop()
	return timer
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
