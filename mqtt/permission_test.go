package mqtt

import (
	"bufio"
	"bytes"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// TestWhatMosquittoAllows asks the real broker under several lists of access rights.
func TestWhatMosquittoAllows(t *testing.T) {
	const set, birth = "edge-infer/gate/+/set", "homeassistant/status"
	for name, c := range map[string]struct {
		rights  string
		refused []string
	}{
		"all":     {"topic readwrite #\n", nil},
		"writing": {"topic write edge-infer/gate/#\n", []string{"it grants " + set + ", and passes on nothing under it"}},
		"states alone": {
			"topic write edge-infer/gate/error\ntopic read edge-infer/gate/+/set\n", nil, // what cannot be sent says nothing of what comes
		},
		"reading": {"topic read #\n", []string{"it refuses messages to edge-infer/gate/error"}},
		"nothing": {"topic read none\n", []string{"it refuses messages to edge-infer/gate/error"}},
	} {
		t.Run(name, func(t *testing.T) {
			rights := filepath.Join(t.TempDir(), "acl")
			require.NoError(t, os.WriteFile(rights, []byte(c.rights), 0o644))
			broker := mqtttest.StartMosquitto(t, "allow_anonymous true", "acl_file "+rights)
			conn, err := net.Dial("tcp", broker.Address)
			require.NoError(t, err)
			defer conn.Close()
			question := permissionQuery{
				ClientID: "gate-login", Filters: []string{set, birth}, Publish: "edge-infer/gate/error", Echo: "edge-infer/gate/doctor/set",
				EchoTimeout: mqtttest.Patience,
			}
			if name == "writing" { // nothing will come
				question.EchoTimeout = 2 * time.Second
			}
			refused, err := question.run(conn, 2*mqtttest.Patience)
			require.NoError(t, err)
			require.Equal(t, c.refused, refused)
		})
	}
}

// answers is a broker that has said everything in advance.
func answers(t testing.TB, packets ...[]byte) net.Conn {
	conn, broker := net.Pipe()
	t.Cleanup(func() { conn.Close(); broker.Close() })
	go func() {
		for _, packet := range packets {
			if _, err := broker.Write(packet); err != nil {
				return
			}
		}
		broker.Close()
	}()
	go func() { // what it is asked
		buffer := make([]byte, 1024)
		for {
			if _, err := broker.Read(buffer); err != nil {
				return
			}
		}
	}()
	return conn
}

// First bytes of packets.
const (
	connack    = packets.Connack << 4
	publish    = packets.Publish << 4
	puback     = packets.Puback << 4
	suback     = packets.Suback << 4
	disconnect = packets.Disconnect << 4
)

func TestAnswers(t *testing.T) {
	in := []byte{connack, 3, 0, 0, 0}
	question := permissionQuery{Filters: []string{"a", "b"}, Publish: "c"}
	for name, c := range map[string]struct {
		packets [][]byte
		refused []string
		err     string
	}{
		"subscriptions that are refused": {
			[][]byte{in, {suback, 5, 0, 1, 0, 1, 0x87}, {puback, 2, 0, 1}}, []string{"it refuses the subscription to b"}, "",
		},
		"both refused": {
			[][]byte{in, {suback, 5, 0, 1, 0, 0x80, 0x87}, {puback, 4, 0, 1, 0x87, 0}},
			[]string{"it refuses the subscription to a", "it refuses the subscription to b", "it refuses messages to c"},
			"",
		},
		"MQTT 3.1.1":           {[][]byte{{connack, 2, 0, 1}}, nil, "the broker does not speak MQTT 5"},
		"a refused login":      {[][]byte{{connack, 3, 0, 0x87, 0}}, nil, "the broker does not speak MQTT 5"},
		"too few reasons":      {[][]byte{in, {suback, 4, 0, 1, 0, 1}}, nil, "malformed packet"},
		"properties too long":  {[][]byte{in, {suback, 4, 0, 1, 9, 1}}, nil, "malformed packet"},
		"an ended connection":  {[][]byte{in, {disconnect, 1, 0x87}}, nil, "the broker ends the connection"},
		"a packet without end": {[][]byte{in, {suback, 0xFF, 0xFF, 0xFF, 0x7F}}, nil, "malformed packet"},
	} {
		t.Run(name, func(t *testing.T) {
			refused, err := question.run(answers(t, c.packets...), mqtttest.Patience)
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.refused, refused)
		})
	}
}

func FuzzPackets(f *testing.F) {
	f.Add([]byte{connack, 3, 0, 0, 0, suback, 5, 0, 1, 0, 1, 0x87, puback, 2, 0, 1})
	f.Add([]byte{publish, 4, 0, 1, 'a', 0})
	f.Fuzz(func(t *testing.T, data []byte) {
		reader := bufio.NewReader(bytes.NewReader(data))
		for {
			p, err := readMQTT5Packet(reader)
			if err != nil {
				return
			}
			require.LessOrEqual(t, p.FixedHeader.Remaining, maxAnswer)
		}
	})
}
