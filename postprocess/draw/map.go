package draw

import (
	"image"
	"image/color"
	"math"
	"strconv"

	"github.com/edge-infer/edge-infer/postprocess"
)

// mapAlpha is the opacity of maps, of 255.
const mapAlpha = 130

// maxLegend bounds the classes in a legend.
const maxLegend = 12

// Map tints every pixel by its class, or by its depth relative to the range of depths, and paints a legend with the statistics of the whole
// map. Pixels without a value are not changed.
func (p *Painter) Map(img Image, m *postprocess.DenseMap, stats *postprocess.PixelStats) error {
	if err := img.Validate(); err != nil {
		return err
	}
	face, err := p.face(img.Height)
	if err != nil {
		return err
	}
	var colours [256]color.RGBA
	for i := range colours {
		colours[i] = Colour(i)
		if m.Depths != nil {
			colours[i] = Colormap(float32(i) / 255)
		}
	}
	span := max(stats.High-stats.Low, math.SmallestNonzeroFloat32)
	for y := range img.Height {
		for x := range img.Width {
			if !m.Contains(x, y) {
				continue
			}
			column, row := m.CellAt(x, y)
			cell := row*m.Width + column
			if m.Depths == nil {
				if class := m.Classes[cell]; class != postprocess.NoClass {
					img.blend(x, y, colours[class], mapAlpha)
				}
			} else if depth := m.Depths[cell]; depth-depth == 0 {
				img.blend(x, y, colours[uint8(255*min(max((depth-stats.Low)/span, 0), 1))], mapAlpha)
			}
		}
	}
	if m.Depths == nil {
		p.classes(&img, face, stats)
	} else if stats.Known > 0 {
		p.depths(&img, face, stats)
	}
	return nil
}

// classes paints a legend of the largest shares, downwards from the upper left corner.
func (p *Painter) classes(img *Image, face *typeface, stats *postprocess.PixelStats) {
	height := face.ascent + face.descent
	shares := stats.Shares
	for line := 1; line <= min(maxLegend, img.Height/height); line++ {
		largest := 0
		for class := range shares {
			if shares[class] > shares[largest] {
				largest = class
			}
		}
		if shares[largest] <= 0 {
			return
		}
		p.text = append(p.text[:0], postprocess.Label(p.Labels, largest)...)
		p.text = append(strconv.AppendFloat(append(p.text, ' '), 100*float64(shares[largest]), 'f', 1, 64), '%')
		p.note(img, face, image.Rect(0, line*height, 0, line*height), Colour(largest))
		shares[largest] = 0
	}
}

// depths paints a legend of minimum, median and maximum.
func (p *Painter) depths(img *Image, face *typeface, stats *postprocess.PixelStats) {
	height := face.ascent + face.descent
	span := max(stats.High-stats.Low, math.SmallestNonzeroFloat32)
	for line, depth := range [...]float32{stats.Low, stats.Median, stats.High} {
		p.text = strconv.AppendFloat(p.text[:0], float64(depth), 'g', 4, 32)
		p.note(img, face, image.Rect(0, (line+1)*height, 0, (line+1)*height), Colormap((depth-stats.Low)/span))
	}
}

// Colormap returns the colour of a value from 0 to 1, from dark violet through green to bright yellow. Lightness and hue are linear in
// OKLab (Ottosson, "A perceptual color space for image processing", 2020).
func Colormap(share float32) color.RGBA {
	t := float64(share)
	lightness, chroma, hue := .25+.65*t, .12, (300-200*t)*math.Pi/180
	a, b := chroma*math.Cos(hue), chroma*math.Sin(hue)
	cube := func(v float64) float64 { return v * v * v }
	l := cube(lightness + .3963377774*a + .2158037573*b)
	m := cube(lightness - .1055613458*a - .0638541728*b)
	s := cube(lightness - .0894841775*a - 1.2914855480*b)
	return color.RGBA{
		level(4.0767416621*l - 3.3077115913*m + .2309699292*s),
		level(-1.2684380046*l + 2.6097574011*m - .3413193965*s),
		level(-.0041960863*l - .7034186147*m + 1.7076147010*s), 255,
	}
}

// level converts linear light to sRGB.
func level(light float64) uint8 {
	light = min(max(light, 0), 1)
	if light <= .0031308 {
		return uint8(255*12.92*light + .5)
	}
	return uint8(255*(1.055*math.Pow(light, 1/2.4)-.055) + .5)
}
