package mqtt

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"
)

// patience is how long a test waits for something that must happen.
const patience = 20 * time.Second

// journal collects log lines.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *journal) logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }

// startBroker runs an embedded broker on a free port, or on the given address.
func startBroker(t testing.TB, address string) *Broker {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	b := &Broker{Address: address, Logger: discard()}
	require.Eventually(t, func() bool { return b.Open() == nil }, patience, 20*time.Millisecond)
	t.Cleanup(func() { b.Close() })
	return b
}

// freeAddress is a loopback address that nothing listens on.
func freeAddress(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	return l.Addr().String()
}

// testClient has short times, so that faults show quickly.
func testClient(brokers ...string) *Client {
	return &Client{
		Device: "gate", Brokers: brokers, Logger: discard(), ClientID: fmt.Sprintf("test-%d", time.Now().UnixNano()),
		RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond, RefusedRetry: 300 * time.Millisecond,
		ConnectTimeout: 2 * time.Second, WriteTimeout: time.Second, AckTimeout: 5 * time.Second, KeepAlive: 2 * time.Second,
	}
}

// start opens and runs a client until the test ends; stop ends it earlier and gives the time that took.
func start(t testing.TB, c *Client) (stop func() time.Duration) {
	t.Helper()
	require.NoError(t, c.Open())
	done := make(chan error, 1)
	go func() { done <- c.Run(context.Background()) }()
	var once sync.Once
	var took time.Duration
	stop = func() time.Duration {
		once.Do(func() {
			begin := time.Now()
			c.Close()
			took = time.Since(begin)
			if err := <-done; err != nil {
				t.Errorf("run: %v", err)
			}
		})
		return took
	}
	t.Cleanup(func() { stop() })
	return stop
}

func waitConnected(t testing.TB, c *Client) {
	t.Helper()
	require.Eventually(t, func() bool { return c.Connection().Connected }, patience, 5*time.Millisecond)
}

// message is what a subscriber got.
type message struct {
	topic, payload string
	retained       bool
}

// subscriber collects what it gets, with plain paho, apart from the code under test.
type subscriber struct {
	client paho.Client
	mu     sync.Mutex
	got    []message
}

func subscribe(t testing.TB, url string, filters ...string) *subscriber {
	t.Helper()
	s := &subscriber{}
	options := paho.NewClientOptions().AddBroker(url).SetClientID(fmt.Sprintf("sub-%d", time.Now().UnixNano())).
		SetAutoReconnect(true).SetMaxReconnectInterval(50 * time.Millisecond).SetConnectRetry(true).SetConnectRetryInterval(50 * time.Millisecond)
	subscribed := make(chan struct{}, 100)
	options.SetOnConnectHandler(func(c paho.Client) {
		for _, filter := range filters {
			c.Subscribe(filter, 1, func(_ paho.Client, m paho.Message) {
				s.mu.Lock()
				s.got = append(s.got, message{m.Topic(), string(m.Payload()), m.Retained()})
				s.mu.Unlock()
			}).WaitTimeout(patience)
		}
		subscribed <- struct{}{}
	})
	s.client = paho.NewClient(options)
	require.True(t, s.client.Connect().WaitTimeout(patience))
	t.Cleanup(func() { s.client.Disconnect(10) })
	select {
	case <-subscribed:
	case <-time.After(patience):
		t.Fatal("no subscription")
	}
	return s
}

func (s *subscriber) messages(topic string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	var payloads []string
	for _, m := range s.got {
		if m.topic == topic {
			payloads = append(payloads, m.payload)
		}
	}
	return payloads
}

func (s *subscriber) last(topic string) string {
	payloads := s.messages(topic)
	if len(payloads) == 0 {
		return ""
	}
	return payloads[len(payloads)-1]
}

func (s *subscriber) waitLast(t testing.TB, topic, want string) {
	t.Helper()
	require.Eventually(t, func() bool { return s.last(topic) == want }, patience, 5*time.Millisecond, "%s is not %q", topic, want)
}

// balanced fails the test when an account does not add up.
func balanced(t testing.TB, c *Client) Accounting {
	t.Helper()
	a := c.Accounting()
	for _, account := range []Account{a.Detections, a.State, a.Events} {
		require.Equal(t, account.Offered, account.Delivered+account.Superseded+account.Dropped+account.Queued, "%+v", a)
		require.True(t, account.Superseded == 0 || account == a.State, "%+v", a)
	}
	return a
}

// noLeaks fails the test when goroutines that were started in it outlive it.
func noLeaks(t testing.TB) {
	t.Helper()
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		deadline := time.Now().Add(patience)
		for runtime.NumGoroutine() > before {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<20)
				stacks := strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n")
				t.Errorf("%d goroutines at the start, %d at the end:\n%s", before, runtime.NumGoroutine(), strings.Join(stacks, "\n\n"))
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
	})
}
