package head

import (
	"fmt"
	"math"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutCenterNet is [B,nc,h,w], [B,2,h,w] and [B,2,h,w]: a heat map of the objects' centres for each class, before or after its sigmoid;
// the values decide; and for each cell width and height, and the centre's offset from the cell's corner, in cells. A centre is a cell whose
// score none of its eight neighbours exceeds (Zhou et al. 2019, Objects as Points), and boxes are not suppressed.
const LayoutCenterNet Layout = "centernet"

type centerNet struct {
	scoredLabels
	noBoxMap
}

func (centerNet) describe() Description {
	return Description{
		Layout: LayoutCenterNet, Task: engine.Detect, Form: "[B,nc,h,w] with [B,2,h,w] and [B,2,h,w]", Networks: "CenterNet (Objects as Points)",
		Gives: boxesWithClasses, Preset: "centernet", NMSFree: true,
	}
}

// Order of the outputs.
const (
	centerHeat = iota
	centerSides
	centerOffsets
)

// findOutputs uses the outputs' names, because sides and offsets have the same shape, or without known names the order of CenterNet's own
// export.
func (centerNet) findOutputs(n *network) [][]int {
	all := n.named([]string{"hm", "heatmap", "heat_map"}, []string{"wh", "size"}, []string{"reg", "offset", "off"})
	if all == nil && len(n.outputs) == 3 {
		all = []int{centerHeat, centerSides, centerOffsets}
	}
	if all == nil {
		return nil
	}
	return [][]int{all}
}

func (h centerNet) measure(shapes [][]int64) (sizes, error) {
	heat, sides, offsets := shapes[centerHeat], shapes[centerSides], shapes[centerOffsets]
	m, ok := newScaleMap(0, heat, false)
	if !ok || len(sides) != 4 || sides[1] != 2 || !slices.Equal(sides, offsets) || !slices.Equal(sides[2:], heat[2:]) {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: int64(m.cells()), classes: m.channels}, nil
}

func (h centerNet) recognise(n *network, m *match) (evidence, doubt string) {
	shape := n.outputs[m.outputs[centerHeat]].Shape
	if !n.isScale(shape[2], shape[3]) {
		return "", ""
	}
	switch {
	case len(n.outputs) > 3:
		return "", "there are further outputs (--layout centernet reads the boxes anyway)"
	case !hasName(n.outputs[m.outputs[centerSides]].Name, "wh", "size"):
		return "", "the outputs' names do not specify which of two maps has the sides (confirm that the second has with --layout centernet)"
	}
	return fmt.Sprintf("heat maps of %s, sides and offsets in cells of %d pixels", plural(m.classes, "class"), n.width/int(shape[3])), ""
}

func (centerNet) newDecoder(s *settings) decoder {
	return &centerNetDecoder{boxes: newBoxes(s), columns: s.columnMinScores()}
}

type centerNetDecoder struct {
	boxes
	columns []float32 // minimum score of each class
}

func (d *centerNetDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	heat := in.tensors[centerHeat].data
	shape := in.shapes[centerHeat]
	width, height := int(shape[3]), int(shape[2])
	logits := slices.ContainsFunc(heat, func(v float32) bool { return v < scan.MinScore })
	if in.scoresOnly {
		for _, v := range heat {
			if v != v || !logits && v > scan.MaxScore {
				in.stats.BadScores++
			}
		}
		return dst, nil
	}
	d.beginList(min(len(heat), 2*d.MaxCandidates))
	for class := range d.match.classes {
		least := d.columns[class]
		if least > 1 { // not wanted
			continue
		}
		if logits {
			least = float32(math.Log(float64(least) / (1 - float64(least))))
		}
		plane := heat[class*width*height:][:width*height]
		for cell, v := range plane {
			if v < least || !isPeak(plane, cell, width, height) {
				continue
			}
			if logits {
				v = scan.Sigmoid(v)
			}
			d.addCentre(in, cell, width, height, class, v)
		}
	}
	return d.finish(in, dst), nil
}

// isPeak reports whether no neighbour of a cell has a higher score.
func isPeak(plane []float32, cell, width, height int) bool {
	x, y := cell%width, cell/width
	for line := max(y-1, 0); line <= min(y+1, height-1); line++ {
		for _, v := range plane[line*width+max(x-1, 0) : line*width+min(x+1, width-1)+1] {
			if v > plane[cell] {
				return false
			}
		}
	}
	return true
}

// addCentre adds the box of a centre as a candidate.
func (d *centerNetDecoder) addCentre(in *input, cell, width, height, class int, score float32) {
	sides, offsets := in.tensors[centerSides].data, in.tensors[centerOffsets].data
	cells := width * height
	x, y := float32(cell%width)+offsets[cell], float32(cell/width)+offsets[cells+cell]
	w, h := sides[cell]/2, sides[cells+cell]/2
	scaleX, scaleY := float32(d.match.width)/float32(width), float32(d.match.height)/float32(height)
	if len(d.candidates) == cap(d.candidates) {
		d.candidates = d.best(d.candidates)
	}
	row := [engine.CandidateFields]float32{(x - w) * scaleX, (y - h) * scaleY, (x + w) * scaleX, (y + h) * scaleY, score, float32(class)}
	d.take(in, &row, int32(class*cells+cell))
}
