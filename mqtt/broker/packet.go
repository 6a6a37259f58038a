package broker

import (
	"encoding/binary"
	"errors"
	"fmt"
)

// Control packets that a client sends (MQTT 5 section 2.1.2).
const (
	typeConnect     = 1
	typePublish     = 3
	typePuback      = 4
	typePubrec      = 5
	typePubrel      = 6
	typePubcomp     = 7
	typeSubscribe   = 8
	typeUnsubscribe = 10
	typePingreq     = 12
	typeDisconnect  = 14
	typeAuth        = 15
)

const (
	version5 = 5
	// The library's work grows with the square of a topic's levels.
	levelLimit = 200
)

var (
	errMalformed = errors.New("malformed packet")
	errLevels    = errors.New("topic has too many levels")
)

// check returns an error for a malformed packet: header is the first byte of its fixed header, body follows the length, version is the
// protocol level of the connection. Whether a well-formed packet is permitted is decided by the library.
func check(header byte, body []byte, version byte) error {
	kind, flags := header>>4, header&15
	f := fields{rest: body, version: version}
	switch kind {
	case typeConnect:
		f.connect()
	case typePublish:
		f.publish(flags)
		flags = 0
	case typePuback, typePubrec, typePubcomp:
		f.acknowledgement()
	case typePubrel:
		f.acknowledgement()
		flags ^= 2
	case typeSubscribe, typeUnsubscribe:
		f.filters(kind == typeSubscribe)
		flags ^= 2
	case typePingreq:
	case typeDisconnect, typeAuth:
		if version == version5 {
			f.reason()
		}
	default:
		return fmt.Errorf("%w: type %d is not a client's", errMalformed, kind)
	}
	if f.err == nil && (flags != 0 || kind != typePublish && len(f.rest) > 0) {
		f.err = errMalformed
	}
	return f.err
}

// connectVersion is the protocol level of a CONNECT packet whose form has been checked.
func connectVersion(body []byte) byte { return body[2+binary.BigEndian.Uint16(body)] }

// fields takes the fields of a packet off its start. After an error it gives zeros.
type fields struct {
	rest    []byte
	version byte
	err     error
}

func (f *fields) take(n int) []byte {
	if f.err != nil || n > len(f.rest) {
		f.fail(errMalformed)
		return nil
	}
	taken := f.rest[:n]
	f.rest = f.rest[n:]
	return taken
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err, f.rest = err, nil
	}
}

func (f *fields) byte() byte {
	if b := f.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (f *fields) uint16() uint16 {
	if b := f.take(2); b != nil {
		return binary.BigEndian.Uint16(b)
	}
	return 0
}

// text is a string or binary data: its length in two bytes and as many bytes.
func (f *fields) text() []byte { return f.take(int(f.uint16())) }

// topic is a topic name or filter.
func (f *fields) topic() {
	levels := 1
	for _, b := range f.text() {
		if b == '/' {
			levels++
		}
	}
	if levels > levelLimit {
		f.fail(errLevels)
	}
}

func (f *fields) identifier() {
	if f.uint16() == 0 {
		f.fail(errMalformed)
	}
}

// variable is a variable byte integer (MQTT 5 section 1.5.5).
func (f *fields) variable() int {
	value := 0
	for shift := 0; shift < 28; shift += 7 {
		b := f.byte()
		value |= int(b&0x7f) << shift
		if b < 0x80 {
			return value
		}
	}
	f.fail(errMalformed)
	return 0
}

// properties are there since MQTT 5 (section 2.2.2).
func (f *fields) properties() {
	if f.version != version5 {
		return
	}
	p := fields{rest: f.take(f.variable())}
	for len(p.rest) > 0 {
		switch p.byte() {
		case 0x01, 0x17, 0x19, 0x24, 0x25, 0x28, 0x29, 0x2a:
			p.take(1)
		case 0x13, 0x21, 0x22, 0x23:
			p.take(2)
		case 0x02, 0x11, 0x18, 0x27:
			p.take(4)
		case 0x0b:
			p.variable()
		case 0x03, 0x08, 0x09, 0x12, 0x15, 0x16, 0x1a, 0x1c, 0x1f:
			p.text()
		case 0x26:
			p.text()
			p.text()
		default:
			p.fail(errMalformed)
		}
	}
	if p.err != nil {
		f.fail(p.err)
	}
}

// connect is CONNECT (MQTT 5 section 3.1).
func (f *fields) connect() {
	const reserved, will, password, user = 1, 4, 64, 128
	f.text()
	f.version = f.byte()
	flags := f.byte()
	f.uint16()
	f.properties()
	f.text()
	if flags&will != 0 {
		f.properties()
		f.topic()
		f.text()
	}
	for _, flag := range [...]byte{user, password} {
		if flags&flag != 0 {
			f.text()
		}
	}
	if flags&reserved != 0 {
		f.fail(errMalformed)
	}
}

// publish is PUBLISH (MQTT 5 section 3.3); its payload is left over.
func (f *fields) publish(flags byte) {
	qos := flags >> 1 & 3
	f.topic()
	if qos > 0 {
		f.identifier()
	}
	f.properties()
	if qos == 3 {
		f.fail(errMalformed)
	}
}

// acknowledgement is PUBACK, PUBREC, PUBREL or PUBCOMP (MQTT 5 sections 3.4 to 3.7).
func (f *fields) acknowledgement() {
	f.identifier()
	if f.version == version5 {
		f.reason()
	}
}

// reason is a reason code and properties, of which either may be left out.
func (f *fields) reason() {
	if len(f.rest) > 0 {
		f.byte()
	}
	if len(f.rest) > 0 {
		f.properties()
	}
}

// filters returns the topic filters of SUBSCRIBE, with options, or of UNSUBSCRIBE (MQTT 5 sections 3.8 and 3.10). There is at least one.
func (f *fields) filters(options bool) {
	f.identifier()
	f.properties()
	for first := true; first || len(f.rest) > 0; first = false {
		f.topic()
		if options {
			f.subscriptionOptions()
		}
	}
}

func (f *fields) subscriptionOptions() {
	option := f.byte()
	qos, retainHandling, reserved := option&3, option>>4&3, option&0xc0
	if f.version != version5 {
		retainHandling, reserved = 0, option&0xfc
	}
	if qos == 3 || retainHandling == 3 || reserved != 0 {
		f.fail(errMalformed)
	}
}
