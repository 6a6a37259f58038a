package draw

import (
	"fmt"
	"image"
	"image/color"
	"unicode/utf8"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/math/fixed"
)

// glyph is the coverage of a letter, 0 to 255 per pixel.
type glyph struct {
	mask    []uint8
	box     image.Rectangle // bounds of mask, relative to the pen on the baseline
	advance int
}

// maxGlyphs bounds the glyph cache; further letters are drawn as '?'.
const maxGlyphs = 1024

// typeface is a font at one size with the letters drawn so far.
type typeface struct {
	face            font.Face
	ascent, descent int
	glyphs          map[rune]*glyph
}

func newTypeface(pixels int) (*typeface, error) {
	parsed, err := opentype.Parse(gomedium.TTF)
	if err != nil {
		return nil, fmt.Errorf("read the built-in font: %w", err)
	}
	face, err := opentype.NewFace(parsed, &opentype.FaceOptions{Size: float64(pixels), DPI: 72, Hinting: font.HintingFull})
	if err != nil {
		return nil, fmt.Errorf("scale the built-in font to %d pixels: %w", pixels, err)
	}
	metrics := face.Metrics()
	return &typeface{face: face, ascent: metrics.Ascent.Ceil(), descent: metrics.Descent.Ceil(), glyphs: make(map[rune]*glyph)}, nil
}

func (f *typeface) glyph(r rune) *glyph {
	if g, ok := f.glyphs[r]; ok {
		return g
	}
	if len(f.glyphs) >= maxGlyphs && r != '?' {
		return f.glyph('?')
	}
	g := &glyph{}
	box, mask, at, advance, ok := f.face.Glyph(fixed.Point26_6{}, r)
	if ok {
		g.advance, g.box = advance.Round(), box
		g.mask = make([]uint8, 0, box.Dx()*box.Dy())
		for y := range box.Dy() {
			for x := range box.Dx() {
				_, _, _, alpha := mask.At(at.X+x, at.Y+y).RGBA()
				g.mask = append(g.mask, uint8(alpha>>8))
			}
		}
	}
	f.glyphs[r] = g
	return g
}

// width returns the width of a text in pixels.
func (f *typeface) width(text []byte) int {
	total := 0
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		total += f.glyph(r).advance
	}
	return total
}

// shorten returns a text that is at most so many pixels wide: a text that is wider loses its end, and has dots there. The text is changed.
func (f *typeface) shorten(text []byte, width int) []byte {
	const dots = "..."
	if f.width(text) <= width {
		return text
	}
	width -= len(dots) * f.glyph('.').advance
	at := 0
	for at < len(text) {
		r, size := utf8.DecodeRune(text[at:])
		if width -= f.glyph(r).advance; width < 0 {
			break
		}
		at += size
	}
	return append(text[:at], dots...)
}

// write paints a text with the pen starting at x on the baseline y.
func (f *typeface) write(p *Image, text []byte, x, y int, c color.RGBA) {
	for len(text) > 0 {
		r, size := utf8.DecodeRune(text)
		text = text[size:]
		g := f.glyph(r)
		box := g.box.Add(image.Pt(x, y))
		seen := box.Intersect(p.bounds())
		for row := seen.Min.Y; row < seen.Max.Y; row++ {
			line := g.mask[(row-box.Min.Y)*box.Dx():]
			for column := seen.Min.X; column < seen.Max.X; column++ {
				if alpha := line[column-box.Min.X]; alpha != 0 {
					p.blend(column, row, c, uint32(alpha))
				}
			}
		}
		x += g.advance
	}
}

// height returns the height of a line of text in pixels.
func (f *typeface) height() int { return f.ascent + f.descent }
