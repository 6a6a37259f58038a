package broker

import (
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func TestPace(t *testing.T) {
	p := newPace(1000, nil)
	now := time.Unix(1_700_000_000, 0)
	step := func(after time.Duration, host string, bytes int64, want time.Duration) {
		t.Helper()
		now = now.Add(after)
		assert.Equal(t, want, p.reserve(host, bytes, now))
	}
	step(0, "a", 50, -paceBurst)             // all of the rate is its share
	step(0, "a", 1000, -50*time.Millisecond) // within the burst; the next one pays for it
	step(0, "a", 1000, 950*time.Millisecond) // after 1050 bytes
	step(0, "b", 500, -paceBurst)            // another address does not wait for the first
	step(0, "b", 500, 900*time.Millisecond)  // and has half of the rate
	step(time.Second, "b", 1, 900*time.Millisecond)
	step(0, "a", 1, 950*time.Millisecond)
	step(time.Hour, "c", 1000, -paceBurst)
	assert.Len(t, p.next, 1, "addresses without a debt are forgotten")
	step(0, "c", 1, 900*time.Millisecond)
	step(time.Hour, "d", 1_000_000, -paceBurst)
	step(0, "d", 1_000_000, 9900*time.Millisecond) // a message costs at most ten seconds
	step(0, "d", 1_000_000, 19900*time.Millisecond)
	step(0, "d", 1, 19900*time.Millisecond) // the one before was refused and costs nothing
	assert.EqualValues(t, 8, p.waits())
}

// dialFrom connects from an address of this machine and sends.
func dialFrom(t testing.TB, b *Broker, from string, data []byte) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.Dial("tcp", b.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write(data)
	require.NoError(t, err)
	return conn
}

// owe makes addresses exceed their shares by an hour.
func owe(p *pace, hosts ...string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, host := range hosts {
		p.next[host] = time.Now().Add(time.Hour)
	}
}

// TestWhoExceedsItsShareWaits: an address that publishes too much does not delay others, nor the clients of this process.
func TestWhoExceedsItsShareWaits(t *testing.T) {
	log := &mqtttest.Journal{}
	b := open(t, &Broker{Logger: log.Logger()})
	b.Trust("daemon")
	daemon := paho.NewClient(paho.NewClientOptions().AddBroker(b.URL()).SetClientID("daemon"))
	require.True(t, daemon.Connect().WaitTimeout(mqtttest.Patience))
	defer daemon.Disconnect(10)
	arrived := make(chan string, 1000)
	require.True(t, daemon.Subscribe("events/#", 1, func(_ paho.Client,
		m paho.Message,
	) {
		arrived <- m.Topic()
	}).WaitTimeout(mqtttest.Patience))

	message := packet(typePublish<<4, append(binary.BigEndian.AppendUint16(nil, 5), "noisex"...))
	conn := dialFrom(t, b, "127.0.0.2", login(4, "flood"))
	accepted(t, conn, false)
	owe(b.pace, "127.0.0.1", "127.0.0.2")
	_, err := conn.Write(message)
	require.NoError(t, err)
	drain(t, conn)
	drain(t, dialFrom(t, b, "127.0.0.1", login(4, "flood")))
	accepted(t, dialFrom(t, b, "127.0.0.3", login(4, "quiet")), false)
	assert.Contains(t, log.String(), "its address causes more work than its share")

	for i := range 100 {
		topic := fmt.Sprint("events/", i)
		require.True(t, daemon.Publish(topic, 1, false, make([]byte, 1000)).WaitTimeout(mqtttest.Patience))
		select {
		case got := <-arrived:
			require.Equal(t, topic, got)
		case <-time.After(mqtttest.Patience):
			require.Fail(t, "the daemon's message waits")
		}
	}
	assert.EqualValues(t, 2, b.Stats().Delayed)
}

// TestPingsAreCounted: packets that are no messages take processor time as well.
func TestPingsAreCounted(t *testing.T) {
	b := open(t, &Broker{})
	conn := dialFrom(t, b, "127.0.0.2", login(4, "ping"))
	accepted(t, conn, false)
	owe(b.listener.packets, "127.0.0.2")
	for range 2 * packetsPerWait {
		_, _ = conn.Write([]byte{0xc0, 0}) // the broker may have closed the connection
	}
	assert.Less(t, len(drain(t, conn)), 2*2*packetsPerWait)
	assert.EqualValues(t, 1, b.Stats().Delayed)
	serves(t, b)
}

// TestAnAddressWithManyConnectionsLeavesRoom: clients that have logged in keep out those of their own address only.
func TestAnAddressWithManyConnectionsLeavesRoom(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Connections: 20}})
	var greedy []net.Conn
	for i := range 19 {
		conn := dialFrom(t, b, "127.0.0.2", login(4, fmt.Sprint("greedy", i)))
		accepted(t, conn, false)
		greedy = append(greedy, conn)
	}
	accepted(t, dial(t, b, login(4, "owner")), false)
	drain(t, dialFrom(t, b, "127.0.0.2", nil)) // it has more than its share already
	accepted(t, dial(t, b, login(4, "owner's telephone")), false)
	drain(t, greedy[18])
	_, err := greedy[17].Write([]byte{0xc0, 0})
	require.NoError(t, err)
	_, err = io.ReadFull(greedy[17], make([]byte, 2))
	require.NoError(t, err)
}

// between is a connection with addresses.
type between struct {
	net.Conn
	local, remote string
}

func (b *between) LocalAddr() net.Addr  { return address(b.local) }
func (b *between) RemoteAddr() net.Addr { return address(b.remote) }

type address string

func (address) Network() string  { return "tcp" }
func (a address) String() string { return string(a) }

// TestOwnClients: the identifier of the daemon is of no use on another machine.
func TestOwnClients(t *testing.T) {
	b := &Broker{}
	p := &policy{own: &b.own}
	own := &between{local: "127.0.0.1:1883", remote: "127.0.0.1:4000"}
	assert.False(t, p.trusts("daemon", own), "none is known")
	b.Trust("daemon", "daemon-frigate")
	for _, c := range []struct {
		id   string
		conn *between
		want bool
	}{
		{"daemon", own, true},
		{"daemon-frigate", own, true},
		{"owner", own, false},
		{"daemon", &between{local: "192.168.1.5:1883", remote: "192.168.1.5:4000"}, true},
		{"daemon", &between{local: "[::1]:1883", remote: "[::1]:4000"}, true},
		{"daemon", &between{local: "192.168.1.5:1883", remote: "192.168.1.6:4000"}, false},
	} {
		assert.Equal(t, c.want, p.trusts(c.id, c.conn), "%s %+v", c.id, c.conn)
	}
}
