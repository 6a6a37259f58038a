package mqtt

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	paho "github.com/eclipse/paho.mqtt.golang"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// rawClient speaks just enough MQTT for the floor of BenchmarkEndToEnd: one write for a message.
type rawClient struct {
	conn net.Conn
	buf  []byte
}

func dialRaw(t testing.TB, address, id string) *rawClient {
	t.Helper()
	conn, err := net.Dial("tcp", address)
	require.NoError(t, err)
	t.Cleanup(func() { conn.Close() })
	body := append([]byte{0, 4, 'M', 'Q', 'T', 'T', 4, 2, 0, 0, 0, byte(len(id))}, id...)
	_, err = conn.Write(append([]byte{0x10, byte(len(body))}, body...))
	require.NoError(t, err)
	_, err = io.ReadFull(conn, make([]byte, 4))
	require.NoError(t, err)
	return &rawClient{conn: conn}
}

func (r *rawClient) publish(topic string, payload []byte) {
	r.buf = append(r.buf[:0], 0x30)
	r.buf = binary.AppendUvarint(r.buf, uint64(2+len(topic)+len(payload)))
	r.buf = binary.BigEndian.AppendUint16(r.buf, uint16(len(topic)))
	r.buf = append(r.buf, topic...)
	r.buf = append(r.buf, payload...)
	r.conn.Write(r.buf)
}

// receive subscribes to everything and calls each with every payload and when it came.
func (r *rawClient) receive(t testing.TB, filter string, each func([]byte, time.Time)) {
	t.Helper()
	body := append([]byte{0, 1, 0, byte(len(filter))}, filter...)
	_, err := r.conn.Write(append([]byte{0x82, byte(len(body) + 1)}, append(body, 0)...))
	require.NoError(t, err)
	_, err = io.ReadFull(r.conn, make([]byte, 5))
	require.NoError(t, err)
	go func() {
		in := bufio.NewReader(r.conn)
		for {
			header, err := in.ReadByte()
			if err != nil {
				return
			}
			size, err := binary.ReadUvarint(in)
			if err != nil {
				return
			}
			packet := make([]byte, size)
			if _, err := io.ReadFull(in, packet); err != nil {
				return
			}
			if header>>4 == 3 {
				each(packet[2+binary.BigEndian.Uint16(packet):], time.Now())
			}
		}
	}()
}

// BenchmarkEndToEnd compares the time from hand-off to a subscriber, at 1000 messages a second, with that of a hand-written client that
// does one write in the caller and of plain paho, in turns in the same run.
func BenchmarkEndToEnd(b *testing.B) {
	broker := startBroker(b, "")
	var mu sync.Mutex
	arrived := map[uint64]time.Time{}
	dialRaw(b, broker.Addr(), "sub").receive(b, "edge-infer/#", func(payload []byte, at time.Time) {
		_, rest, found := bytes.Cut(payload, []byte(`"seq":`))
		if !found {
			return
		}
		number, _, _ := bytes.Cut(rest, []byte(","))
		sequence, _ := strconv.ParseUint(string(number), 10, 64)
		mu.Lock()
		arrived[sequence] = at
		mu.Unlock()
	})
	ours := testClient(broker.URL())
	start(b, ours)
	waitConnected(b, ours)
	hand := dialRaw(b, broker.Addr(), "hand")
	plain := paho.NewClient(paho.NewClientOptions().AddBroker(broker.URL()).SetClientID("plain"))
	require.True(b, plain.Connect().WaitTimeout(mqtttest.Patience))
	defer plain.Disconnect(10)
	topic := ours.Topics().Detections("cam0")
	var buf []byte
	ways := []struct {
		name    string
		publish func(*payload.Detections)
		took    []time.Duration
		called  []time.Duration
	}{
		{name: "ours", publish: func(d *payload.Detections) { buf = d.AppendJSON(buf[:0], "gate"); ours.Detections(d.Camera, buf) }},
		{name: "hand", publish: func(d *payload.Detections) { buf = d.AppendJSON(buf[:0], "gate"); hand.publish(topic, buf) }},
		{name: "paho", publish: func(d *payload.Detections) { plain.Publish(topic, 0, false, d.AppendJSON(nil, "gate")) }},
	}
	d := frame("cam0", 0)
	for range 9 {
		d.Objects = append(d.Objects, d.Objects[0])
	}
	round := func(way int) {
		const messages = 300
		w := &ways[way]
		sent := map[uint64]time.Time{}
		begin := time.Now()
		for i := range messages {
			time.Sleep(time.Until(begin.Add(time.Duration(i) * time.Millisecond)))
			d.Sequence++
			now := time.Now()
			w.publish(d)
			w.called = append(w.called, time.Since(now))
			sent[d.Sequence] = now
		}
		time.Sleep(50 * time.Millisecond)
		mu.Lock()
		defer mu.Unlock()
		for sequence, at := range sent {
			if got, ok := arrived[sequence]; ok {
				w.took = append(w.took, got.Sub(at))
			}
		}
		clear(arrived)
	}
	for b.Loop() {
		for _, way := range []int{0, 1, 2, 2, 1, 0} {
			round(way)
		}
	}
	p := func(list []time.Duration, percent int) float64 {
		slices.Sort(list)
		return float64(list[len(list)*percent/100]) / 1000
	}
	for _, w := range ways {
		b.ReportMetric(p(w.took, 50), w.name+"_p50_us")
		b.ReportMetric(p(w.took, 99), w.name+"_p99_us")
		b.ReportMetric(p(w.called, 50), w.name+"_call_p50_us")
		b.ReportMetric(p(w.called, 99), w.name+"_call_p99_us")
	}
	b.ReportMetric(p(ways[0].took, 50)/p(ways[1].took, 50), "ours/hand")
	b.ReportMetric(p(ways[2].took, 50)/p(ways[1].took, 50), "paho/hand")
	b.ReportMetric(0, "ns/op")
}
