package mqtt

import (
	"bufio"
	"bytes"
	"errors"
	"io"

	"github.com/mochi-mqtt/server/v2/packets"
)

// mqtt5 is the protocol version of MQTT 5.
const mqtt5 = 5

// qos1 makes the broker acknowledge messages.
const qos1 = 1

// maxAnswer is the size in bytes of the largest packet that is read; a larger message ends the check.
const maxAnswer = 1 << 16

var errMalformedPacket = errors.New("malformed packet")

// newMQTT5Packet returns an empty packet of a type.
func newMQTT5Packet(kind byte) *packets.Packet {
	return &packets.Packet{ProtocolVersion: mqtt5, FixedHeader: packets.FixedHeader{Type: kind}}
}

// send writes a packet with its encode method.
func (c *permissionCheck) send(encode func(*bytes.Buffer) error) error {
	var packet bytes.Buffer
	if err := encode(&packet); err != nil {
		return err
	}
	_, err := c.conn.Write(packet.Bytes())
	return err
}

// readMQTT5Packet reads one packet and decodes the body of acknowledgements and messages.
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
