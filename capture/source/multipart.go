package source

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// multipart splits a multipart/x-mixed-replace body without allocating; mime/multipart allocates a header map per part.
type multipart struct {
	reader       *bufio.Reader
	boundary     []byte // without the leading dashes; empty until the first one is read if the server announces none
	atPart       bool   // the boundary line has been read
	synchronized bool   // a boundary has been read
	closed       bool   // a closing boundary has been read
	measured     bool   // the last part had a length, which a boundary follows whatever its name
}

var (
	errMalformed  = errors.New("malformed multipart stream")
	errNoBoundary = errors.New("images without boundaries")
	headerLength  = []byte("content-length:")
)

// Limits of what a server may send between two images.
const (
	maxHeaders  = 64      // lines per part
	maxPreamble = 1 << 20 // bytes before a boundary
	maxBoundary = 70      // characters, by RFC 2046
	maxName     = 70      // characters of a header's name
)

// next reads the next part into the image. It returns io.EOF after the closing boundary and at a clean end of the stream.
func (m *multipart) next(p *encodedImage) error {
	if m.closed && !m.partFollows() {
		return io.EOF
	}
	if !m.atPart && !m.closed {
		if err := m.skip(); err != nil {
			return err
		}
	}
	m.atPart, m.closed = false, false
	length, err := m.headers()
	if err != nil {
		return err
	}
	p.data = p.data[:0]
	m.measured = length > 0 // some servers write 0 for a length that they do not know
	if m.measured {
		err := p.fill(m.reader, length)
		if err != nil || !truncatedJPEG(p.data) {
			return err
		}
	}
	return m.untilBoundary(p) // a length may be too small, too
}

// skip reads up to and including the next boundary. It returns errNoBoundary if the stream begins with a JPEG instead.
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
				if m.partFollows() {
					m.synchronized = true
					return nil
				}
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

// adoptBoundary takes a line for a boundary if a part follows, whatever the server has announced: some cameras announce a different
// boundary, or none, or change it. It does so before the first part and after a part with a length, where no image can contain the line.
func (m *multipart) adoptBoundary(line []byte) bool {
	name, dashed := bytes.CutPrefix(bytes.TrimRight(line, " \t\r\n"), []byte("--"))
	if m.synchronized && !m.measured || !dashed || len(name) == 0 || len(name) > maxBoundary {
		return false
	}
	if closed := bytes.TrimSuffix(name, []byte("--")); len(closed) > 0 {
		name = closed
	}
	name = bytes.Clone(name) // the next read overwrites the line
	if !m.partFollows() {
		return false
	}
	m.boundary, m.synchronized = name, true
	return true
}

// partFollows reports whether a part's header is next, or a JPEG after an empty line. Some servers write every boundary as a closing one.
func (m *multipart) partFollows() bool {
	for n := 1; n <= maxName; n++ {
		next, err := m.reader.Peek(n)
		if err != nil {
			return false
		}
		switch c := next[n-1]; {
		case c == ':':
			return n > 1
		case c == '\n' && n <= len("\r\n"):
			next, err = m.reader.Peek(n + 2)
			return err == nil && next[n] == 0xFF && next[n+1] == markerSOI
		case c == '\r' && n == 1, c == '-', c == '_', '0' <= c && c <= '9', 'a' <= c|0x20 && c|0x20 <= 'z':
		default:
			return false
		}
	}
	return false
}

// line reads up to and including the next line break. full reports that the buffer is full before the end of the line. Data before the end
// of the stream is returned with the error.
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
	rest, ok = bytes.CutPrefix(rest, m.boundary)
	if !ok {
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

// headers reads a part's headers and returns its content length, -1 if there is none.
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
			length = number(bytes.TrimSpace(line[len(headerLength):]))
			if length < 0 {
				return 0, errMalformed
			}
		}
	}
	return 0, errMalformed
}

// number parses a decimal number up to maxImageBytes; -1 for anything else.
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

// untilBoundary appends the data of a part up to the next boundary.
func (m *multipart) untilBoundary(p *encodedImage) error {
	for start := true; ; {
		line, full, err := m.line()
		if start {
			switch m.classify(line) {
			case boundaryLine:
				m.atPart = true
				p.data = withoutNewline(p.data)
				return nil
			case closingLine:
				m.closed = true
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

// withoutNewline removes the line break that belongs to the following boundary.
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
