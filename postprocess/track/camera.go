package track

import "slices"

// compensateJump moves the unmatched tracks by the displacement of the others if those agree.
func (t *Tracker) compensateJump() {
	const agreeing = 3
	t.shiftX, t.shiftY = t.shiftX[:0], t.shiftY[:0]
	side := float32(0)
	for _, i := range t.candidates {
		if o := &t.objects[i]; o.Index >= 0 {
			t.shiftX = append(t.shiftX, (o.X1+o.X2-o.predicted.X1-o.predicted.X2)/2)
			t.shiftY = append(t.shiftY, (o.Y1+o.Y2-o.predicted.Y1-o.predicted.Y2)/2)
			side += o.Width() + o.Height()
		}
	}
	n := len(t.shiftX)
	if n < agreeing || n == len(t.candidates) {
		return
	}
	side /= float32(2 * n)
	x, spreadX := medianSpread(t.shiftX)
	y, spreadY := medianSpread(t.shiftY)
	// A jump is well above the detector's noise and shared by at least half of the objects.
	const noise = 0.05
	if length := abs(x) + abs(y); length < noise*side || spreadX+spreadY > length {
		return
	}
	for _, i := range t.candidates {
		if o := &t.objects[i]; o.Index < 0 {
			o.motion.shift(x, y)
			o.predicted = o.motion.box()
			o.Box = o.predicted
		}
	}
}

// medianSpread returns the median and the interquartile range.
func medianSpread(values []float32) (median, spread float32) {
	slices.Sort(values)
	n := len(values)
	return values[n/2], values[(3*n)/4] - values[n/4]
}

func abs(v float32) float32 { return max(v, -v) }
