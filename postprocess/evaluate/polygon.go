package evaluate

import (
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/postprocess"
)

// fine is the number of grid positions per pixel: pycocotools rasterizes outlines on such a grid, and the pixels must be the same.
const fine = 5

// outline collects where polygons cross the columns of an image.
type outline struct {
	width, height int
	crossings     []int // column after column: column*height + row
	last          [2]int
}

// fill returns the union of polygons, each x, y, x, y and so on.
func fill(polygons [][]float64, width, height int) postprocess.Runs {
	inside := make([]bool, width*height)
	for _, polygon := range polygons {
		o := outline{width: width, height: height}
		o.draw(polygon)
		slices.Sort(o.crossings)
		for i := 0; i+1 < len(o.crossings); i += 2 {
			for at := o.crossings[i]; at < o.crossings[i+1]; at++ {
				inside[at] = true
			}
		}
	}
	runs, within, length := postprocess.Runs{}, false, uint32(0)
	for _, in := range inside {
		if in != within {
			runs, within, length = append(runs, length), in, 0
		}
		length++
	}
	return append(runs, length)
}

// draw walks along the border from corner to corner in steps of one grid position.
func (o *outline) draw(polygon []float64) {
	corners := len(polygon) / 2
	place := func(i int) [2]int {
		i %= corners
		return [2]int{int(math.Floor(fine*polygon[2*i] + 0.5)), int(math.Floor(fine*polygon[2*i+1] + 0.5))}
	}
	for i := range corners {
		from, to := place(i), place(i+1)
		long := 0 // the axis with steps of 1
		if abs(to[1]-from[1]) > abs(to[0]-from[0]) {
			long = 1
		}
		steps := abs(to[long] - from[long])
		low, high, back := from, to, from[long] > to[long]
		if back { // both directions of an edge visit the same positions
			low, high = to, from
		}
		slope := 0.0
		if steps > 0 {
			slope = float64(high[1-long]-low[1-long]) / float64(steps)
		}
		for step := range steps + 1 {
			t := step
			if back {
				t = steps - step
			}
			var at [2]int
			at[long], at[1-long] = low[long]+t, int(math.Floor(float64(low[1-long])+slope*float64(t)+0.5))
			o.visit(at, i == 0 && step == 0)
		}
	}
}

// visit moves to a position and records it if the middle of a column lies between it and the last one.
func (o *outline) visit(at [2]int, first bool) {
	left := min(at[0], o.last[0])
	if !first && at[0] != o.last[0] && left >= 0 && left%fine == fine/2 && left/fine < o.width {
		row := (max(min(at[1], o.last[1]), 0) + fine/2) / fine
		o.crossings = append(o.crossings, left/fine*o.height+min(row, o.height))
	}
	o.last = at
}

func abs(v int) int { return max(v, -v) }
