package head

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Order of the outputs of heads that select boxes themselves and return one score and class number for each.
const (
	selectedBoxes = iota
	selectedScores
	selectedClasses
	selectedCount // number of boxes; absent where all rows count
)

// measureSelected checks that the outputs have as many boxes as scores and class numbers. The shapes begin with batch dimensions, as many
// as batch.
func measureSelected(h head, shapes [][]int64, batch int) (sizes, error) {
	boxes, scores, classes := shapes[selectedBoxes], shapes[selectedScores], shapes[selectedClasses]
	if len(boxes) != batch+2 || len(scores) != batch+1 || !slices.Equal(scores, classes) || !slices.Equal(scores, boxes[:batch+1]) ||
		boxes[batch+1] != 4 && boxes[batch+1] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: boxes[batch]}, nil
}

// coordinates is how a head writes the corners of a box.
type coordinates struct {
	yFirst bool // y1, x1, y2, x2 instead of x1, y1, x2, y2
	shares bool // of the input's sides instead of input pixels
}

// selectedDecoder decodes heads that select boxes themselves.
type selectedDecoder struct {
	boxes
	// coordinates returns the format of the boxes of an image.
	coordinates func(d *selectedDecoder, in *input) coordinates
}

func newSelectedDecoder(s *settings, format coordinates) decoder {
	return &selectedDecoder{newBoxes(s), func(*selectedDecoder, *input) coordinates { return format }}
}

func (d *selectedDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	format := d.coordinates(d, in)
	coordinates, scores, classes := in.tensors[selectedBoxes].data, in.tensors[selectedScores].data, in.tensors[selectedClasses].data
	count, err := d.count(in, len(scores))
	if err != nil {
		return dst, err
	}
	scaleX, scaleY := float32(1), float32(1)
	if format.shares {
		scaleX, scaleY = float32(d.match.width), float32(d.match.height)
	}
	d.beginList(count)
	for i, score := range scores[:count] {
		if d.padding(score) {
			continue
		}
		c := coordinates[4*i:][:4]
		row := [engine.CandidateFields]float32{c[0] * scaleX, c[1] * scaleY, c[2] * scaleX, c[3] * scaleY, score, classes[i]}
		if format.yFirst {
			row = [engine.CandidateFields]float32{c[1] * scaleX, c[0] * scaleY, c[3] * scaleX, c[2] * scaleY, score, classes[i]}
		}
		d.take(in, &row, int32(i))
	}
	return d.finish(in, dst), nil
}

// count returns the number of boxes of an image, most if the network does not output it. A number above most is an error.
func (d *selectedDecoder) count(in *input, most int) (int, error) {
	if len(in.tensors) <= selectedCount {
		return most, nil
	}
	numbers := in.tensors[selectedCount].data
	if len(numbers) != 1 || !(numbers[0] >= 0 && numbers[0] <= float32(most)) || numbers[0] != float32(int(numbers[0])) {
		return 0, fmt.Errorf("decode: %w: %v boxes of %d", ErrOutput, numbers[:min(1, len(numbers))], most)
	}
	return int(numbers[0]), nil
}
