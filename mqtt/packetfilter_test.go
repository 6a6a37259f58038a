package mqtt

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

func packet(kind byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{kind << 4}, uint64(len(body))), body...)
}

func TestSieve(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 1))
	for range 60 {
		var in, want []byte
		var sizes, skipped []int
		for range random.IntN(20) {
			kind, body := byte(1+random.IntN(14)), make([]byte, random.IntN(400))
			if random.IntN(10) == 0 {
				body = make([]byte, 20_000+random.IntN(10_000))
			}
			p := packet(kind, body)
			in = append(in, p...)
			if kind == 3 && len(body) > 200 {
				sizes = append(sizes, len(body))
			} else {
				want = append(want, p...)
			}
		}
		for _, reader := range []io.Reader{bytes.NewReader(in), iotest.OneByteReader(bytes.NewReader(in)), iotest.DataErrReader(bytes.NewReader(in))} {
			skipped = nil
			got, err := io.ReadAll(iotest.HalfReader(newPacketFilter(reader, 200, func(n int) { skipped = append(skipped, n) })))
			require.NoError(t, err)
			require.True(t, bytes.Equal(want, got))
			require.Equal(t, sizes, skipped)
		}
	}
	for _, bad := range []struct {
		in   []byte
		want error
	}{
		{[]byte{0x30, 0xff, 0xff, 0xff, 0xff, 0x01}, errPacketLength},
		{[]byte{0x30, 0xff}, io.ErrUnexpectedEOF},
		{[]byte{0x30}, io.ErrUnexpectedEOF},
	} {
		_, err := io.ReadAll(newPacketFilter(bytes.NewReader(bad.in), 10, func(int) {}))
		assert.ErrorIs(t, err, bad.want)
	}
}

func FuzzPacketFilter(f *testing.F) {
	f.Add(packet(3, make([]byte, 300)), 100)
	f.Add(append(packet(2, []byte{0, 0}), packet(3, []byte("abc"))...), 1)
	f.Add([]byte{0x30, 0xff, 0xff, 0xff, 0x7f, 0}, 5)
	f.Add(packet(3, []byte("abc")), 1<<28)
	f.Fuzz(func(t *testing.T, data []byte, largest int) {
		got, err := io.ReadAll(newPacketFilter(bytes.NewReader(data), largest, func(n int) { require.Greater(t, n, largest) }))
		require.LessOrEqual(t, len(got), len(data))
		if err == nil && largest >= 1<<28 { // no packet is longer
			require.True(t, bytes.Equal(data, got))
		}
	})
}

func TestHugeMessageIsIgnored(t *testing.T) {
	broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: mqtttest.Discard(), Limits: embedded.Limits{Packet: 16 << 20}}
	require.NoError(t, broker.Open())
	defer broker.Close()
	sub := mqtttest.Subscribe(t, broker.URL(), "edge-infer/gate/cam0/+/state")
	huge := make([]byte, 8<<20)
	sub.Client.Publish("edge-infer/gate/cam0/detect/set", 1, true, huge).WaitTimeout(mqtttest.Patience)
	log := &mqtttest.Journal{}
	r := &recorder{}
	c := testClient(broker.URL())
	c.Controller, c.Logger = r, log.Logger()
	start(t, c)
	c.Settings("cam0", Settings{Detect: true, Threshold: 0.25, Interval: 1})
	sub.WaitLast(t, "edge-infer/gate/cam0/interval/state", "1")
	sub.Client.Publish("edge-infer/gate/cam0/labels/set", 1, false, huge).WaitTimeout(mqtttest.Patience)
	require.Eventually(t, func() bool {
		sub.Client.Publish("edge-infer/gate/cam0/interval/set", 1, false, "3").WaitTimeout(mqtttest.Patience)
		return sub.Last("edge-infer/gate/cam0/interval/state") == "3"
	}, mqtttest.Patience, 20*time.Millisecond)
	assert.True(t, c.Connection().Connected)
	assert.Contains(t, log.String(), "bytes are too large for a command")
	for _, call := range r.all() {
		assert.Equal(t, "interval cam0 3", call)
	}
}
