package terminal

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"
)

// live is a screen of that size whose bytes are looked at.
func live(columns, rows *int) (*Screen, *bytes.Buffer) {
	out := &bytes.Buffer{}
	return &Screen{out: out, live: true, size: func() (int, int) { return *columns, *rows }}, out
}

// image is what a terminal of that many columns shows after the bytes: enough of one for what a Screen writes.
func img(t *testing.T, text string, columns int) []string {
	t.Helper()
	rows, y, x := [][]rune{nil}, 0, 0
	for i := 0; i < len(text); {
		switch rest := text[i:]; {
		case strings.HasPrefix(rest, begin), strings.HasPrefix(rest, finish):
			i += len(begin)
		case strings.HasPrefix(rest, eraseRest):
			rows[y] = rows[y][:min(x, len(rows[y]))]
			i += len(eraseRest)
		case strings.HasPrefix(rest, eraseDown):
			rows[y] = rows[y][:min(x, len(rows[y]))]
			rows = rows[:y+1]
			i += len(eraseDown)
		case rest[0] == '\x1b':
			var up int
			_, err := fmt.Sscanf(rest, upwards, &up)
			require.NoError(t, err, "%q", rest)
			y = max(0, y-up)
			i += len(fmt.Sprintf(upwards, up))
		case rest[0] == '\r':
			x = 0
			i++
		case rest[0] == '\n':
			x = 0
			if y++; y == len(rows) {
				rows = append(rows, nil)
			}
			i++
		default:
			c := []rune(rest)[0]
			if x == columns {
				x = 0
				if y++; y == len(rows) {
					rows = append(rows, nil)
				}
			}
			for len(rows[y]) <= x {
				rows[y] = append(rows[y], ' ')
			}
			rows[y][x] = c
			x++
			i += len(string(c))
		}
	}
	var shown []string
	for _, row := range rows {
		shown = append(shown, strings.TrimRight(string(row), " "))
	}
	return shown
}

func TestTheBlockStaysBelowTheLines(t *testing.T) {
	columns, rows := 20, 10
	s, out := live(&columns, &rows)
	fmt.Fprint(s, "first\n")
	s.Show(Text("one"), Text("two"), Text("three"))
	fmt.Fprint(s, "a line that is longer than the terminal\n")
	s.Show(Text("uno"), Text("a row that is longer than the terminal"))
	fmt.Fprint(s, "last")
	require.Equal(t, []string{
		"first", "a line that is longe", "r than the terminal", "last", "uno", "a row that is long…", "",
	}, img(t, out.String(), columns))
	s.Clear()
	fmt.Fprint(s, "the end\n")
	require.Equal(t, []string{"first", "a line that is longe", "r than the terminal", "last", "the end", ""},
		img(t, out.String(), columns))
	require.NotContains(t, out.String(), "\x1b[2J", "the terminal is never cleared")
}

func TestAKeptBlockBecomesLines(t *testing.T) {
	columns, rows := 20, 10
	s, out := live(&columns, &rows)
	s.Show(Text("one"))
	s.Keep()
	s.Show(Text("two"))
	require.Equal(t, []string{"one", "two", ""}, img(t, out.String(), columns))
}

func TestTheBlockIsNoHigherThanTheTerminal(t *testing.T) {
	columns, rows := 20, 3
	s, out := live(&columns, &rows)
	s.Show(Text("one"), Text("two"), Text("three"), Text("four"))
	s.Show(Text("one"), Text("two"), Text("three"), Text("four"))
	require.Equal(t, []string{"one", "two", ""}, img(t, out.String(), columns))
}

// A narrower terminal has broken the block's rows before they are written again.
func TestANarrowerTerminal(t *testing.T) {
	columns, rows := 20, 10
	s, out := live(&columns, &rows)
	s.Show(Text("0123456789 123456789"), Text("x")) // cut to 19 columns
	out.Reset()
	columns = 10
	s.Show(Text("y"))
	require.Equal(t, begin+"\x1b[3A\ry"+eraseRest+"\n"+eraseDown+finish, out.String())
}

func TestWithoutATerminalRowsAreLines(t *testing.T) {
	var out bytes.Buffer
	s := Open(&out)
	require.False(t, s.Live())
	require.Same(t, s, Open(s))
	s.Show(Row{{"a", Bad}, {"b", Plain}}, Text("c"))
	fmt.Fprint(s, "d\n")
	s.Clear()
	require.Equal(t, "ab\nc\nd\n", out.String())
}

func TestRowsAreCutByWidth(t *testing.T) {
	for _, test := range []struct {
		row     Row
		columns int
		colour  bool
		want    string
		width   int
	}{
		{Text("abc"), 3, false, "abc", 3},
		{Text("abcd"), 3, false, "ab…", 3},
		{Text("日本語"), 6, false, "日本語", 6},
		{Text("日本語"), 5, false, "日本…", 5},
		{Text("日本語"), 4, false, "日…", 3},
		{Text("abc"), 1, false, "…", 1},
		{Row{{"ab", Good}, {"cd", Plain}}, 3, true, "\x1b[32mab\x1b[0m…", 3},
		{Row{{"ab", Good}, {"cd", Bad}}, 4, true, "\x1b[32mab\x1b[0m\x1b[31mcd\x1b[0m", 4},
		{Text("a\x1b[2Jb\n\u202ec\xff"), 20, false, "a?[2Jb ?c?", 10},
	} {
		got, width := test.row.append(nil, test.columns, test.colour)
		require.Equal(t, test.want, string(got), "%q", test.row)
		require.Equal(t, test.width, width, "%q", test.row)
	}
}

func FuzzRow(f *testing.F) {
	f.Add("abc", "日本", 4)
	f.Add("\x1b[31m", "\u202e", 2)
	f.Fuzz(func(t *testing.T, a, b string, columns int) {
		columns = max(1, columns%300)
		text, width := Row{{a, Bad}, {b, Plain}}.append(nil, columns, false)
		require.LessOrEqual(t, width, columns)
		require.Equal(t, width, Width(string(text)))
		require.NotContains(t, string(text), "\x1b")
	})
}

// TestOpenAsksTheTerminal: what a pseudo terminal says of itself counts, and the environment.
func TestOpenAsksTheTerminal(t *testing.T) {
	terminal, device, err := pty.Open()
	require.NoError(t, err)
	defer terminal.Close()
	defer device.Close()
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Cols: 91, Rows: 33}))
	t.Setenv("TERM", "xterm-256color")
	t.Setenv("NO_COLOR", "")
	s := Open(device)
	require.True(t, s.Live())
	require.True(t, s.Colour())
	columns, rows := s.Size()
	require.Equal(t, [2]int{91, 33}, [2]int{columns, rows})
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{}))
	columns, rows = s.Size()
	require.Equal(t, [2]int{80, 24}, [2]int{columns, rows}, "a serial console")
	t.Setenv("NO_COLOR", "1")
	require.False(t, Open(device).Colour())
	t.Setenv("TERM", "dumb")
	require.False(t, Open(device).Live())

	require.True(t, Same(device, device))
	require.False(t, Same(device, os.Stdin))
	require.False(t, Same(device, &bytes.Buffer{}))
}
