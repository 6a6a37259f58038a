package track

// displacement is the difference between a matched object's detection and its prediction.
type displacement struct {
	x, y   float32 // predicted centre
	dx, dy float32
}

// Limits of compensateCommonMotion.
const (
	commonMotionObjects  = 3
	commonMotionResidual = 0.6 // of the sum of squared displacements
)

// compensateCommonMotion moves the unmatched tracks by the displacement and zoom that the matched ones have in common, fitted by least
// squares, if these explain most of their displacements.
func (t *Tracker) compensateCommonMotion() {
	t.displacements = t.displacements[:0]
	var mean displacement
	for _, i := range t.candidates {
		if o := &t.objects[i]; o.Index >= 0 {
			d := displacement{x: (o.predicted.X1 + o.predicted.X2) / 2, y: (o.predicted.Y1 + o.predicted.Y2) / 2}
			d.dx, d.dy = (o.X1+o.X2)/2-d.x, (o.Y1+o.Y2)/2-d.y
			t.displacements = append(t.displacements, d)
			mean.x += d.x
			mean.y += d.y
			mean.dx += d.dx
			mean.dy += d.dy
		}
	}
	n := float32(len(t.displacements))
	if n < commonMotionObjects || len(t.displacements) == len(t.candidates) {
		return
	}
	mean = displacement{mean.x / n, mean.y / n, mean.dx / n, mean.dy / n}
	var distances, products, before, after float32
	for _, d := range t.displacements {
		distances += square(d.x-mean.x) + square(d.y-mean.y)
		products += (d.x-mean.x)*(d.dx-mean.dx) + (d.y-mean.y)*(d.dy-mean.dy)
		before += square(d.dx) + square(d.dy)
	}
	if !(distances > 0) {
		return
	}
	zoom := products / distances
	for _, d := range t.displacements {
		after += square(d.dx-mean.dx-zoom*(d.x-mean.x)) + square(d.dy-mean.dy-zoom*(d.y-mean.y))
	}
	if after > commonMotionResidual*before {
		return
	}
	for _, i := range t.candidates {
		if o := &t.objects[i]; o.Index < 0 {
			x, y := (o.predicted.X1+o.predicted.X2)/2, (o.predicted.Y1+o.predicted.Y2)/2
			o.motion.shift(mean.dx+zoom*(x-mean.x), mean.dy+zoom*(y-mean.y))
			o.predicted = o.motion.box()
			o.Box = o.predicted
		}
	}
}

func abs(v float32) float32 { return max(v, -v) }
