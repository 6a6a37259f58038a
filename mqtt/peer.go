package mqtt

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"

	"github.com/edge-infer/edge-infer/mqtt/transport"
)

// Peer is a connection of a tool, which reads and writes topics of many devices. It connects again by itself.
type Peer struct {
	client paho.Client
}

// peerTimeout bounds each step of a connection, and peerRetry the pause between two.
const (
	peerTimeout = 10 * time.Second
	peerRetry   = 5 * time.Second
)

// Connect connects a tool to the first broker that takes it, and subscribes to filters with quality of service 0: with 1, brokers discard
// what they retain for more than about a thousand devices. receive gets the messages in order on one goroutine, the retained ones again
// after each new connection; it must not wait for the peer. Each id is connected once.
func (a *Access) Connect(ctx context.Context, id string, filters []string, receive func(topic string, message []byte)) (*Peer, error) {
	addresses, err := a.addresses()
	if err != nil {
		return nil, err
	}
	if len(addresses) == 0 {
		return nil, errors.New("no broker address")
	}
	p := new(Peer)
	subscribed := make(chan error, 1)
	tell := func(err error) {
		select {
		case subscribed <- err:
		default:
		}
	}
	options := paho.NewClientOptions().SetClientID(id).SetProtocolVersion(4).SetCleanSession(true).SetConnectTimeout(peerTimeout).
		SetWriteTimeout(peerTimeout).SetAutoReconnect(true).SetMaxReconnectInterval(peerRetry).SetOrderMatters(true)
	for _, to := range addresses {
		options.AddBroker(to.String())
	}
	options.SetCustomOpenConnectionFn(func(uri *url.URL, _ paho.ClientOptions) (net.Conn, error) {
		for _, to := range addresses {
			if to.URL.Host == uri.Host && to.URL.Scheme == uri.Scheme {
				return transport.Dial(context.Background(), to, a.TLS, peerTimeout)
			}
		}
		return nil, fmt.Errorf("no broker %s", uri.Host)
	})
	options.SetCredentialsProvider(func() (string, string) {
		password, err := a.password(addresses[0])
		if err != nil {
			tell(err)
		}
		return a.user(addresses[0]), password
	})
	wanted := map[string]byte{}
	for _, filter := range filters {
		wanted[filter] = 0
	}
	options.SetOnConnectHandler(func(c paho.Client) {
		if len(wanted) == 0 {
			tell(nil)
			return
		}
		token := c.SubscribeMultiple(wanted, func(_ paho.Client, m paho.Message) { receive(m.Topic(), m.Payload()) })
		token.WaitTimeout(peerTimeout)
		request := subscription{token: token.(*paho.SubscribeToken)}
		tell(request.refused())
	})
	p.client = paho.NewClient(options)
	token := p.client.Connect()
	select {
	case <-token.Done():
		err = token.Error()
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil {
		select {
		case err = <-subscribed:
		case <-ctx.Done():
			err = ctx.Err()
		}
	}
	if err != nil {
		p.client.Disconnect(0)
		return nil, fmt.Errorf("%s: %w", addresses[0], err)
	}
	return p, nil
}

// Publish publishes a retained message with quality of service 1, an empty one to remove it, and waits for the acknowledgement.
func (p *Peer) Publish(ctx context.Context, topic string, message []byte) error {
	if message == nil {
		message = []byte{}
	}
	token := p.client.Publish(topic, 1, true, message)
	select {
	case <-token.Done():
		return token.Error()
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Close disconnects.
func (p *Peer) Close() { p.client.Disconnect(250) }
