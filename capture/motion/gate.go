// Package motion detects motion in camera images, so that still images need no inference (Gate), and estimates the motion of the camera
// itself (Estimator). Both work on small grey thumbnails.
package motion

import (
	rectangle "image"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Settings configures a Gate.
type Settings struct {
	// Enabled is false to report every image as moving, without analysing it.
	Enabled bool
	// Sensitivity is from 0 to 1; at DefaultSensitivity a person of 1 % of the image area is detected, at 1 a bird.
	Sensitivity float64
	// X, Y, Width and Height are the analysed part of the image, as shares of its sides; all of it if Width or Height is 0.
	X, Y, Width, Height float64
}

// DefaultSensitivity is a medium sensitivity.
const DefaultSensitivity = 0.5

// holdTime is how long the gate stays open after the last motion, so that an object that stops gets another inference and motion in a
// dropped image is not lost.
const holdTime = time.Second

// Gate detects motion of one camera. It keeps a background of thumbnails, a running mean per pixel, and how much each pixel flickers.
// Several neighbouring pixels that differ from the background by a multiple of their flicker are motion. Set is safe for concurrent use;
// Still is called by one goroutine, with every image in order.
type Gate struct {
	settings atomic.Pointer[Settings]

	// Still's goroutine only.
	reducer       Reducer
	background    []uint16 // grey values times 256
	flicker       []uint16 // mean absolute difference from the background, times 256
	changedPixels []uint8  // number of differing pixels in each cell of cellSide*cellSide
	used          Settings // settings of the background
	width         int
	learned       int   // images in the background, up to warmUpImages
	lastMotion    int64 // time of the last motion
}

const (
	cellSide = 4
	// warmUpImages is the number of images in a background; before that everything counts as moving.
	warmUpImages = 10
	// The background follows a pixel by 1/16 of a difference within its flicker and by 1/64 of a larger one, so that lasting changes become
	// part of it. Flicker is learned more slowly.
	followStill, followMoved, followFlicker = 4, 6, 5
	// minFlicker and maxFlicker bound a pixel's flicker: a bush in the wind, not a road.
	minFlicker, maxFlicker = 1 << 8, 24 << 8
	// lightChangePercent is the percentage of differing pixels that means a change of light: the background restarts.
	lightChangePercent = 60
)

// Set changes the settings from the next image on.
func (g *Gate) Set(s Settings) { g.settings.Store(&s) }

// Still reports whether nothing moves in an image taken at a time, in nanoseconds of CLOCK_MONOTONIC. It takes less than 0.3 ms of a core
// at 1920x1080 and allocates when the image size changes. An invalid image is not still.
func (g *Gate) Still(image engine.Image, at int64) bool {
	s := g.settings.Load()
	if s == nil || !s.Enabled {
		return false
	}
	small, err := g.reduce(&image, s)
	if err != nil {
		return false
	}
	if small.Width != g.width || len(small.Pix) != len(g.background) || *s != g.used {
		g.begin(small)
		g.used = *s
	}
	if g.detect(small, s.Sensitivity) {
		g.lastMotion = at
	}
	return at-g.lastMotion > int64(holdTime)
}

// reduce returns the thumbnail of the analysed part.
func (g *Gate) reduce(image *engine.Image, s *Settings) (*Thumbnail, error) {
	if err := image.Check(); err != nil {
		return nil, err
	}
	g.reducer.Samples = 1
	if s.Width > 0 && s.Height > 0 {
		part := luma(image)
		x, y := int(s.X*float64(image.Width))&^1, int(s.Y*float64(image.Height))
		width, height := max(2, int(s.Width*float64(image.Width))&^1), max(1, int(s.Height*float64(image.Height)))
		x, y = min(x, max(0, image.Width-width)&^1), min(y, max(0, image.Height-height))
		part = part.Part(rectangle.Rect(x, y, min(x+width, image.Width), min(y+height, image.Height)))
		return g.reducer.Reduce(&part)
	}
	return g.reducer.Reduce(image)
}

// luma returns the image without separate colour planes, so that any part of it is an image again.
func luma(image *engine.Image) engine.Image {
	part := *image
	if part.Format == engine.NV12 {
		part.Format = engine.GRAY8
	}
	return part
}

// begin starts a new background from an image.
func (g *Gate) begin(small *Thumbnail) {
	g.width = small.Width
	if len(g.background) != len(small.Pix) {
		g.background, g.flicker = make([]uint16, len(small.Pix)), make([]uint16, len(small.Pix))
		g.changedPixels = make([]uint8, (small.Width/cellSide+2)*(small.Height/cellSide+2))
	}
	for i, value := range small.Pix {
		g.background[i], g.flicker[i] = uint16(value)<<8, 2*minFlicker
	}
	g.learned = 0
}

// detect compares an image with the background, updates the background and reports motion.
func (g *Gate) detect(small *Thumbnail, sensitivity float64) bool {
	// From 8 times the flicker and 12 pixels at sensitivity 0 to 3 times and 2 pixels at 1.
	times, enough := uint32(8.5-5*sensitivity), 12-int(10*sensitivity)
	clear(g.changedPixels)
	across := small.Width/cellSide + 2 // plus an empty column, so that a square does not wrap around
	differ := 0
	for y := range small.Height {
		row := small.Pix[y*small.Width:][:small.Width]
		background, flicker := g.background[y*small.Width:][:len(row)], g.flicker[y*small.Width:][:len(row)]
		cells := g.changedPixels[y/cellSide*across:][:across]
		for x, value := range row {
			was, usual := int32(background[x]), uint32(flicker[x])
			difference := int32(value)<<8 - was
			size := uint32(difference)
			if difference < 0 {
				size = uint32(-difference)
			}
			if size > times*usual {
				cells[x/cellSide]++
				differ++
				background[x] = uint16(was + difference>>followMoved)
				// Flicker grows where a pixel keeps changing, at a bounded rate: one passing object must not desensitize it.
				flicker[x] = uint16(min(maxFlicker, usual+usual>>7+1))
				continue
			}
			background[x] = uint16(was + difference>>followStill)
			flicker[x] = uint16(max(minFlicker, int32(usual)+(int32(size)-int32(usual))>>followFlicker))
		}
	}
	if 100*differ > lightChangePercent*len(small.Pix) {
		g.begin(small)
		return true
	}
	if g.learned < warmUpImages {
		g.learned++
		return true
	}
	return g.gathered(across, enough)
}

// gathered reports whether enough pixels differ within a square of two by two cells; the squares overlap, so that a small object is never
// split.
func (g *Gate) gathered(across, enough int) bool {
	for i := 0; i+across+1 < len(g.changedPixels); i++ {
		if int(g.changedPixels[i])+int(g.changedPixels[i+1])+int(g.changedPixels[i+across])+int(g.changedPixels[i+across+1]) >= enough {
			return true
		}
	}
	return false
}
