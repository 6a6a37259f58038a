package head

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYOLOX is [B,N,5+nc]: a row for each cell with the centre's offset from the cell's corner in cells, the logarithms of width and
// height in cells, an objectness, and a score for each class that is multiplied by it. Exports with --decode_in_inference have the centre
// and the sides in input pixels instead; the numbers tell which.
const LayoutYOLOX Layout = "yolox"

type yolox struct{ labelsAsScored }

func (yolox) describe() Description {
	return Description{
		Layout: LayoutYOLOX, Task: engine.Detect, Form: "[B,N,5+nc] with a box for each cell", Networks: "YOLOX", Gives: boxesWithClasses,
		Preset: "yolox", scanned: scan.Form{Raw: true},
	}
}

func (yolox) reads(n *network) [][]int { return n.single() }

func (h yolox) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 6 && shape[2] != -1 {
		return sizes{}, misfit(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-5, 0))}, nil
}

func (yolox) weigh(n *network, f *fit) (evidence, doubt string) {
	return n.weighCells(f, false)
}

func (yolox) boxMap(*fit) (engine.BoxMap, bool) { return engine.BoxMap{}, false }

func (yolox) decode(d *Decoder, dst []postprocess.Finding) ([]postprocess.Finding, error) {
	output, row := d.fit.outputs[0], 5+int64(d.now.classes)
	err := d.scanMap(&engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 5, Step: row, Next: 1},
		Count:  int(d.now.boxes), Classes: d.now.classes, Objectness: true,
	})
	if err != nil {
		return dst, err
	}
	cells, ok := d.now.cells(false)
	if !ok {
		return dst, d.unfit()
	}
	inPixels := decodedInside(d.parts[0].data, int(row), &cells, d.fit.width)
	d.place(func(c *scan.Candidate) {
		x, y, width, height := c.X1, c.Y1, c.X2, c.Y2
		if !inPixels {
			s, column, line := cells.cell(int(c.Index))
			stride := float32(s.stride)
			x, y = (x+float32(column))*stride, (y+float32(line))*stride
			width, height = exp(width)*stride, exp(height)*stride
		}
		c.Box = postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}
	})
	return d.finish(dst), nil
}

func exp(v float32) float32 { return float32(math.Exp(float64(v))) }

// decodedInside tells boxes in input pixels from raw ones by the last line of the coarsest scale: in pixels its centres are spread over the
// width of the input, raw they are offsets of a cell or two.
func decodedInside(rows []float32, row int, g *grid, width int) bool {
	columns := g.scales[g.count-1].width
	sum := float32(0)
	for i := len(rows) - columns*row; i < len(rows); i += row {
		sum += rows[i]
	}
	return sum/float32(columns) > float32(width)/4
}
