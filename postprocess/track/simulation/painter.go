package simulation

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
)

// ImageWidth and ImageHeight are the size of a frame's grey image.
const ImageWidth, ImageHeight = Width / 4, Height / 4

// painter renders what a camera sees: houses and ground on a sphere around it, and people in front as flat figures.
type painter struct {
	panorama []byte
	random   *rand.Rand
}

// The panorama spans these angles, in radians and rows from the top.
const (
	// The panorama covers these angles, in radians and rows from the top.
	panoramaWidth, panoramaHeight = 2048, 1024
	spanAcross, spanDown          = 2.6, 1.3
)

// newPainter covers the panorama with rectangles of all sizes, like houses, windows, stones and shadows.
func newPainter(seed uint64) *painter {
	p := &painter{panorama: make([]byte, panoramaWidth*panoramaHeight), random: rand.New(rand.NewPCG(seed, 77))}
	for i := range p.panorama {
		p.panorama[i] = 110
	}
	for i := range 1500 {
		side := 8 + 400/(1+i/6)
		x, y := p.random.IntN(panoramaWidth), p.random.IntN(panoramaHeight)
		w, h := 4+p.random.IntN(side), 4+p.random.IntN(side)
		shade := 60 + p.random.IntN(120)
		for row := y; row < min(y+h, panoramaHeight); row++ {
			for column := x; column < min(x+w, panoramaWidth); column++ {
				at := &p.panorama[row*panoramaWidth+column]
				*at = byte((int(*at) + 2*shade) / 3)
			}
		}
	}
	return p
}

// paint returns the image of a camera, row by row.
func (p *painter) paint(c *camera, figures []figure, night bool) []byte {
	const small = Width / ImageWidth
	img := make([]byte, ImageWidth*ImageHeight)
	for y := range ImageHeight {
		for x := range ImageWidth {
			dx, dy, dz := c.ray((float64(x)+0.5)*small, (float64(y)+0.5)*small)
			across := math.Atan2(dx, dz)/spanAcross + 0.5
			down := math.Atan2(dy, math.Hypot(dx, dz))/spanDown + 0.4
			img[y*ImageWidth+x] = p.background(across*panoramaWidth, down*panoramaHeight)
		}
	}
	figures = slices.Clone(figures)
	slices.SortFunc(figures, func(a, b figure) int { return cmp.Compare(b.depth, a.depth) })
	for i := range figures {
		f := &figures[i]
		w, h := f.whole.Width(), f.whole.Height()
		for y := max(0, int(f.whole.Y1/small)); y < min(ImageHeight, int(f.whole.Y2/small)); y++ {
			for x := max(0, int(f.whole.X1/small)); x < min(ImageWidth, int(f.whole.X2/small)); x++ {
				part := (int(6*(float32(x)*small-f.whole.X1)/w) + 3*int(6*(float32(y)*small-f.whole.Y1)/h) + 5*f.ID) % 7
				img[y*ImageWidth+x] = byte(40 + 25*part)
			}
		}
	}
	for i, v := range img {
		if night {
			v /= 3
		}
		img[i] = byte(max(0, min(255, int(v)+p.random.IntN(7)-3)))
	}
	return img
}

// background interpolates the panorama; its edges are extended.
func (p *painter) background(x, y float64) byte {
	x, y = max(0, min(panoramaWidth-2, x)), max(0, min(panoramaHeight-2, y))
	i, j := int(x), int(y)
	a, b := x-float64(i), y-float64(j)
	one, two := p.panorama[j*panoramaWidth+i:], p.panorama[(j+1)*panoramaWidth+i:]
	return byte((1-b)*((1-a)*float64(one[0])+a*float64(one[1])) + b*((1-a)*float64(two[0])+a*float64(two[1])))
}
