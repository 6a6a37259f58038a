package transport

import (
	"bufio"
	"errors"
	"io"
)

// filter removes messages that are too large to be commands from a stream of MQTT packets. paho allocates the size announced in a packet's
// header, up to 256 MiB: one retained message on a command topic could exhaust a small machine at every connection.
type filter struct {
	in      *bufio.Reader
	largest int            // maximum size of a PUBLISH packet in bytes
	skipped func(size int) // called for each removed message

	header []byte // unread header of the current packet
	left   int    // unread bytes of its body
	skip   bool
}

var errPacketLength = errors.New("malformed packet length")

func newFilter(in io.Reader, largest int, skipped func(int)) *filter {
	return &filter{in: bufio.NewReader(in), largest: largest, skipped: skipped, header: make([]byte, 0, 5)}
}

// Read implements io.Reader.
func (f *filter) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case f.left > 0 && f.skip:
			n, err := f.in.Discard(f.left)
			f.left -= n
			if err != nil {
				return 0, err
			}
		case len(f.header) > 0 && !f.skip:
			n := copy(p, f.header)
			f.header = f.header[:copy(f.header, f.header[n:])]
			return n, nil
		case f.left > 0:
			n, err := f.in.Read(p[:min(len(p), f.left)])
			f.left -= n
			return n, err
		default:
			if err := f.next(); err != nil {
				return 0, err
			}
		}
	}
}

// next reads the fixed header of a packet (MQTT 3.1.1 section 2.2).
func (f *filter) next() error {
	const publish = 3
	f.header, f.left = f.header[:0], 0
	for {
		b, err := f.in.ReadByte()
		if err != nil {
			if len(f.header) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			f.header = f.header[:0]
			return err
		}
		f.header = append(f.header, b)
		if n := len(f.header) - 2; n >= 0 {
			f.left |= int(b&0x7f) << (7 * n)
			if b < 0x80 {
				break
			}
			if n == 3 {
				return errPacketLength
			}
		}
	}
	if f.skip = f.header[0]>>4 == publish && f.left > f.largest; f.skip {
		f.skipped(f.left)
	}
	return nil
}
