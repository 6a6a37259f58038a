package broker

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// bytesOf reads hexadecimal digits.
func bytesOf(t testing.TB, digits string) []byte {
	t.Helper()
	data, err := hex.DecodeString(strings.ReplaceAll(digits, " ", ""))
	require.NoError(t, err)
	return data
}

// dial connects and sends.
func dial(t testing.TB, b *Broker, data []byte) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	_, err = conn.Write(data)
	require.NoError(t, err)
	return conn
}

// drain reads what comes until the broker closes the connection.
func drain(t testing.TB, conn net.Conn) []byte {
	t.Helper()
	require.NoError(t, conn.SetReadDeadline(time.Now().Add(mqtttest.Patience)))
	data, err := io.ReadAll(conn)
	require.NotErrorIs(t, err, syscall.ETIMEDOUT)
	require.NotErrorIs(t, err, os.ErrDeadlineExceeded, "the broker keeps the connection")
	return data
}

// login is CONNECT without a user, by protocol level.
func login(level byte, id string) []byte {
	body := []byte{0, 4, 'M', 'Q', 'T', 'T', level, 2, 0, 60}
	if level == 5 {
		body = append(body, 0)
	}
	body = append(append(body, 0, byte(len(id))), id...)
	return append([]byte{0x10, byte(len(body))}, body...)
}

// serves fails the test when the broker does not take a message any more.
func serves(t testing.TB, b *Broker) {
	t.Helper()
	sub := mqtttest.Subscribe(t, b.URL(), "proof/#")
	sub.Client.Publish("proof/of", 1, false, "life").WaitTimeout(mqtttest.Patience)
	sub.WaitLast(t, "proof/of", "life")
}

func TestMalformedPacketsEndTheirConnectionOnly(t *testing.T) {
	log := &mqtttest.Journal{}
	b := open(t, &Broker{Logger: log.Logger()})
	for _, c := range []struct{ name, packets, want string }{
		// These 24 bytes end a process in which the library reads them itself.
		{"subscription without options", "100e00044d5154540502003c00000178 8206000100000161", "e00181"},
		{"a filter longer than its packet", "100e00044d5154540502003c00000178 820700010000ff6161", "e00181"},
		{"properties longer than their packet", "100e00044d5154540502003c00000178 8206000150000161", "e00181"},
		{"a property nobody knows", "100e00044d5154540502003c00000178 820800010201 00000161", "e00181"},
		{"packet identifier 0", "100e00044d5154540502003c00000178 820700000000016100", "e00181"},
		{"a server's packet", "100e00044d5154540502003c00000178 9003000100", "e00181"},
		{"quality of service 3", "100e00044d5154540502003c00000178 3606 0001610001 00", "e00181"},
		{"an endless length", "100e00044d5154540502003c00000178 30ffffffffff", "e00181"},
		{"reserved flags", "100e00044d5154540502003c00000178 8007000100000161 00", "e00181"},
		{"a second CONNECT", "100e00044d5154540502003c00000178 100e00044d5154540502003c00000178", "e00181"},
		{"no CONNECT at all", "c000", ""},
		{"a CONNECT that is cut", "100400044d51", ""},
		{"half a packet", "100e00044d", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			conn := dial(t, b, bytesOf(t, c.packets))
			if c.name == "half a packet" {
				require.NoError(t, conn.(*net.TCPConn).CloseWrite())
			}
			answer := drain(t, conn)
			if c.want != "" {
				assert.Equal(t, c.want, hex.EncodeToString(answer[len(answer)-3:]), "%x", answer)
			}
		})
	}
	serves(t, b)
	assert.Zero(t, b.Stats().Panics)
	assert.Equal(t, uint64(12), b.Stats().Refused)
	assert.Contains(t, log.String(), `msg="embedded broker refused a client"`)
	assert.Equal(t, 1, strings.Count(log.String(), "level=WARN"), "complaints do not fill the log")
}

// clumsy is a part of the library that fails.
type clumsy struct{ mochi.HookBase }

func (*clumsy) ID() string               { return "clumsy" }
func (*clumsy) Provides(event byte) bool { return event == mochi.OnPublished }
func (*clumsy) OnPublished(_ *mochi.Client, pk packets.Packet) {
	if pk.TopicName == "panic" {
		panic("index out of range")
	}
}

func TestAPanicEndsOneConnection(t *testing.T) {
	log := &mqtttest.Journal{}
	b := open(t, &Broker{Logger: log.Logger()})
	require.NoError(t, b.server.AddHook(&clumsy{}, nil))
	drain(t, dial(t, b, append(login(4, "unlucky"), "\x30\x08\x00\x05panicx"...)))
	require.Eventually(t, func() bool { return b.Stats().Panics == 1 && b.Stats().Connections == 0 }, mqtttest.Patience, time.Millisecond)
	_, known := b.server.Clients.Get("unlucky")
	assert.False(t, known)
	assert.Contains(t, log.String(), "embedded broker failed on a client, which is disconnected")
	serves(t, b)
}

func TestSizesAreBounded(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Login: time.Hour, Connect: 1000, Packet: 100_000, Inbound: 150_000}})
	// Announced, not sent: the library would allocate 256 MiB for each of them.
	drain(t, dial(t, b, []byte{0x10, 0xff, 0xff, 0xff, 0x7f}))
	drain(t, dial(t, b, append(login(4, "a"), 0x30, 0xff, 0xff, 0xff, 0x7f)))
	answer := drain(t, dial(t, b, append(login(5, "a"), 0x30, 0xff, 0xff, 0xff, 0x7f)))
	assert.Equal(t, "e00195", hex.EncodeToString(answer[len(answer)-3:]), "packet too large")
	drain(t, dial(t, b, append(login(4, "a"), 0x82, 0x80, 0x80, 0x05)))
	drain(t, dial(t, b, []byte{0x10, 0xe9, 0x07})) // 1001 bytes before any login
	assert.Equal(t, uint64(5), b.Stats().Refused)

	// Two that are being sent take up the room for large ones; the third is refused, a small one is not.
	half := append([]byte{0x30, 0xf0, 0xc6, 0x04, 0, 1, 'x'}, make([]byte, 70_000)...)
	first := dial(t, b, append(login(4, "first"), half...))
	require.Eventually(t, func() bool { return b.listener.inbound.Load() == 74_608 }, mqtttest.Patience, time.Millisecond)
	second := dial(t, b, append(login(4, "second"), half...))
	require.Eventually(t, func() bool { return b.listener.inbound.Load() == 2*74_608 }, mqtttest.Patience, time.Millisecond)
	drain(t, dial(t, b, append(login(4, "third"), half[:10]...)))
	serves(t, b)
	first.Close()
	second.Close()
	require.Eventually(t, func() bool { return b.listener.inbound.Load() == 0 }, mqtttest.Patience, time.Millisecond)

	sub := mqtttest.Subscribe(t, b.URL(), "large")
	sub.Client.Publish("large", 1, false, bytes.Repeat([]byte{'x'}, 99_000)).WaitTimeout(mqtttest.Patience)
	require.Eventually(t, func() bool { return len(sub.Last("large")) == 99_000 }, mqtttest.Patience, time.Millisecond)
}

func TestConnectionsAreBounded(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Login: time.Hour, Connections: 20, Unauthenticated: 8}})
	var silent []net.Conn
	for range 100 {
		silent = append(silent, dial(t, b, nil))
	}
	for _, conn := range silent[:92] {
		drain(t, conn) // the oldest are ended
	}
	require.Eventually(t, func() bool { return b.Stats().Connections == 8 }, mqtttest.Patience, time.Millisecond)
	serves(t, b)
	// Of those that have logged in none is ended for a newer one.
	var clients []net.Conn
	for i := range 20 {
		conn := dial(t, b, login(4, fmt.Sprint("client", i)))
		_, err := io.ReadFull(conn, make([]byte, 4))
		require.NoError(t, err)
		clients = append(clients, conn)
		if i == 10 {
			for _, conn := range silent[92:] {
				conn.Close()
			}
			require.Eventually(t, func() bool { return b.Stats().Connections <= 12 }, mqtttest.Patience, time.Millisecond)
		}
		if i == 18 {
			break // one of the twenty may still be the subscriber of before
		}
	}
	drain(t, dial(t, b, nil))
	drain(t, dial(t, b, nil))
	clients[0].Close()
	require.Eventually(t, func() bool { return b.Stats().Connections < 20 }, mqtttest.Patience, time.Millisecond)
	_, err := clients[5].Write([]byte{0xc0, 0})
	require.NoError(t, err)
	pong := make([]byte, 2)
	_, err = io.ReadFull(clients[5], pong)
	require.NoError(t, err)
	assert.Equal(t, []byte{0xd0, 0}, pong)
}

func TestSilenceBeforeTheLoginIsShort(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Login: 50 * time.Millisecond}})
	for _, start := range [][]byte{nil, {0x10}, login(4, "slow")[:9]} {
		drain(t, dial(t, b, start))
	}
	assert.Equal(t, uint64(3), b.Stats().Refused)
	patient := dial(t, b, login(4, "logged in"))
	_, err := io.ReadFull(patient, make([]byte, 4))
	require.NoError(t, err)
	time.Sleep(200 * time.Millisecond) // longer than the login may take
	_, err = patient.Write([]byte{0xc0, 0})
	require.NoError(t, err)
	_, err = io.ReadFull(patient, make([]byte, 2))
	assert.NoError(t, err)
}

// TestAClientThatDoesNotReadHoldsNobodyUp subscribes, stops reading, and has others publish more than the buffers between hold.
func TestAClientThatDoesNotReadHoldsNobodyUp(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Write: 100 * time.Millisecond}})
	deaf := dial(t, b, append(login(4, "deaf"), "\x82\x06\x00\x01\x00\x01#\x01"...))
	_, err := io.ReadFull(deaf, make([]byte, 9))
	require.NoError(t, err)
	sub := mqtttest.Subscribe(t, b.URL(), "last")
	payload := make([]byte, 1<<20)
	for range 30 {
		require.True(t, sub.Client.Publish("x", 1, false, payload).WaitTimeout(mqtttest.Patience))
	}
	sub.Client.Publish("last", 1, false, "here").WaitTimeout(mqtttest.Patience)
	sub.WaitLast(t, "last", "here")
	require.Eventually(t, func() bool { return b.Stats().Connections == 1 }, mqtttest.Patience, time.Millisecond)
}

func TestWhatIsRetainedIsBounded(t *testing.T) {
	for _, c := range []struct {
		name   string
		limits Limits
		want   int
	}{
		{"bytes", Limits{RetainedBytes: 10_000}, 9},
		{"messages", Limits{RetainedMessages: 12}, 12},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := open(t, &Broker{Limits: c.limits})
			sub := mqtttest.Subscribe(t, b.URL(), "r/#")
			publish := func(topic string, size int) {
				sub.Client.Publish(topic, 1, true, make([]byte, size)).WaitTimeout(mqtttest.Patience)
			}
			for i := range 20 {
				publish(fmt.Sprint("r/", i), 1000)
			}
			require.Eventually(t, func() bool { return len(sub.All()) == 20 }, mqtttest.Patience, time.Millisecond, "what is not kept is passed on")
			stats := b.Stats()
			assert.Equal(t, c.want, stats.RetainedMessages)
			assert.Equal(t, uint64(20-c.want), stats.NotRetained)
			assert.Equal(t, c.want, int(b.server.Topics.Retained.Len())-systemTopics(b))
			publish("r/0", 1001) // a known topic takes a new value
			publish("r/1", 0)    // and gives its room back
			publish("r/30", 900)
			require.Eventually(t, func() bool { return len(sub.All()) == 23 }, mqtttest.Patience, time.Millisecond)
			assert.Equal(t, c.want, b.Stats().RetainedMessages)
			var bytes int64
			for topic, pk := range b.server.Topics.Retained.GetAll() {
				if !strings.HasPrefix(topic, "$SYS") {
					bytes += int64(len(topic) + len(pk.Payload))
				}
			}
			assert.Equal(t, bytes, b.Stats().RetainedBytes)
		})
	}
}

// systemTopics counts what the library retains of its own.
func systemTopics(b *Broker) (n int) {
	for topic := range b.server.Topics.Retained.GetAll() {
		if strings.HasPrefix(topic, "$SYS") {
			n++
		}
	}
	return n
}

// TestWhatIsRetainedStays: the library would delete it a day later, or when a clock without a battery is set.
func TestWhatIsRetainedStays(t *testing.T) {
	b := open(t, &Broker{})
	assert.Zero(t, b.server.Options.Capabilities.MaximumMessageExpiryInterval)
}

func TestSubscriptionsAreBounded(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Subscriptions: 3}})
	conn := dial(t, b, append(login(4, "eager"), "\x82\x0e\x00\x01\x00\x01a\x00\x00\x01b\x00\x00\x01c\x00"...))
	_, err := conn.Write([]byte("\x82\x0a\x00\x02\x00\x01d\x00\x00\x01e\x00"))
	require.NoError(t, err)
	answer := make([]byte, 4+7+6)
	_, err = io.ReadFull(conn, answer)
	require.NoError(t, err)
	assert.Equal(t, "20020000 9005000100000090040002"+"8080", strings.Replace(hex.EncodeToString(answer), "20020000", "20020000 ", 1))
}

func TestSessionsAreBounded(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Sessions: 5}})
	for i := range 5 {
		packet := login(4, fmt.Sprint("s", i))
		packet[9] = 0 // the broker shall remember it
		conn := dial(t, b, packet)
		_, err := io.ReadFull(conn, make([]byte, 4))
		require.NoError(t, err)
		conn.Close()
	}
	require.Eventually(t, func() bool { return b.Stats().Connections == 0 }, mqtttest.Patience, time.Millisecond)
	newcomer := dial(t, b, login(4, "one more"))
	accepted(t, newcomer, false)
	assert.Equal(t, 5, b.Stats().Sessions)
	assert.EqualValues(t, 1, b.Stats().EvictedSessions)

	// A known client continues its session whatever others have left behind; while all are connected, a new one is refused.
	var known []string
	for id := range b.server.Clients.GetAll() {
		if id != "one more" {
			known = append(known, id)
		}
	}
	for _, id := range known {
		packet := login(4, id)
		packet[9] = 0
		accepted(t, dial(t, b, packet), true)
	}
	drain(t, dial(t, b, login(4, "too many")))
	assert.Equal(t, 5, b.Stats().Sessions)
}

// TestAFloodOfSessionsLeavesTheOthers: an address that leaves many sessions displaces its own, whichever are older.
func TestAFloodOfSessionsLeavesTheOthers(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Sessions: 20}})
	leave := func(from, id string) {
		t.Helper()
		dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
		conn, err := dialer.Dial("tcp", b.Addr())
		require.NoError(t, err)
		packet := login(4, id)
		packet[9] = 0
		_, err = conn.Write(packet)
		require.NoError(t, err)
		accepted(t, conn, false)
		require.NoError(t, conn.Close())
		require.Eventually(t, func() bool { return b.Stats().Connections == 0 }, mqtttest.Patience, time.Millisecond)
	}
	leave("127.0.0.2", "home assistant")
	for i := range 100 {
		leave("127.0.0.1", fmt.Sprint("flood", i))
	}
	assert.Equal(t, 20, b.Stats().Sessions)
	assert.EqualValues(t, 81, b.Stats().EvictedSessions)
	packet := login(4, "home assistant")
	packet[9] = 0
	accepted(t, dial(t, b, packet), true)
}

// accepted reads a CONNACK that accepts the client, which had a session or not.
func accepted(t testing.TB, conn net.Conn, session bool) {
	t.Helper()
	answer := make([]byte, 4)
	_, err := io.ReadFull(conn, answer)
	require.NoError(t, err)
	present := byte(0)
	if session {
		present = 1
	}
	require.Equal(t, []byte{0x20, 2, present, 0}, answer)
}

// TestAcceptingGoesOn takes all file descriptors that the process may have.
func TestAcceptingGoesOn(t *testing.T) {
	b := open(t, &Broker{Limits: Limits{Login: time.Hour}})
	var old syscall.Rlimit
	require.NoError(t, syscall.Getrlimit(syscall.RLIMIT_NOFILE, &old))
	t.Cleanup(func() { syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old) })
	var mine, silent []net.Conn
	for range 10 {
		silent = append(silent, dial(t, b, nil))
	}
	require.Eventually(t, func() bool { return b.Stats().Connections == 10 }, mqtttest.Patience, time.Millisecond)
	socket, err := syscall.Dup(0)
	require.NoError(t, err)
	require.NoError(t, syscall.Close(socket))
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &syscall.Rlimit{Cur: uint64(socket + 1), Max: old.Max}))
	// The last descriptor is the caller's end: the broker has none left to accept with, and ends who has been silent longest.
	conn, err := net.Dial("tcp", b.Addr())
	require.NoError(t, err)
	mine = append(mine, conn)
	drain(t, silent[0])
	require.Eventually(t, func() bool { return b.Stats().Refused >= 1 }, mqtttest.Patience, time.Millisecond)
	require.NoError(t, syscall.Setrlimit(syscall.RLIMIT_NOFILE, &old))
	for _, conn := range append(mine, silent...) {
		conn.Close()
	}
	serves(t, b)
}

func TestAnOpenAddressNeedsALogin(t *testing.T) {
	authority := mqtttest.NewAuthority(t)
	files := authority.Issue(t, "server", time.Now().Add(time.Hour))
	for _, c := range []struct {
		broker *Broker
		want   string
	}{
		{&Broker{Address: "0.0.0.0:0"}, "open embedded broker: other machines reach 0.0.0.0:0: " +
			"set a user and a password, or the authority of client certificates, or listen on 127.0.0.1"},
		{&Broker{Address: ":0"}, "open embedded broker: other machines reach :0: " +
			"set a user and a password, or the authority of client certificates, or listen on 127.0.0.1"},
		{&Broker{Address: "[::]:0"}, "open embedded broker: other machines reach [::]:0: " +
			"set a user and a password, or the authority of client certificates, or listen on 127.0.0.1"},
		{&Broker{Address: "127.0.0.1:0", User: "edge"}, `open embedded broker: user "edge" has no password (set one, or leave out the user)`},
		{&Broker{Address: "nonsense"}, `open embedded broker: address "nonsense": address nonsense: missing port in address`},
		{&Broker{Address: "localhost:0"}, ""},
		{&Broker{Address: "127.0.0.2:0"}, ""},
		{&Broker{Address: "0.0.0.0:0", User: "edge", Password: "secret"}, ""},
		{&Broker{Address: "0.0.0.0:0", TLS: files}, ""},
	} {
		c.broker.Logger = mqtttest.Discard()
		err := c.broker.Open()
		if c.want == "" {
			assert.NoError(t, err, c.broker.Address)
		} else {
			assert.EqualError(t, err, c.want)
		}
		assert.NoError(t, c.broker.Close())
	}
}

func TestEveryProtocolLevelWorks(t *testing.T) {
	b := open(t, &Broker{})
	for _, level := range []uint{3, 4} {
		options := paho.NewClientOptions().AddBroker(b.URL()).SetClientID(fmt.Sprint("level", level)).SetProtocolVersion(level)
		options.SetWill("will", strings.Repeat("w", 1000), 1, true)
		client := paho.NewClient(options)
		token := client.Connect()
		require.True(t, token.WaitTimeout(mqtttest.Patience))
		require.NoError(t, token.Error())
		for qos := range byte(3) {
			token := client.Publish("topic", qos, false, "payload")
			require.True(t, token.WaitTimeout(mqtttest.Patience))
			require.NoError(t, token.Error())
		}
		token = client.Unsubscribe("a", "b/#")
		require.True(t, token.WaitTimeout(mqtttest.Patience))
		require.NoError(t, token.Error())
		client.Disconnect(10)
	}
	// MQTT 5 with a property of each kind: a will with its own, a message with an alias, then the alias alone.
	connect := packet(typeConnect<<4,
		bytesOf(t, "00044d51545405 06 003c 08110000000a21000a 000165 0c 1800000001 26000161000162 000177 000178"))
	conn := dial(t, b, connect)
	head := make([]byte, 2)
	_, err := io.ReadFull(conn, head)
	require.NoError(t, err)
	require.Equal(t, byte(0x20), head[0])
	connack := make([]byte, head[1])
	_, err = io.ReadFull(conn, connack)
	require.NoError(t, err)
	require.Zero(t, connack[1], "%x", connack)
	sub := mqtttest.Subscribe(t, b.URL(), "a", "w")
	_, err = conn.Write(bytesOf(t, "3008 000161 03 230001 31  3007 0000 03 230001 32"))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return len(sub.Messages("a")) == 2 }, mqtttest.Patience, time.Millisecond)
	assert.Equal(t, []string{"1", "2"}, sub.Messages("a"))
}
