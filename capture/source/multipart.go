package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// multipart splits a multipart/x-mixed-replace body without allocating. mime/multipart makes a header map for every part.
type multipart struct {
	reader   *bufio.Reader
	boundary []byte // without the two dashes; empty until it is met where the server announces none
	atPart   bool   // the line of the boundary has been read
	synchronized      bool   // a boundary has been read
}

var (
	errMalformed = errors.New("malformed multipart stream")
	errNoBoundary      = errors.New("images without boundaries between them")
	headerLength = []byte("content-length:")
	headerStart  = []byte("content-") // of every header that RFC 2046 knows in a part
)

// Bounds on what a server may send between two images.
const (
	maxHeaders  = 64      // lines of a part
	maxPreamble = 1 << 20 // bytes before a boundary
	maxBoundary = 70      // characters, by RFC 2046
)

// next reads the next part into the image; io.EOF after the closing boundary and at a clean end of the stream.
func (m *multipart) next(p *encodedImage) error {
	if !m.atPart {
		if err := m.skip(); err != nil {
			return err
		}
	}
	m.atPart = false
	length, err := m.headers()
	if err != nil {
		return err
	}
	if length >= 0 {
		return p.fill(m.reader, length)
	}
	return m.untilBoundary(p)
}

// skip reads up to and with the next boundary. It is errNoBoundary where the stream begins with a JPEG instead of one.
func (m *multipart) skip() error {
	if !m.synchronized {
		if begin, err := m.reader.Peek(2); err == nil && begin[0] == 0xFF && begin[1] == markerSOI {
			return errNoBoundary
		}
	}
	start := true
	for skipped := 0; skipped < maxPreamble; {
		line, full, err := m.line()
		if start {
			switch m.classify(line) {
			case boundaryLine:
				m.synchronized = true
				return nil
			case closingLine:
				return io.EOF
			}
			if err == nil && !full && m.adoptBoundary(line) {
				return nil
			}
		}
		if err != nil {
			return err
		}
		skipped += len(line)
		start = !full
	}
	return errMalformed
}

// adopt takes a line for the first boundary when the header of a part follows it, whatever the server has announced: some cameras announce
// another one, or none.
func (m *multipart) adoptBoundary(line []byte) bool {
	name, dashed := bytes.CutPrefix(bytes.TrimRight(line, " \t\r\n"), []byte("--"))
	if m.synchronized || !dashed || len(name) == 0 || len(name) > maxBoundary {
		return false
	}
	name = bytes.Clone(name) // the line goes with the next read
	next, err := m.reader.Peek(len(headerStart))
	if err != nil || !bytes.EqualFold(next, headerStart) {
		return false
	}
	m.boundary, m.synchronized = name, true
	return true
}

// line reads up to and with the next line break, or as much of a line as the buffer takes, which full reports. What stands before the end
// of the stream comes with the error.
func (m *multipart) line() (line []byte, full bool, err error) {
	line, err = m.reader.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return line, true, nil
	}
	return line, false, err
}

type lineKind uint8

const (
	dataLine lineKind = iota
	boundaryLine
	closingLine
)

func (m *multipart) classify(line []byte) lineKind {
	rest, ok := bytes.CutPrefix(line, []byte("--"))
	if !ok || len(m.boundary) == 0 {
		return dataLine
	}
	if rest, ok = bytes.CutPrefix(rest, m.boundary); !ok {
		return dataLine
	}
	switch string(bytes.TrimRight(rest, " \t\r\n")) {
	case "":
		return boundaryLine
	case "--":
		return closingLine
	}
	return dataLine
}

// headers reads a part's header and returns its content length, -1 when it has none.
func (m *multipart) headers() (int64, error) {
	length := int64(-1)
	for range maxHeaders {
		line, full, err := m.line()
		switch {
		case err != nil:
			return 0, truncated(err)
		case full:
			return 0, errMalformed
		}
		line = bytes.TrimSpace(line)
		if len(line) == 0 {
			return length, nil
		}
		if len(line) >= len(headerLength) && bytes.EqualFold(line[:len(headerLength)], headerLength) {
			if length = number(bytes.TrimSpace(line[len(headerLength):])); length < 0 {
				return 0, errMalformed
			}
		}
	}
	return 0, errMalformed
}

// number reads a decimal number up to maxImageBytes; -1 for anything else.
func number(text []byte) int64 {
	n := int64(0)
	for _, c := range text {
		if c < '0' || c > '9' || n > maxImageBytes {
			return -1
		}
		n = 10*n + int64(c-'0')
	}
	if len(text) == 0 || n > maxImageBytes {
		return -1
	}
	return n
}

// untilBoundary reads a part whose length nobody told.
func (m *multipart) untilBoundary(p *encodedImage) error {
	p.data = p.data[:0]
	for start := true; ; {
		line, full, err := m.line()
		if start {
			switch m.classify(line) {
			case boundaryLine:
				m.atPart = true
				p.data = withoutNewline(p.data)
				return nil
			case closingLine:
				p.data = withoutNewline(p.data)
				return nil
			}
		}
		if err != nil {
			return truncated(err)
		}
		if len(p.data)+len(line) > maxImageBytes {
			return errTooLarge
		}
		p.data = append(p.data, line...)
		start = !full
	}
}

// withoutNewline drops the line break that belongs to the boundary after it.
func withoutNewline(data []byte) []byte {
	data = bytes.TrimSuffix(data, []byte("\n"))
	return bytes.TrimSuffix(data, []byte("\r"))
}

func truncated(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}
