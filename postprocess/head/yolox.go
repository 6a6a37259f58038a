package head

import (
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutYOLOX is [B,N,5+nc]: a row for each cell with the centre's offset from the cell's corner in cells, the logarithms of width and
// height in cells, an objectness, and a score for each class that is multiplied by it. Exports with --decode_in_inference have the centre
// and the sides in input pixels instead; the values decide.
const LayoutYOLOX Layout = "yolox"

type yolox struct{ scoredLabels }

func (yolox) describe() Description {
	return Description{
		Layout: LayoutYOLOX, Task: engine.Detect, Form: "[B,N,5+nc] with a box for each cell", Networks: "YOLOX", Gives: boxesWithClasses,
		Preset: "yolox", ScanFormat: scan.Format{Raw: true},
	}
}

func (yolox) findOutputs(n *network) [][]int { return n.floats() }

func (h yolox) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	if len(shape) != 3 || shape[2] < 6 && shape[2] != -1 {
		return sizes{}, mismatch(h, shapes)
	}
	return sizes{boxes: shape[1], classes: int(max(shape[2]-5, 0))}, nil
}

func (yolox) recognise(n *network, m *match) (evidence, doubt string) {
	if n.namedAsYOLOv6(m) || n.endsInClass(m) || n.sixUnclear(m) {
		return "", ""
	}
	return n.recogniseCells(m, false)
}

func (yolox) boxMap(m *match) (engine.BoxMap, bool) {
	output, row := m.outputs[0], 5+int64(m.classes)
	return engine.BoxMap{
		Boxes:  engine.Numbers{Output: output, Step: row, Next: 1},
		Scores: engine.Numbers{Output: output, Offset: 5, Step: row, Next: 1},
		Count:  int(m.boxes), Classes: m.classes, Objectness: true,
	}, m.boxes > 0 && m.classes > 0
}

func (yolox) newDecoder(s *settings) decoder { return &yoloxDecoder{newBoxes(s)} }

type yoloxDecoder struct{ boxes }

func (d *yoloxDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	if err := d.scan(in); err != nil {
		return dst, err
	}
	cells, ok := in.match.grid(false)
	if !ok {
		return dst, in.mismatch()
	}
	pixels := inPixels(in.tensors[0].data, 5+in.match.classes, &cells, d.match.width)
	d.place(&in.stats, func(c *scan.Candidate) {
		x, y := c.X1, c.Y1
		width, height := c.X2, c.Y2
		if !pixels {
			s, column, line := cells.cell(int(c.Index))
			stride := float32(s.stride)
			x, y = (x+float32(column))*stride, (y+float32(line))*stride
			width, height = exp(width)*stride, exp(height)*stride
		}
		c.Box = postprocess.Box{X1: x - width/2, Y1: y - height/2, X2: x + width/2, Y2: y + height/2}
	})
	return d.finish(in, dst), nil
}

// inPixels reports whether boxes are in input pixels, by the last line of the coarsest scale: in pixels its centres are spread over the
// width of the input, raw they are offsets of a cell or two.
func inPixels(rows []float32, row int, g *grid, width int) bool {
	columns := g.scales[g.count-1].width
	sum := float32(0)
	for i := len(rows) - columns*row; i < len(rows); i += row {
		sum += rows[i]
	}
	return sum/float32(columns) > float32(width)/4
}
