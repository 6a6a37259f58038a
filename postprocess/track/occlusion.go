package track

import (
	"math"

	"github.com/edge-infer/edge-infer/postprocess"
)

// shapeMemory remembers size and speed of an object while it was fully visible. When an object disappears behind a post, its box shrinks on
// one side and the filter's centre slows down; the remembered size and speed predict where it reappears.
type shapeMemory struct {
	width, height float32
	vx, vy        float32 // pixels per step
	growX, growY  float32 // change of the sides at the last detection, pixels per step
	speedKnown    bool    // a speed has been learned
	shrunk        float32 // steps for which the object has been smaller than remembered
}

// The memory follows within about ten steps, and only changes below these shares of a side. An object that stays smaller for relearnSteps
// has really become smaller.
const (
	memoryRate      = 0.1
	steadyTolerance = 0.05
	shrinkTolerance = 0.1
	relearnSteps    = 60
)

func (w *shapeMemory) start(b postprocess.Box) {
	*w = shapeMemory{width: b.Width(), height: b.Height()}
}

// update learns from a detection after the filter was updated.
func (w *shapeMemory) update(b postprocess.Box, m *kalmanBox, steps float32) {
	width, height := b.Width(), b.Height()
	w.growX, w.growY = m.width.velocity, m.height.velocity
	rate := float32(1 - math.Exp(-memoryRate*float64(steps)))
	if width < (1-shrinkTolerance)*w.width || height < (1-shrinkTolerance)*w.height {
		w.shrunk += steps
		if w.shrunk < relearnSteps {
			return
		}
		w.width, w.height = width, height
	}
	w.shrunk = 0
	if abs(width-w.width) < steadyTolerance*w.width && abs(height-w.height) < steadyTolerance*w.height {
		if !w.speedKnown {
			w.vx, w.vy, w.speedKnown = m.x.velocity, m.y.velocity, true
		}
		w.vx += rate * (m.x.velocity - w.vx)
		w.vy += rate * (m.y.velocity - w.vy)
	}
	w.width += growth(width, w.width, rate) * (width - w.width)
	w.height += growth(height, w.height, rate) * (height - w.height)
}

// growth returns the rate at which a side follows: growing is trusted more than shrinking.
func growth(now, remembered, rate float32) float32 {
	const faster = 3
	if now > remembered {
		return min(faster*rate, 1)
	}
	return rate
}

// restore gives the filter of a newly lost object the remembered size and speed.
func (w *shapeMemory) restore(m *kalmanBox) {
	if !w.speedKnown {
		return
	}
	restoreAxis(&m.x, &m.width, w.width, w.vx, w.growX)
	restoreAxis(&m.y, &m.height, w.height, w.vy, w.growY)
}

// restoreAxis keeps the edge that moved at the remembered speed; the other one was cut off by the obstacle.
func restoreAxis(centre, side *kalmanAxis, length, velocity, growth float32) {
	if missing := length - side.position; missing > shrinkTolerance*length {
		low, high := centre.velocity-growth/2, centre.velocity+growth/2
		if abs(low-velocity) < abs(high-velocity) {
			centre.position += missing / 2
		} else {
			centre.position -= missing / 2
		}
		side.position = length
	}
	centre.velocity = velocity
}
