package broker

import (
	"bytes"
	"net"
	"testing"
	"time"

	mochi "github.com/mochi-mqtt/server/v2"
	"github.com/mochi-mqtt/server/v2/packets"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// decode has the library read a packet's body.
func decode(header byte, body []byte, version byte) error {
	pk := packets.Packet{ProtocolVersion: version}
	if err := pk.FixedHeader.Decode(header); err != nil {
		return err
	}
	pk.FixedHeader.Remaining = len(body)
	switch header >> 4 {
	case typeConnect:
		return pk.ConnectDecode(body)
	case typePublish:
		return pk.PublishDecode(body)
	case typePuback:
		return pk.PubackDecode(body)
	case typePubrec:
		return pk.PubrecDecode(body)
	case typePubrel:
		return pk.PubrelDecode(body)
	case typePubcomp:
		return pk.PubcompDecode(body)
	case typeSubscribe:
		return pk.SubscribeDecode(body)
	case typeUnsubscribe:
		return pk.UnsubscribeDecode(body)
	case typeDisconnect:
		return pk.DisconnectDecode(body)
	case typeAuth:
		return pk.AuthDecode(body)
	}
	return nil
}

// libraryPackets are the library's own examples of good packets.
func libraryPackets(f *testing.F) {
	for _, cases := range packets.TPacketData {
		for _, c := range cases {
			f.Add(c.RawBytes)
		}
	}
}

// FuzzCheck makes sure that what passes the check does not upset the library's decoder, and that the check bears anything.
func FuzzCheck(f *testing.F) {
	f.Add([]byte{0x82, 4, 0, 1, 0, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) < 2 {
			return
		}
		header, version, body := data[0], data[1]%6, data[2:]
		if check(header, body, version) != nil {
			return
		}
		if header>>4 == typeConnect {
			connectVersion(body)
		}
		_ = decode(header, append([]byte{}, body...), version) // it may refuse more than the check does
	})
}

// TestTheCheckTakesWhatTheLibraryTakes runs it over the library's examples.
func TestTheCheckTakesWhatTheLibraryTakes(t *testing.T) {
	fromClients := []byte{
		typeConnect, typePublish, typePuback, typePubrec, typePubrel, typePubcomp, typeSubscribe, typeUnsubscribe, typePingreq, typeDisconnect,
		typeAuth,
	}
	taken := 0
	for kind, cases := range packets.TPacketData {
		for _, c := range cases {
			raw := c.RawBytes
			if c.Group != "" || c.Expect != nil || c.FailFirst != nil || len(raw) < 2 || !bytes.Contains(fromClients, []byte{kind}) {
				continue
			}
			at := 1
			for raw[at] >= 0x80 {
				at++
			}
			body := raw[at+1:]
			version := byte(4)
			if c.Packet != nil && c.Packet.ProtocolVersion != 0 {
				version = c.Packet.ProtocolVersion
			}
			if decode(raw[0], append([]byte{}, body...), version) != nil {
				continue
			}
			require.NoError(t, check(raw[0], body, version), "%s %x", c.Desc, raw)
			taken++
		}
	}
	require.Greater(t, taken, 30)
}

// arena is a broker without a socket, to fuzz.
type arena struct{ *Broker }

func newArena(t testing.TB) arena {
	b := &Broker{Logger: mqtttest.Discard(), Limits: Limits{Login: time.Minute, Write: time.Minute, Packet: 1 << 16, RetainedBytes: 1 << 20}}
	b.Limits.setDefaults()
	require.NoError(t, b.assemble(""))
	return arena{b}
}

// client runs a connection that the test has the other end of; done is closed when the broker is through with it.
func (a arena) client() (conn net.Conn, done chan struct{}) {
	near, far := net.Pipe()
	done = make(chan struct{})
	go func() {
		defer close(done)
		defer far.Close()
		_ = a.server.EstablishConnection("mqtt", newGuard(far, a.listener)) // no recover: a panic ends the fuzzing
	}()
	return near, done
}

// send writes all of data, reads what comes meanwhile, and returns when the broker has dealt with it.
func send(conn net.Conn, done chan struct{}, data []byte) {
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		buf := make([]byte, 4096)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
		}
	}()
	_, _ = conn.Write(data) // the broker may end it before
	_ = conn.Close()
	for _, end := range []chan struct{}{drained, done} {
		select {
		case <-end:
		case <-time.After(mqtttest.Patience):
			panic("the broker hangs") // with all stacks
		}
	}
}

// FuzzBytes sends anything behind a CONNECT of each protocol level.
func FuzzBytes(f *testing.F) {
	libraryPackets(f)
	f.Add([]byte{0x82, 6, 0, 1, 0, 0, 1, 'a'})
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newArena(t)
		for _, start := range [][]byte{nil, login(3, "a"), login(4, "b"), login(5, "c")} {
			conn, done := a.client()
			send(conn, done, append(start, data...))
		}
	})
}

// FuzzPackets builds well-formed packets of the bytes and sends them beside clients that have subscribed to everything, so that what one
// client asks for is also written to others.
func FuzzPackets(f *testing.F) {
	f.Add([]byte{5, 0, 3, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 3, 3, 3, 8, 2, 1, 0, 14, 0})
	f.Add([]byte("\x04the quick brown fox jumps over the lazy dog"))
	f.Fuzz(func(t *testing.T, data []byte) {
		a := newArena(t)
		type client struct {
			conn net.Conn
			done chan struct{}
		}
		var watching []client
		for i, level := range []byte{4, 5} {
			var c client
			c.conn, c.done = a.client()
			watching = append(watching, c)
			subscribe := []byte{0x82, 6, 0, 1, 0, 1, '#', 1}
			if level == 5 {
				subscribe = []byte{0x82, 7, 0, 1, 0, 0, 1, '#', 2}
			}
			_, err := c.conn.Write(login(level, string(rune('m'+i))))
			require.NoError(t, err)
			got := make([]byte, 512)
			_, err = c.conn.Read(got)
			require.NoError(t, err)
			_, err = c.conn.Write(subscribe)
			require.NoError(t, err)
			_, err = c.conn.Read(got)
			require.NoError(t, err)
			go func() { // reads on and acknowledges nothing
				buf := make([]byte, 4096)
				for {
					if _, err := c.conn.Read(buf); err != nil {
						return
					}
				}
			}()
		}
		conn, done := a.client()
		send(conn, done, program(data))
		for _, c := range watching {
			c.conn.Close()
			<-c.done
		}
	})
}

// source gives bytes until it is empty, then zeros.
type source struct{ data []byte }

func (s *source) byte() byte {
	if len(s.data) == 0 {
		return 0
	}
	b := s.data[0]
	s.data = s.data[1:]
	return b
}

func (s *source) text() []byte {
	n := min(int(s.byte()%24), len(s.data))
	text := s.data[:n]
	s.data = s.data[n:]
	return append([]byte{0, byte(n)}, text...)
}

func (s *source) topic() []byte {
	names := []string{"a", "a/b", "#", "+/b", "$share/g/a", "$SYS/x", "", "a/+/#"}
	if name := names[s.byte()%8]; s.byte() < 200 {
		return append([]byte{0, byte(len(name))}, name...)
	}
	return s.text()
}

func (s *source) properties(version byte) []byte {
	if version != version5 {
		return nil
	}
	var all []byte
	for range s.byte() % 4 {
		id := s.byte()%0x2b + 1
		one := []byte{id}
		switch id {
		case 0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2a:
			one = append(one, s.byte())
		case 0x13, 0x21, 0x22, 0x23:
			one = append(one, s.byte(), s.byte())
		case 0x02, 0x11, 0x18, 0x27:
			one = append(one, s.byte(), s.byte(), s.byte(), s.byte())
		case 0x0b:
			one = append(one, s.byte()&0x7f)
		case 0x26:
			one = append(append(one, s.text()...), s.text()...)
		case 0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1a, 0x1c, 0x1f:
			one = append(one, s.text()...)
		default:
			continue
		}
		all = append(all, one...)
	}
	return append([]byte{byte(len(all)) & 0x7f}, all[:min(len(all), 0x7f)]...)
}

// program makes a CONNECT and packets behind it.
func program(data []byte) []byte {
	s := &source{data}
	version := 3 + s.byte()%3
	flags := s.byte() & 0x3e
	protocol := "\x00\x04MQTT"
	if version == 3 {
		protocol = "\x00\x06MQIsdp"
	}
	body := append([]byte(protocol), version, flags, 0, s.byte())
	body = append(append(body, s.properties(version)...), s.text()...)
	if flags&4 != 0 {
		body = append(append(append(body, s.properties(version)...), s.topic()...), s.text()...)
	}
	out := packet(typeConnect<<4, body)
	for len(s.data) > 0 {
		kind := s.byte() & 15
		id := []byte{0, s.byte()%4 + 1}
		switch kind {
		case typePublish, 0, 1, 2:
			flags := s.byte() & 15
			body := s.topic()
			if flags&6 != 0 {
				body = append(body, id...)
			}
			out = append(out, packet(typePublish<<4|flags, append(append(body, s.properties(version)...), s.text()...))...)
		case typePuback, typePubrec, typePubcomp, typePubrel:
			header := kind << 4
			if kind == typePubrel {
				header |= 2
			}
			if version == version5 && s.byte()&1 == 1 {
				id = append(append(id, s.byte()), s.properties(version)...)
			}
			out = append(out, packet(header, id)...)
		case typeSubscribe, typeUnsubscribe:
			body := append(id, s.properties(version)...)
			for range 1 + s.byte()%3 {
				body = append(body, s.topic()...)
				if kind == typeSubscribe {
					body = append(body, s.byte()&0x2f)
				}
			}
			out = append(out, packet(kind<<4|2, body)...)
		case typeDisconnect, typeAuth:
			body := []byte(nil)
			if version == version5 {
				body = append([]byte{s.byte()}, s.properties(version)...)
			}
			out = append(out, packet(kind<<4, body)...)
		default:
			out = append(out, packet(typePingreq<<4, nil)...)
		}
	}
	return out
}

func packet(header byte, body []byte) []byte {
	out := []byte{header}
	n := len(body)
	for n >= 0x80 {
		out = append(out, byte(n)|0x80)
		n >>= 7
	}
	return append(append(out, byte(n)), body...)
}

var _ mochi.Hook = (*policy)(nil)
