package terminal

import (
	"bytes"
	"math"
	"unicode"
	"unicode/utf8"

	"github.com/mattn/go-runewidth"
)

// Style is how a part of a row looks, as a Select Graphic Rendition of ECMA-48.
type Style string

// The styles. They name what is meant: the colours are the terminal's own, which its owner has chosen to be readable.
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

// Text is a row without style.
func Text(text string) Row { return Row{{Text: text}} }

// ellipsis stands for what does not fit.
const ellipsis = "…"

// Append appends the whole row, however wide.
func (r Row) Append(to []byte, colour bool) []byte {
	to, _ = r.append(to, math.MaxInt, colour)
	return to
}

// append appends what fits into so many columns, and gives its width. Control characters, which names of cameras or words
// of a server may hold, do not reach the terminal.
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

// Width is how many columns a text takes.
func Width(text string) int {
	width := 0
	for _, c := range text {
		width += runewidth.RuneWidth(printable(c))
	}
	return width
}

// Printable returns text, such as the name of a file or a label, without characters that would move the cursor, change the terminal or turn
// the direction of the text: a blank or ? stands for each.
func Printable(text []byte) []byte { return bytes.Map(printable, text) }

// Lines is Printable for text of several lines: their ends stay.
func Lines(text []byte) []byte {
	return bytes.Map(func(c rune) rune {
		if c == '\n' {
			return c
		}
		return printable(c)
	}, text)
}

// printable is the character itself unless it would move the cursor, change the terminal or turn the direction of the text.
func printable(c rune) rune {
	switch {
	case c == '\n' || c == '\t':
		return ' '
	case unicode.IsControl(c) || unicode.Is(unicode.Bidi_Control, c) || c == utf8.RuneError:
		return '?'
	}
	return c
}
