package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mochi-mqtt/server/v2/packets"
)

// mqtt5 is that of MQTT 5.
const mqtt5 = 5

// qos1 has every message and subscription answered.
const qos1 = 1

// maxAnswer bounds a packet that is read: the answers have some bytes, a message that comes in beside them may be larger and ends the look.
const maxAnswer = 1 << 16

var errMalformedPacket = errors.New("malformed packet")

// newMQTT5Packet is a packet of that type, still empty.
func newMQTT5Packet(kind byte) *packets.Packet {
	return &packets.Packet{ProtocolVersion: mqtt5, FixedHeader: packets.FixedHeader{Type: kind}}
}

// send writes what encode, a method of the packet's, makes of it.
func (c *permissionCheck) send(encode func(*bytes.Buffer) error) error {
	var packet bytes.Buffer
	if err := encode(&packet); err != nil {
		return err
	}
	_, err := c.conn.Write(packet.Bytes())
	return err
}

// readMQTT5Packet reads one packet, and of the types that a client is answered with what is in it.
func readMQTT5Packet(r *bufio.Reader) (*packets.Packet, error) {
	first, err := r.ReadByte()
	if err != nil {
		return nil, err
	}
	p := newMQTT5Packet(0)
	if err := p.FixedHeader.Decode(first); err != nil {
		return nil, err
	}
	size, _, err := packets.DecodeLength(r)
	if err != nil {
		return nil, err
	}
	if size > maxAnswer {
		return nil, errMalformedPacket
	}
	p.FixedHeader.Remaining = size
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return nil, err
	}
	decode := map[byte]func([]byte) error{
		packets.Connack: p.ConnackDecode, packets.Suback: p.SubackDecode, packets.Puback: p.PubackDecode, packets.Publish: p.PublishDecode,
	}[p.FixedHeader.Type]
	if decode == nil {
		return p, nil
	}
	return p, decode(body)
}
