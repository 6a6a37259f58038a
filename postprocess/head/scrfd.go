package head

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutSCRFD is [N,1] and [N,4] for each stride from 8 on, with one or two boxes in each cell: the score of a face, after its sigmoid, and
// the distances of the cell's corner to the left, top, right and bottom side in cells; optionally [N,10] with five keypoints as offsets
// from that corner in cells. [B,N,1] and so on have a batch. Source: the detector of insightface.
const LayoutSCRFD Layout = "scrfd"

// Columns of a face detector's outputs.
const (
	faceBox       = 4
	facePoints    = 5
	faceKeypoints = 2 * facePoints
)

// faceKeypointNames are from the person's own point of view.
func faceKeypointNames() []string {
	return []string{"right_eye", "left_eye", "nose", "right_mouth", "left_mouth"}
}

type scrfd struct {
	scoredLabels
	noBoxMap
	scales    int  // of this network
	unbatched bool // its outputs have no batch
}

func (h scrfd) describe() Description {
	return Description{
		Layout: LayoutSCRFD, Task: engine.Detect, Form: "[N,1], [N,4] and optionally [N,10] for each scale", Networks: "SCRFD of insightface",
		Gives: "box, score and keypoints of each face", Preset: "scrfd", ScanFormat: scan.Format{Raw: true}, Unbatched: h.unbatched,
	}
}

func (h scrfd) configure(n *network) head {
	h.scales = len(n.columns(1))
	h.unbatched = h.scales > 0 && len(n.outputs[0].Shape) == 2
	return h
}

// columns returns the floating point outputs with rows of count columns, those with the most rows first. It returns nil if the outputs have
// different ranks.
func (n *network) columns(count int64) (all []int) {
	for i := range n.outputs {
		o := &n.outputs[i]
		rank := len(o.Shape)
		if rank != len(n.outputs[0].Shape) || rank != 2 && rank != 3 || o.Type != engine.Float32 && o.Type != engine.Float16 {
			return nil
		}
		if o.Shape[rank-1] == count {
			all = append(all, i)
		}
	}
	rows := func(output int) int64 {
		shape := n.outputs[output].Shape
		return shape[len(shape)-2]
	}
	slices.SortStableFunc(all, func(a, b int) int { return cmp.Compare(rows(b), rows(a)) })
	return all
}

// findOutputs lists scores, boxes and keypoints, each from the finest scale on.
func (h scrfd) findOutputs(n *network) [][]int {
	scores, boxes, keypoints := n.columns(1), n.columns(faceBox), n.columns(faceKeypoints)
	count := len(scores) + len(boxes) + len(keypoints)
	if len(scores) < 3 || len(scores) > maxScales-1 || len(boxes) != len(scores) || len(keypoints) > 0 && len(keypoints) != len(scores) ||
		count != len(n.outputs) {
		return nil
	}
	return [][]int{slices.Concat(scores, boxes, keypoints)}
}

func (h scrfd) measure(shapes [][]int64) (s sizes, err error) {
	if h.scales == 0 || len(shapes)%h.scales > 0 {
		return sizes{}, mismatch(h, shapes)
	}
	s.classes = 1
	s.extra = max(len(shapes)/h.scales-2, 0) * faceKeypoints
	columns := []int64{1, faceBox, faceKeypoints}
	for i, shape := range shapes {
		rank := len(shape)
		if rank < 2 || shape[rank-1] != columns[i/h.scales] || shape[rank-2] != shapes[i%h.scales][rank-2] {
			return sizes{}, mismatch(h, shapes)
		}
		switch rows := shape[rank-2]; {
		case i >= h.scales || s.boxes < 0:
		case rows < 0:
			s.boxes = -1
		default:
			s.boxes += rows
		}
	}
	return s, nil
}

func (h scrfd) recognise(n *network, m *match) (evidence, doubt string) {
	evidence = fmt.Sprintf("scores and boxes of %d scales", h.scales)
	if m.extra > 0 {
		evidence += fmt.Sprintf(", with %d keypoints", facePoints)
	}
	if m.boxes < 0 {
		return evidence, ""
	}
	for _, each := range []int{2, 1} {
		if g, ok := newGrid(n.width, n.height, 8, each, m.boxes, false); ok && g.count == h.scales {
			return evidence + ": " + n.cells(m.boxes, each, false), ""
		}
	}
	return "", ""
}

func (h scrfd) keypoints(m *match) (count int, names [][]string) {
	if m.extra == 0 {
		return 0, nil
	}
	return facePoints, [][]string{faceKeypointNames()}
}

func (h scrfd) newDecoder(s *settings) decoder {
	return &scrfdDecoder{boxes: newBoxes(s), head: h, skeleton: postprocess.NewSkeleton(faceKeypointNames())}
}

type scrfdDecoder struct {
	boxes
	poses
	head     scrfd
	skeleton *postprocess.Skeleton
	levels   [maxScales]faceLevel
}

// faceLevel is one scale of a face detector.
type faceLevel struct {
	stride, width int // in pixels, in cells
	first, each   int // index of its first box, and boxes in a cell
}

// corner returns the top left corner of a box's cell in input pixels.
func (l *faceLevel) corner(box int) (x, y float32) {
	cell := (box - l.first) / l.each
	return float32(cell % l.width * l.stride), float32(cell / l.width * l.stride)
}

// measureLevels fills in the scales of an image, whose outputs begin with the scores of each. It is false if the rows do not fit the cells.
func measureLevels(levels []faceLevel, in *input) bool {
	first := 0
	for i := range levels {
		stride := 8 << i
		width, height := in.match.width/stride, in.match.height/stride
		rows := len(in.tensors[i].data)
		if width < 1 || height < 1 || rows < 1 || rows%(width*height) > 0 {
			return false
		}
		levels[i] = faceLevel{stride: stride, width: width, first: first, each: rows / (width * height)}
		first += rows
	}
	return true
}

func (d *scrfdDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	levels := d.levels[:d.head.scales]
	if !measureLevels(levels, in) {
		return dst, in.mismatch()
	}
	d.beginGather(int(in.match.boxes))
	for i := range levels {
		m := engine.BoxMap{
			Boxes:  engine.Numbers{Output: in.match.outputs[len(levels)+i], Step: faceBox, Next: 1},
			Scores: engine.Numbers{Output: in.match.outputs[i], Step: 1, Next: 1},
			Count:  len(in.tensors[i].data), Classes: 1,
		}
		if err := d.scanMap(in, &m, &d.scanner, levels[i].first); err != nil {
			return dst, err
		}
	}
	if in.scoresOnly {
		return dst, nil
	}
	d.place(&in.stats, func(c *scan.Candidate) {
		l := &levels[levelOf(levels, int(c.Index))]
		x, y := l.corner(int(c.Index))
		s := float32(l.stride)
		c.Box = postprocess.Box{X1: x - s*c.X1, Y1: y - s*c.Y1, X2: x + s*c.X2, Y2: y + s*c.Y2}
	})
	before := len(dst)
	dst = d.finish(in, dst)
	if in.match.extra > 0 {
		d.poses.addFaces(in, levels, d.origins, d.skeleton, dst[before:])
	}
	return dst, nil
}

// levelOf returns the number of a box's scale.
func levelOf(levels []faceLevel, box int) int {
	at := len(levels) - 1
	for at > 0 && box < levels[at].first {
		at--
	}
	return at
}

// addFaces gives each detection its keypoints, which are the last outputs, in cells from the corner of its own cell.
func (p *poses) addFaces(in *input, levels []faceLevel, origins []int32, skeleton *postprocess.Skeleton, found []postprocess.Detection) {
	last := len(in.tensors) - len(levels)
	p.add(in, found, facePoints, func(i int, own []postprocess.Keypoint) *postprocess.Skeleton {
		box := int(origins[i])
		number := levelOf(levels, box)
		l := &levels[number]
		row := in.tensors[last+number].data[(box-l.first)*faceKeypoints:][:faceKeypoints]
		x, y := l.corner(box)
		for k := range own {
			own[k] = postprocess.Keypoint{X: x + row[2*k]*float32(l.stride), Y: y + row[2*k+1]*float32(l.stride), Score: 1}
		}
		return skeleton
	})
}
