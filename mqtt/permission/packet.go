package permission

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
)

// Types of MQTT packets, in the upper half of their first byte.
const (
	connect    = 0x10
	connack    = 0x20
	publish    = 0x30
	puback     = 0x40
	subscribe  = 0x82 // with the flags that it must have
	suback     = 0x90
	disconnect = 0xE0
)

// qos1 is a message's flag, and a subscription's option.
const qos1 = 1

// largest bounds a packet that is read: the answers have some bytes, a message that comes in beside them may be larger and ends the look.
const largest = 1 << 16

var errMalformed = errors.New("malformed packet")

// readPacket reads one packet: its first byte, and what stands behind its length.
func readPacket(r *bufio.Reader) (kind byte, body []byte, err error) {
	if kind, err = r.ReadByte(); err != nil {
		return 0, nil, err
	}
	size, err := binary.ReadUvarint(r) // MQTT's lengths are those of at most four bytes
	if err != nil {
		return 0, nil, err
	}
	if size > largest {
		return 0, nil, errMalformed
	}
	body = make([]byte, size)
	_, err = io.ReadFull(r, body)
	return kind, body, err
}

// newPacket puts the first byte and the length before a body.
func newPacket(kind byte, body []byte) []byte {
	return append(binary.AppendUvarint([]byte{kind}, uint64(len(body))), body...)
}

// appendText appends a text with its length, which has 16 bits.
func appendText(to []byte, text string) []byte {
	to = binary.BigEndian.AppendUint16(to, uint16(len(text)))
	return append(to, text...)
}

// afterProperties leaves out the properties that body begins with.
func afterProperties(body []byte) ([]byte, error) {
	size, n := binary.Uvarint(body)
	if n <= 0 || size > uint64(len(body)-n) {
		return nil, errMalformed
	}
	return body[n+int(size):], nil
}

// cutNumber takes a 16-bit number off body.
func cutNumber(body []byte) (number uint16, rest []byte, err error) {
	if len(body) < 2 {
		return 0, nil, errMalformed
	}
	return binary.BigEndian.Uint16(body), body[2:], nil
}
