package mqtttest

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"
)

// Patience is how long a test waits for something that must happen.
const Patience = 20 * time.Second

// Message is what a subscriber got.
type Message struct {
	Topic, Payload string
	Retained       bool
}

// Subscriber collects what it gets, with plain paho, apart from the code under test.
type Subscriber struct {
	Client paho.Client
	mu     sync.Mutex
	got    []Message
}

// Subscribe connects and returns when every filter is granted. It connects again when the broker comes back.
func Subscribe(t testing.TB, url string, filters ...string) *Subscriber {
	t.Helper()
	s := &Subscriber{}
	options := paho.NewClientOptions().AddBroker(url).SetClientID(fmt.Sprintf("sub-%d", time.Now().UnixNano())).
		SetAutoReconnect(true).SetMaxReconnectInterval(50 * time.Millisecond).SetConnectRetry(true).SetConnectRetryInterval(50 * time.Millisecond)
	subscribed := make(chan struct{}, 100)
	options.SetOnConnectHandler(func(c paho.Client) {
		for _, filter := range filters {
			c.Subscribe(filter, 1, func(_ paho.Client, m paho.Message) {
				s.mu.Lock()
				s.got = append(s.got, Message{m.Topic(), string(m.Payload()), m.Retained()})
				s.mu.Unlock()
			}).WaitTimeout(Patience)
		}
		subscribed <- struct{}{}
	})
	s.Client = paho.NewClient(options)
	require.True(t, s.Client.Connect().WaitTimeout(Patience))
	t.Cleanup(func() { s.Client.Disconnect(10) })
	select {
	case <-subscribed:
	case <-time.After(Patience):
		t.Fatal("no subscription")
	}
	return s
}

// All are all messages in their order.
func (s *Subscriber) All() []Message {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.got)
}

// Messages are the payloads of a topic in their order.
func (s *Subscriber) Messages(topic string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var payloads []string
	for _, m := range s.got {
		if m.Topic == topic {
			payloads = append(payloads, m.Payload)
		}
	}
	return payloads
}

// Last is the newest payload of a topic, empty when there is none.
func (s *Subscriber) Last(topic string) string {
	payloads := s.Messages(topic)
	if len(payloads) == 0 {
		return ""
	}
	return payloads[len(payloads)-1]
}

// WaitLast returns when the newest payload of a topic is what is wanted.
func (s *Subscriber) WaitLast(t testing.TB, topic, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return s.Last(topic) == want }, Patience, 5*time.Millisecond, "%s is not %q", topic, want)
}
