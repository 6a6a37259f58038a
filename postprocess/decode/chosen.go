package decode

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// order is how such a head writes a box.
type order struct {
	yFirst bool // y1, x1, y2, x2 instead of x1, y1, x2, y2
	// scaleX and scaleY take coordinates to pixels of the input.
	scaleX, scaleY float32
}

// chosen makes candidates of the boxes that the network has chosen.
func (d *Decoder) chosen(o order) error {
	boxes, scores, classes := d.parts[head.SelectedBoxes].data, d.parts[head.SelectedScores].data, d.parts[head.SelectedClasses].data
	count, err := d.count(len(scores))
	if err != nil {
		return err
	}
	d.reserve(count)
	list, stats := d.candidates[:count], &d.img.stats
	for i, score := range scores[:count] {
		if d.padding(score) {
			continue
		}
		b := boxes[4*i:][:4]
		row := [engine.CandidateFields]float32{b[0] * o.scaleX, b[1] * o.scaleY, b[2] * o.scaleX, b[3] * o.scaleY, score, classes[i]}
		if o.yFirst {
			row[0], row[1], row[2], row[3] = b[1]*o.scaleX, b[0]*o.scaleY, b[3]*o.scaleX, b[2]*o.scaleY
		}
		d.take(&row, &list[stats.Candidates], int32(i))
	}
	d.candidates = list[:stats.Candidates]
	return nil
}

// count is how many boxes there are, of so many that there is room for.
func (d *Decoder) count(room int) (int, error) {
	if len(d.parts) <= head.SelectedCount {
		return room, nil
	}
	numbers := d.parts[head.SelectedCount].data
	if len(numbers) != 1 || !(numbers[0] >= 0 && numbers[0] <= float32(room)) || numbers[0] != float32(int(numbers[0])) {
		return 0, fmt.Errorf("decode: %w: %v boxes of %d", ErrOutput, numbers[:min(1, len(numbers))], room)
	}
	return int(numbers[0]), nil
}

// inShares tells coordinates that are shares of the input's sides from pixels: no box over the threshold ends beyond 2.
func (d *Decoder) inShares() bool {
	scores := d.parts[head.SelectedScores].data
	count, _ := d.count(len(scores)) // a wrong one is refused afterwards
	shares := false
	for i, score := range scores[:count] {
		if score >= d.MinScore {
			if slices.Max(d.parts[head.SelectedBoxes].data[4*i:][:4]) > 2 {
				return false
			}
			shares = true
		}
	}
	return shares
}

// pixels is the order of boxes in pixels of the input, x first.
func pixels() order { return order{scaleX: 1, scaleY: 1} }

// shares is the order of boxes in shares of the input's sides.
func (d *Decoder) shares(yFirst bool) order {
	return order{yFirst: yFirst, scaleX: float32(d.fit.Width), scaleY: float32(d.fit.Height)}
}
