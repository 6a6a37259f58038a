// Package terminal writes to the terminal of a person: lines that scroll, and below them one block that stays and is written anew in its
// place.
package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Control sequences of ECMA-48. Mode 2026 has a terminal that knows it show everything between begin and finish at once; others ignore it.
const (
	begin     = "\x1b[?2026h"
	finish    = "\x1b[?2026l"
	upwards   = "\x1b[%dA"
	eraseRest = "\x1b[K" // of the row
	eraseDown = "\x1b[J" // and of the rows below
)

// Screen keeps one block below what else is written to a terminal. Where the output is no terminal, or one of the type dumb, lines are all
// it writes. Any goroutine may use it.
type Screen struct {
	out    io.Writer
	live   bool
	colour bool
	size   func() (columns, rows int)

	mutex sync.Mutex
	shown []Row // the block; the cursor stands at the start of the row below it
	rows  []int // their widths as they were drawn, in columns
}

// Open gives the screen of out, out itself where it is one.
func Open(out io.Writer) *Screen {
	if s, ok := out.(*Screen); ok {
		return s
	}
	return Over(out, out)
}

// Over is a screen that writes to out, which leads to device: that is asked what it is.
func Over(out, device io.Writer) *Screen {
	s := &Screen{out: out}
	file, ok := device.(*os.File)
	if !ok || !term.IsTerminal(int(file.Fd())) || os.Getenv("TERM") == "dumb" {
		return s
	}
	s.live = true
	s.colour = os.Getenv("NO_COLOR") == ""
	s.size = func() (columns, rows int) {
		columns, rows, err := term.GetSize(int(file.Fd()))
		if err != nil || columns <= 0 || rows <= 0 { // a serial console does not know
			return 80, 24
		}
		return columns, rows
	}
	return s
}

// Same reports whether both lead to one terminal, or to one file.
func Same(a, b io.Writer) bool {
	first, ok := a.(*os.File)
	second, also := b.(*os.File)
	if !ok || !also {
		return false
	}
	one, err := first.Stat()
	if err != nil {
		return false
	}
	other, err := second.Stat()
	return err == nil && os.SameFile(one, other)
}

// Live reports whether there is a terminal, whose block is written anew.
func (s *Screen) Live() bool { return s.live }

// Colour reports whether colours are wanted: on a terminal, unless $NO_COLOR says anything.
func (s *Screen) Colour() bool { return s.colour }

// Size is that of the terminal as it is now, in characters; 0, 0 without one.
func (s *Screen) Size() (columns, rows int) {
	if !s.live {
		return 0, 0
	}
	return s.size()
}

// Write puts whole lines above the block. Without a block they are written as they are.
func (s *Screen) Write(lines []byte) (int, error) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.shown) == 0 || len(lines) == 0 {
		return s.out.Write(lines)
	}
	columns, rows := s.size()
	text := s.home([]byte(begin), columns)
	text = append(append(text, eraseDown...), lines...)
	if lines[len(lines)-1] != '\n' {
		text = append(text, '\n')
	}
	text = s.draw(text, columns, rows)
	if _, err := s.out.Write(append(text, finish...)); err != nil {
		return 0, err
	}
	return len(lines), nil
}

// Show replaces the block, which is cut to the size of the terminal. Without a terminal the rows are written as lines. The rows must not be
// changed afterwards.
func (s *Screen) Show(block ...Row) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.live {
		var text []byte
		for _, row := range block {
			text = append(row.Append(text, false), '\n')
		}
		_, _ = s.out.Write(text) // as with every line of progress, nothing depends on it
		return
	}
	columns, rows := s.size()
	text := s.home([]byte(begin), columns)
	s.shown = block
	text = s.draw(text, columns, rows)
	_, _ = s.out.Write(append(append(text, eraseDown...), finish...))
}

// Clear takes the block away.
func (s *Screen) Clear() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.rows) > 0 {
		columns, _ := s.size()
		_, _ = s.out.Write(append(s.home(nil, columns), eraseDown...))
	}
	s.shown, s.rows = nil, nil
}

// Keep leaves the block where it is, as lines like others.
func (s *Screen) Keep() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.shown, s.rows = nil, nil
}

// home moves the cursor to the start of the block. A terminal that has become narrower since has broken its rows.
func (s *Screen) home(text []byte, columns int) []byte {
	up := 0
	for _, width := range s.rows {
		up += max(1, (width+columns-1)/columns)
	}
	if up > 0 {
		text = fmt.Appendf(text, upwards, up)
	}
	return append(text, '\r')
}

// draw appends the block, and leaves the cursor below it.
func (s *Screen) draw(text []byte, columns, rows int) []byte {
	s.rows = s.rows[:0]
	for _, row := range s.shown[:min(len(s.shown), max(rows-1, 1))] {
		var width int
		text, width = row.append(text, columns-1, s.colour)
		text = append(append(text, eraseRest...), '\n')
		s.rows = append(s.rows, width)
	}
	return text
}
