package mqtt

import (
	"bufio"
	"errors"
	"io"
)

// packetFilter reads a stream of MQTT packets and leaves out messages that are too large to be commands. paho allocates what a packet's
// header
// announces, up to 256 MiB, so that one retained message to a control's topic could take a small machine down at every connection.
type packetFilter struct {
	in      *bufio.Reader
	largest int            // bytes of a PUBLISH packet that is let through
	skipped func(size int) // called for each that is not

	header []byte // of the packet at hand, what is not read yet
	left   int    // bytes of its body that are not read yet
	skip   bool
}

var errPacketLength = errors.New("malformed packet length")

func newPacketFilter(in io.Reader, largest int, skipped func(int)) *packetFilter {
	return &packetFilter{in: bufio.NewReader(in), largest: largest, skipped: skipped, header: make([]byte, 0, 5)}
}

// Read implements io.Reader.
func (s *packetFilter) Read(p []byte) (int, error) {
	if len(p) == 0 {
		return 0, nil
	}
	for {
		switch {
		case s.left > 0 && s.skip:
			n, err := s.in.Discard(s.left)
			s.left -= n
			if err != nil {
				return 0, err
			}
		case len(s.header) > 0 && !s.skip:
			n := copy(p, s.header)
			s.header = s.header[:copy(s.header, s.header[n:])]
			return n, nil
		case s.left > 0:
			n, err := s.in.Read(p[:min(len(p), s.left)])
			s.left -= n
			return n, err
		default:
			if err := s.next(); err != nil {
				return 0, err
			}
		}
	}
}

// next reads the fixed header of a packet (MQTT 3.1.1 section 2.2).
func (s *packetFilter) next() error {
	const publish = 3
	s.header, s.left = s.header[:0], 0
	for {
		b, err := s.in.ReadByte()
		if err != nil {
			if len(s.header) > 0 && errors.Is(err, io.EOF) {
				err = io.ErrUnexpectedEOF
			}
			s.header = s.header[:0]
			return err
		}
		s.header = append(s.header, b)
		if n := len(s.header) - 2; n >= 0 {
			s.left |= int(b&0x7f) << (7 * n)
			if b < 0x80 {
				break
			}
			if n == 3 {
				return errPacketLength
			}
		}
	}
	if s.skip = s.header[0]>>4 == publish && s.left > s.largest; s.skip {
		s.skipped(s.left)
	}
	return nil
}
