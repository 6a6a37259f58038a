package head

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// LayoutOBB is [B,4+nc+1,N]: a column for each box as in LayoutYOLOv8, and after the scores the angle in radians by which the box is
// rotated clockwise around its centre. LayoutOBBEnd2End is [B,N,7]: a row for each box with its centre's x and y, width, height, score,
// class and angle.
const (
	LayoutOBB        Layout = "obb"
	LayoutOBBEnd2End Layout = "obb-end2end"
)

type obb struct {
	columnsOrRows // rows: LayoutOBBEnd2End
}

func (h obb) describe() Description {
	d := Description{
		Layout: LayoutOBB, Task: engine.OBB, Form: "[B,4+nc+1,N]", Networks: "oriented boxes of YOLOv8, 11 and others of Ultralytics",
		Gives: "oriented box, the box around it, class and score of each object",
	}
	if h.rows {
		d.Layout = LayoutOBBEnd2End
		d.Form = "[B,N,7]"
		d.Networks = "oriented boxes of YOLO26 and of Ultralytics with nms=True"
		d.NMSFree = true
	}
	return d
}

func (obb) findOutputs(n *network) [][]int { return n.floats() }

func (h obb) measure(shapes [][]int64) (sizes, error) {
	shape := shapes[0]
	switch {
	case len(shape) != 3, h.rows && shape[2] != engine.CandidateFields+1, !h.rows && shape[1] < 6:
		return sizes{}, mismatch(h, shapes)
	case h.rows:
		return sizes{boxes: shape[1], extra: 1}, nil
	}
	return sizes{boxes: shape[2], classes: int(shape[1] - 5), extra: 1}, nil
}

func (h obb) recognise(n *network, m *match) (evidence, doubt string) {
	if h.rows {
		return n.recogniseRows(m)
	}
	return n.recogniseColumns(m)
}

func (h obb) newDecoder(s *settings) decoder {
	d := &obbDecoder{boxes: newBoxes(s), head: h}
	if !h.rows {
		d.suppression = &orientedNMS{overlap: postprocess.NewOverlapTest(s.IoU), agnostic: s.Agnostic, decoder: d}
	}
	return d
}

type obbDecoder struct {
	boxes
	head    obb
	data    []float32    // of the image
	step    int64        // from box to box
	next    int64        // from number to number of a box
	angles  extraNumbers // of the image
	results perImage[obbResult]
}

type obbResult struct {
	details  []postprocess.Detail
	oriented []postprocess.OrientedBox
}

// decode takes the boxes around the oriented ones as candidates.
func (d *obbDecoder) decode(in *input, dst []postprocess.Detection) ([]postprocess.Detection, error) {
	d.data = in.tensors[0].data
	d.step, d.next = 1, in.match.boxes
	if d.head.rows {
		d.step, d.next = engine.CandidateFields+1, 1
	}
	d.angles = in.extra(d.head.extra(&in.match))
	if d.head.rows {
		d.listOriented(in)
	} else {
		if err := d.scan(in); err != nil {
			return dst, err
		}
		d.place(&in.stats, func(c *scan.Candidate) {
			o := d.box(c.Index)
			c.Box = o.Bounds()
		})
	}
	first := len(dst)
	dst = d.finish(in, dst)
	if !in.scoresOnly {
		d.addOriented(in, dst[first:])
	}
	return dst, nil
}

func (d *obbDecoder) listOriented(in *input) {
	count := len(d.data) / int(d.step)
	d.beginList(count)
	for i := range count {
		row := [engine.CandidateFields]float32(d.data[i*int(d.step):])
		o := d.box(int32(i))
		bounds := o.Bounds()
		row[0], row[1] = bounds.X1, bounds.Y1
		row[2], row[3] = bounds.X2, bounds.Y2
		d.take(in, &row, int32(i))
	}
}

// box returns an oriented box in pixels of the network's input.
func (d *obbDecoder) box(index int32) postprocess.OrientedBox {
	at := int64(index) * d.step
	return postprocess.OrientedBox{
		X: d.data[at], Y: d.data[at+d.next], Width: d.data[at+2*d.next], Height: d.data[at+3*d.next], Angle: d.angles.at(index, 0),
	}
}

// addOriented gives every detection its oriented box in the source image. If the letterbox has stretched the image it is no rectangle
// there: its sides keep their directions and lengths.
func (d *obbDecoder) addOriented(in *input, found []postprocess.Detection) {
	t := &in.transform
	result := d.results.at(in.index)
	setDetails(&result.details, found)
	all := resize(&result.oriented, len(found))
	for i := range found {
		o := d.box(d.origins[i])
		sin, cos := math.Sincos(float64(o.Angle))
		ux, uy := cos/float64(t.ScaleX), sin/float64(t.ScaleY)
		vx, vy := -sin/float64(t.ScaleX), cos/float64(t.ScaleY)
		all[i] = postprocess.OrientedBox{
			X: (o.X - t.PadX) / t.ScaleX, Y: (o.Y - t.PadY) / t.ScaleY,
			Width: o.Width * float32(math.Hypot(ux, uy)), Height: o.Height * float32(math.Hypot(vx, vy)), Angle: o.Angle,
		}
		if t.ScaleX != t.ScaleY {
			all[i].Angle = float32(math.Atan2(uy, ux))
		}
		found[i].Detail.Oriented = &all[i]
	}
}

// orientedNMS suppresses oriented boxes by their probabilistic IoU. As in the networks' own postprocessing a box is suppressed by every
// better one of its class, suppressed ones included: fast NMS, "YOLACT: Real-time Instance Segmentation", Bolya et al., 2019.
type orientedNMS struct {
	overlap  postprocess.OverlapTest
	agnostic bool
	decoder  *obbDecoder
	newest   []int32 // by class: the newest box plus 1, 0 for none
	chain    []chainedGaussian
}

type chainedGaussian struct {
	postprocess.Gaussian
	older int32 // number of the next box of the chain plus 1
	class int32
}

func (s *orientedNMS) begin(classes int) {
	for i := range s.chain {
		s.newest[s.chain[i].class] = 0
	}
	s.chain = s.chain[:0]
	if len(s.newest) < classes {
		s.newest = make([]int32, classes)
	}
}

// keep reports whether no better box of the candidate's class overlaps it by more than the limit.
func (s *orientedNMS) keep(c *scan.Candidate) bool {
	class := c.Class
	if s.agnostic {
		class = 0
	}
	box := s.decoder.box(c.Index)
	own, stays := box.Gaussian(), true
	for i := s.newest[class]; i != 0 && stays; i = s.chain[i-1].older {
		stays = !s.overlap.Exceeds(&own, &s.chain[i-1].Gaussian)
	}
	s.chain = append(s.chain, chainedGaussian{own, s.newest[class], class})
	s.newest[class] = int32(len(s.chain))
	return stays
}
