package terminal

import (
	"bytes"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Style is a Select Graphic Rendition parameter of ECMA-48.
type Style string

// The styles, named by meaning. The colours are those of the terminal's palette.
const (
	Plain Style = ""
	Title Style = "1"
	Faint Style = "2"
	Good  Style = "32"
	Alert Style = "33"
	Bad   Style = "31"
)

// Span is a part of a row in one style.
type Span struct {
	Text  string
	Style Style
}

// Row is one row of a block.
type Row []Span

// Text returns a row without style.
func Text(text string) Row { return Row{{Text: text}} }

// ellipsis replaces text that does not fit.
const ellipsis = "…"

// Append appends the whole row, however wide.
func (r Row) Append(to []byte, colour bool) []byte {
	to, _ = r.append(to, math.MaxInt, colour)
	return to
}

// append appends the part that fits into this number of columns, and returns its width. Control characters, which camera names or server
// messages may contain, are replaced.
func (r Row) append(to []byte, columns int, colour bool) ([]byte, int) {
	left := 0
	for _, span := range r {
		left += Width(span.Text)
	}
	whole := left <= columns
	width := 0
	for _, span := range r {
		styled := colour && span.Style != Plain && span.Text != ""
		if styled {
			to = append(append(append(to, "\x1b["...), span.Style...), 'm')
		}
		cut := false
		for _, c := range span.Text {
			c = printable(c)
			size := runewidth.RuneWidth(c)
			if !whole && width+size > columns-1 {
				cut = true
				break
			}
			to = utf8.AppendRune(to, c)
			width += size
		}
		if cut {
			to = append(to, ellipsis...)
			width++
		}
		if styled {
			to = append(to, "\x1b[0m"...)
		}
		if cut {
			break
		}
	}
	return to, width
}

// Width returns the number of columns of a text.
func Width(text string) int {
	width := 0
	for _, c := range text {
		width += runewidth.RuneWidth(printable(c))
	}
	return width
}

// Printable replaces characters that would move the cursor, change the terminal or reverse the text direction by a blank or ?.
func Printable(text []byte) []byte { return bytes.Map(printable, text) }

// Lines is Printable for text of several lines; newlines are kept.
func Lines(text []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if c == '\n' {
			return c
		}
		return printable(c)
	}, text)
}

// printable returns the character or its replacement.
func printable(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return ' '
	case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == utf8.RuneError:
		return '?'
	}
	return c
}
