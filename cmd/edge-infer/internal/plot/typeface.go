package plot

import (
	"math"
	"sync"

	"golang.org/x/image/font"
	"golang.org/x/image/font/gofont/gomedium"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
)

// typeface is the font of PNG diagrams; those in SVG are measured by it and shown in what the reader's machine has, which is about as wide.
var typeface = sync.OnceValue(func() *sfnt.Font {
	f, err := sfnt.Parse(gomedium.TTF)
	if err != nil {
		panic(err) // it is part of the program
	}
	return f
})

// outlineSize is the size at which outlines are taken, in pixels to the em: so large that rounding to a 64th of a pixel does not show.
const outlineSize = 1024

// glyphs calls each for every character of the text with its outline and where it stands, in ems from the text's beginning, and returns the
// text's width in ems. each may be nil.
func glyphs(text string, each func(outline sfnt.Segments, at float64)) (width float64) {
	var buffer sfnt.Buffer
	face, ppem := typeface(), fixed.I(outlineSize)
	for _, r := range text {
		index, err := face.GlyphIndex(&buffer, r)
		if err != nil {
			continue
		}
		if each != nil {
			if outline, err := face.LoadGlyph(&buffer, index, ppem, nil); err == nil {
				each(outline, width)
			}
		}
		if advance, err := face.GlyphAdvance(&buffer, index, ppem, font.HintingNone); err == nil {
			width += ems(advance)
		}
	}
	return width
}

func ems(v fixed.Int26_6) float64 { return float64(v) / 64 / outlineSize }

// textWidth is the width of a text in points.
func textWidth(text string, size float64) float64 { return math.Ceil(size * glyphs(text, nil)) }
