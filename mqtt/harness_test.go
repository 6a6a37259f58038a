package mqtt

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/ledger"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// startBroker runs an embedded broker on a free port, or on the given address.
func startBroker(t testing.TB, address string) *embedded.Broker {
	t.Helper()
	if address == "" {
		address = "127.0.0.1:0"
	}
	b := &embedded.Broker{Address: address, Logger: mqtttest.Discard()}
	require.Eventually(t, func() bool { return b.Open() == nil }, mqtttest.Patience, 20*time.Millisecond)
	t.Cleanup(func() { b.Close() })
	return b
}

// unhindered is far more than a busy machine makes of an end that waits for nothing, and far less than what such a test has it not wait
// for.
const unhindered = 30 * time.Second

// testClient has short times, so that faults show quickly.
func testClient(brokers ...string) *Client {
	return &Client{
		Device: "gate", Link: Link{
			Access: Access{Brokers: brokers}, Logger: mqtttest.Discard(), ClientID: fmt.Sprintf("test-%d", time.Now().UnixNano()),
			RetryMin: 20 * time.Millisecond, RetryMax: 200 * time.Millisecond, RefusedRetry: 300 * time.Millisecond,
			ConnectTimeout: 2 * time.Second, WriteTimeout: time.Second, AckTimeout: 5 * time.Second, KeepAlive: 2 * time.Second,
		},
	}
}

// start opens and runs a client until the test ends; stop ends it earlier and gives the time that took.
func start(t testing.TB, c *Client) (stop func() time.Duration) {
	t.Helper()
	require.NoError(t, c.Open())
	return begin(t, c)
}

// begin runs a client that is open, as start does.
func begin(t testing.TB, c *Client) (stop func() time.Duration) {
	t.Helper()
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
	require.Eventually(t, func() bool { return c.Connection().Connected }, mqtttest.Patience, 5*time.Millisecond)
}

// balanced fails the test when an account does not add up.
func balanced(t testing.TB, c *Client) Accounting {
	t.Helper()
	a := c.Accounting()
	for _, account := range []ledger.Account{a.Detections, a.State, a.Events} {
		require.Equal(t, account.Offered, account.Delivered+account.Superseded+account.Dropped+account.Queued, "%+v", a)
		require.True(t, account.Superseded == 0 || account == a.State, "%+v", a)
	}
	return a
}
