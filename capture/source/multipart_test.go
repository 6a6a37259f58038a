package source

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
)

func TestMultipart(t *testing.T) {
	long := strings.Repeat("0123456789", 20000)
	for name, c := range map[string]struct {
		body  string
		parts []string
		end   error
	}{
		"with lengths": {
			"--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b\r\ncontent-LENGTH:2\r\nX: y\r\n\r\nde\r\n--b--\r\n", []string{"abc", "de"}, io.EOF,
		},
		"without lengths":              {"preamble\r\n--b\r\n\r\nabc\r\n--b\r\nA: b\r\n\r\nd\r\ne\r\n--b--", []string{"abc", "d\r\ne"}, io.EOF},
		"bare newlines":                {"--b\n\nabc\n--b\n\nde\n--b--\n", []string{"abc", "de"}, io.EOF},
		"boundary in a part":           {"--b\r\n\r\nx--b\r\n--bc\r\n--b--\r\n", []string{"x--b\r\n--bc"}, io.EOF},
		"long line":                    {"--b\r\n\r\n" + long + "\r\n--b\r\n", []string{long}, io.ErrUnexpectedEOF},
		"boundary after a full buffer": {"--b\r\n\r\n" + long[:64<<10] + "--b\r\n--b--\r\n", []string{long[:64<<10] + "--b"}, io.EOF},
		"another boundary than announced": {
			"--c\r\nContent-Type: image/jpeg\r\n\r\nabc\r\n--b\r\nd\r\n--c\r\nContent-Length: 2\r\n\r\nef\r\n--c--\r\n",
			[]string{"abc\r\n--b\r\nd", "ef"},
			io.EOF,
		},
		"a preamble that looks like one": {"--c\r\nhello\r\n--b\r\n\r\nabc\r\n--b--", []string{"abc"}, io.EOF},
		"a second boundary is data":      {"--b\r\n\r\na\r\n--c\r\nContent-Type: x\r\n--b--", []string{"a\r\n--c\r\nContent-Type: x"}, io.EOF},
		"every boundary closes": {
			"--b--\r\nContent-Type: x\r\n\r\nabc\r\n--b--\r\nContent-Length: 2\r\n\r\nde\r\n--b--\r\n", []string{"abc", "de"}, io.EOF,
		},
		"every boundary closes, another name": {
			"--c--\r\nX-Time: 1\r\n\r\nabc\r\n--c--\r\nX-Time: 2\r\n\r\nde\r\n--c--\r\n", []string{"abc", "de"}, io.EOF,
		},
		"another boundary for each part": {
			"--c\r\nX-Time: 1\r\nContent-Length: 3\r\n\r\nabc\r\n--d\r\nContent-Length: 2\r\n\r\nde\r\n--e--\r\n", []string{"abc", "de"}, io.EOF,
		},
		"another boundary and no header": {
			"--c\r\n\r\n\xff\xd8a\xff\xd9\r\n--c\r\n\r\n\xff\xd8b\xff\xd9\r\n--c--",
			[]string{"\xff\xd8a\xff\xd9", "\xff\xd8b\xff\xd9"},
			io.EOF,
		},
		"no length known":        {"--b\r\nContent-Length: 0\r\n\r\nabc\r\n--b--", []string{"abc"}, io.EOF},
		"cut in a header":        {"--b\r\nContent-Le", nil, io.ErrUnexpectedEOF},
		"cut in a part":          {"--b\r\nContent-Length: 5\r\n\r\nab", nil, io.ErrUnexpectedEOF},
		"cut in a long part":     {"--b\r\nContent-Length: 70000\r\n\r\n" + long[:64<<10], nil, io.ErrUnexpectedEOF},
		"announced and not sent": {"--b\r\nContent-Length: 60000000\r\n\r\n", nil, io.ErrUnexpectedEOF},
		"cut without length":     {"--b\r\n\r\nabc", nil, io.ErrUnexpectedEOF},
		"empty":                  {"", nil, io.EOF},
		"no boundary":            {"hello\r\n", nil, io.EOF},
		"negative length":        {"--b\r\nContent-Length: -1\r\n\r\n", nil, errMalformed},
		"huge length":            {"--b\r\nContent-Length: 99999999999999999999\r\n\r\n", nil, errMalformed},
		"no length":              {"--b\r\nContent-Length: \r\n\r\n", nil, errMalformed},
		"too many headers":       {"--b\r\n" + strings.Repeat("a: b\r\n", 100), nil, errMalformed},
		"endless header":         {"--b\r\n" + long, nil, errMalformed},
		"endless preamble":       {strings.Repeat("x\r\n", 1<<19), nil, errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			m := multipart{reader: bufio.NewReaderSize(strings.NewReader(c.body), 64<<10), boundary: []byte("b")}
			p := &encodedImage{}
			var parts []string
			for {
				err := m.next(p)
				if err != nil {
					require.ErrorIs(t, err, c.end)
					break
				}
				parts = append(parts, string(p.data))
			}
			assert.Equal(t, c.parts, parts)
			assert.LessOrEqual(t, cap(p.data), 2*len(c.body)+128<<10, "memory for what has arrived")
		})
	}
}

// endless repeats its text.
type endless struct {
	text string
	at   int
}

func (e *endless) Read(to []byte) (int, error) {
	n := copy(to, e.text[e.at:])
	e.at = (e.at + n) % len(e.text)
	return n, nil
}

func TestMultipartWithoutAnnouncedBoundary(t *testing.T) {
	body := "--\r\n--frame\r\ncontent-type: image/jpeg\r\n\r\nabc\r\n--frame\r\nContent-Length: 1\r\n\r\nd\r\n--frame--\r\n"
	m := multipart{reader: bufio.NewReaderSize(strings.NewReader(body), 64<<10)}
	p := &encodedImage{}
	for _, part := range []string{"abc", "d"} {
		require.NoError(t, m.next(p))
		assert.Equal(t, part, string(p.data))
	}
	require.ErrorIs(t, m.next(p), io.EOF)
}

func TestNoAllocationPerPart(t *testing.T) {
	data := string(barcodeJPEG(t, 77, 640, 480))
	for _, header := range []string{"", fmt.Sprintf("Content-Length: %d\r\n", len(data))} {
		m := multipart{reader: bufio.NewReader(&endless{text: "--b\r\n" + header + "\r\n" + data + "\r\n"}), boundary: []byte("b")}
		p, jpeg := &capture.Pool{}, &encodedImage{}
		defer p.Close()
		cycle := func() {
			require.NoError(t, m.next(jpeg))
			f, err := jpeg.decode(p)
			require.NoError(t, err)
			require.Equal(t, 77, readBarcode(f))
			f.Release()
		}
		for range 20 {
			cycle()
		}
		assert.Less(t, testing.AllocsPerRun(100, func() {
			_ = m.next(jpeg)
			f, _ := jpeg.decode(p)
			f.Release()
		}), 1.0)
		jpeg.decoder.closeMats()
	}
}

func FuzzMultipart(f *testing.F) {
	f.Add([]byte("--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b\r\n\r\nd\r\n--b--\r\n"))
	f.Add([]byte("--b\n\n\n--b\n\n--b--"))
	f.Add([]byte("--b--\r\nA: b\r\n\r\nabc\r\n--b--\r\nContent-Length: 2\r\n\r\nde\r\n--c\r\nX: y\r\n\r\nf\r\n--c--"))
	f.Add([]byte("--c\n\n\xff\xd8\xff\xc0\x00\x0b\x08\x00\x01\x00\x01\x01\x01\x11\x00\n--c\nContent-Length: 9\n\n\xff\xd8\xff\xc0"))
	reader := bufio.NewReaderSize(nil, 64)
	p := &encodedImage{}
	f.Fuzz(func(t *testing.T, body []byte) {
		reader.Reset(bytes.NewReader(body))
		m := multipart{reader: reader, boundary: []byte("b")}
		for total := 0; ; {
			switch err := m.next(p); {
			case errors.Is(err, io.EOF), errors.Is(err, io.ErrUnexpectedEOF), errors.Is(err, errMalformed), errors.Is(err, errNoBoundary),
				errors.Is(err, errTooLarge):
				return
			case err != nil:
				t.Fatal(err)
			}
			if total += len(p.data); total > len(body) {
				t.Fatalf("%d bytes of images in %d", total, len(body))
			}
		}
	})
}
