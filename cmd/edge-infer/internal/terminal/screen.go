// Package terminal writes to a terminal: scrolling lines, and below them one block that is updated in place.
package terminal

import (
	"fmt"
	"io"
	"os"
	"sync"

	"golang.org/x/term"
)

// Control sequences of ECMA-48. Mode 2026 (synchronized output) shows everything between begin and finish at once, where it is supported.
const (
	begin     = "\x1b[?2026h"
	finish    = "\x1b[?2026l"
	upwards   = "\x1b[%dA"
	eraseRest = "\x1b[K" // of the row
	eraseDown = "\x1b[J" // and of the rows below
)

// Screen keeps one block below the other output of a terminal. If the output is not a terminal, or TERM is dumb, it only writes lines. It
// is safe for concurrent use.
type Screen struct {
	out    io.Writer
	live   bool
	colour bool
	size   func() (columns, rows int)

	mutex sync.Mutex
	shown []Row // the block; the cursor stands at the start of the row below it
	rows  []int // drawn widths in columns
}

// Open returns a screen for out, or out itself if it is a Screen.
func Open(out io.Writer) *Screen {
	if s, ok := out.(*Screen); ok {
		return s
	}
	return Over(out, out)
}

// Over returns a screen that writes to out, a wrapper of device, which is checked for being a terminal.
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
		if err != nil || columns <= 0 || rows <= 0 { // unknown on a serial console
			return 80, 24
		}
		return columns, rows
	}
	return s
}

// Same reports whether both are the same terminal or file.
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

// Interactive reports whether a person at a terminal started the program.
func Interactive() bool { return term.IsTerminal(int(os.Stdin.Fd())) }

// Live reports whether the output is a terminal with a block.
func (s *Screen) Live() bool { return s.live }

// Colour reports whether colours are used: on a terminal, unless $NO_COLOR is set.
func (s *Screen) Colour() bool { return s.colour }

// Size returns the current size of the terminal in characters; 0, 0 without one.
func (s *Screen) Size() (columns, rows int) {
	if !s.live {
		return 0, 0
	}
	return s.size()
}

// Write writes whole lines above the block, or unchanged without a block.
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

// Show replaces the block and cuts it to the size of the terminal. Without a terminal it writes the rows as lines. The rows must not be
// modified afterwards.
func (s *Screen) Show(block ...Row) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !s.live {
		var text []byte
		for _, row := range block {
			text = append(row.Append(text, false), '\n')
		}
		_, _ = s.out.Write(text) // errors of progress output are ignored
		return
	}
	columns, rows := s.size()
	text := s.home([]byte(begin), columns)
	s.shown = block
	text = s.draw(text, columns, rows)
	_, _ = s.out.Write(append(append(text, eraseDown...), finish...))
}

// Clear removes the block.
func (s *Screen) Clear() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.rows) > 0 {
		columns, _ := s.size()
		_, _ = s.out.Write(append(s.home(nil, columns), eraseDown...))
	}
	s.shown, s.rows = nil, nil
}

// Keep leaves the block on the screen as ordinary lines.
func (s *Screen) Keep() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.shown, s.rows = nil, nil
}

// home moves the cursor to the start of the block, whose rows a terminal that has become narrower has wrapped.
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

// draw appends the block and leaves the cursor below it.
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
