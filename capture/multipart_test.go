package capture

import (
	"bufio"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMultipart(t *testing.T) {
	long := strings.Repeat("0123456789", 20000)
	for name, c := range map[string]struct {
		body  string
		parts []string
		end   error
	}{
		"with lengths":                 {"--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b\r\ncontent-LENGTH:2\r\nX: y\r\n\r\nde\r\n--b--\r\n", []string{"abc", "de"}, io.EOF},
		"without lengths":              {"preamble\r\n--b\r\n\r\nabc\r\n--b\r\nA: b\r\n\r\nd\r\ne\r\n--b--", []string{"abc", "d\r\ne"}, io.EOF},
		"bare newlines":                {"--b\n\nabc\n--b\n\nde\n--b--\n", []string{"abc", "de"}, io.EOF},
		"boundary in a part":           {"--b\r\n\r\nx--b\r\n--bc\r\n--b--\r\n", []string{"x--b\r\n--bc"}, io.EOF},
		"long line":                    {"--b\r\n\r\n" + long + "\r\n--b\r\n", []string{long}, io.ErrUnexpectedEOF},
		"boundary after a full buffer": {"--b\r\n\r\n" + long[:64<<10] + "--b\r\n--b--\r\n", []string{long[:64<<10] + "--b"}, io.EOF},
		"cut in a header":              {"--b\r\nContent-Le", nil, io.ErrUnexpectedEOF},
		"cut in a part":                {"--b\r\nContent-Length: 5\r\n\r\nab", nil, io.ErrUnexpectedEOF},
		"cut without length":           {"--b\r\n\r\nabc", nil, io.ErrUnexpectedEOF},
		"empty":                        {"", nil, io.EOF},
		"no boundary":                  {"hello\r\n", nil, io.EOF},
		"negative length":              {"--b\r\nContent-Length: -1\r\n\r\n", nil, errMalformed},
		"huge length":                  {"--b\r\nContent-Length: 99999999999999999999\r\n\r\n", nil, errMalformed},
		"no length":                    {"--b\r\nContent-Length: \r\n\r\n", nil, errMalformed},
		"too many headers":             {"--b\r\n" + strings.Repeat("a: b\r\n", 100), nil, errMalformed},
		"endless header":               {"--b\r\n" + long, nil, errMalformed},
		"endless preamble":             {strings.Repeat("x\r\n", 1<<19), nil, errMalformed},
	} {
		t.Run(name, func(t *testing.T) {
			m := multipart{reader: bufio.NewReaderSize(strings.NewReader(c.body), 64<<10), boundary: []byte("b")}
			p := &picture{}
			var parts []string
			for {
				err := m.next(p)
				if err != nil {
					require.ErrorIs(t, err, c.end)
					break
				}
				parts = append(parts, string(p.encoded))
			}
			assert.Equal(t, c.parts, parts)
		})
	}
}

func FuzzMultipart(f *testing.F) {
	f.Add([]byte("--b\r\nContent-Length: 3\r\n\r\nabc\r\n--b\r\n\r\nd\r\n--b--\r\n"))
	f.Add([]byte("--b\n\n\n--b\n\n--b--"))
	f.Fuzz(func(t *testing.T, body []byte) {
		m := multipart{reader: bufio.NewReaderSize(strings.NewReader(string(body)), 64), boundary: []byte("b")}
		p := &picture{}
		total := 0
		for {
			err := m.next(p)
			if err != nil {
				require.True(t, errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, errMalformed) || errors.Is(err, errTooLarge), "%v", err)
				return
			}
			total += len(p.encoded)
			require.LessOrEqual(t, total, len(body))
		}
	})
}
