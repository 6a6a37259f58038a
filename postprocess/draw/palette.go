package draw

import (
	"image/color"
	"math"
)

// Colour returns the colour of a class. Hues step by the golden angle, so that neighbouring classes differ most.
func Colour(class int) color.RGBA {
	const golden = 0.61803398875
	_, hue := math.Modf(0.05 + golden*float64(class&0xffff))
	sector, part := math.Modf(6 * hue)
	// Two levels of brightness distinguish classes with similar hues.
	high := 255 - 60*float64(class/16&1)
	low := 0.15 * high
	rise, fall := low+(high-low)*part, high-(high-low)*part
	r, g, b := high, low, fall
	switch int(sector) {
	case 0:
		r, g, b = high, rise, low
	case 1:
		r, g, b = fall, high, low
	case 2:
		r, g, b = low, high, rise
	case 3:
		r, g, b = low, fall, high
	case 4:
		r, g, b = rise, low, high
	}
	return color.RGBA{uint8(r), uint8(g), uint8(b), 255}
}

// ink returns black or white, whichever contrasts more with the colour.
func ink(ground color.RGBA) color.RGBA {
	if 299*int(ground.R)+587*int(ground.G)+114*int(ground.B) > 128000 {
		return color.RGBA{0, 0, 0, 255}
	}
	return color.RGBA{255, 255, 255, 255}
}
