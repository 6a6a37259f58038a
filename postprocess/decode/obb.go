package decode

import (
	"math"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/scan"
)

// scanTurned takes the boxes around the turned ones for candidates.
func (d *Decoder) scanTurned() error {
	if err := d.scanMap(); err != nil {
		return err
	}
	d.place(func(c *scan.Candidate) {
		o := d.turnedBox(c.Index)
		c.Box = o.Bounds()
	})
	return nil
}

// listTurned takes those around the turned ones of a list.
func (d *Decoder) listTurned() {
	const width = engine.CandidateFields + 1
	rows, stats := d.parts[0].data, &d.img.stats
	count := len(rows) / width
	d.reserve(count)
	list := d.candidates[:count]
	for i := range count {
		row := [engine.CandidateFields]float32(rows[i*width:])
		o := d.turnedBox(int32(i))
		hull := o.Bounds()
		row[0], row[1], row[2], row[3] = hull.X1, hull.Y1, hull.X2, hull.Y2
		d.take(&row, &list[stats.Candidates], int32(i))
	}
	d.candidates = list[:stats.Candidates]
}

// turnedBox is a box of the map, in pixels of the network's input.
func (d *Decoder) turnedBox(box int32) postprocess.OrientedBox {
	data, at := d.parts[0].data, int64(box)
	step, next := int64(1), d.now.Boxes
	if d.layout == head.LayoutOBBEnd2End {
		step, next = engine.CandidateFields+1, 1
	}
	angle := d.extra()
	return postprocess.OrientedBox{
		X: data[at*step], Y: data[at*step+next], Width: data[at*step+2*next], Height: data[at*step+3*next], Angle: angle.at(box, 0),
	}
}

// turn takes the turned boxes to the image. Where it was stretched a turned rectangle is none any more: its sides keep their directions
// and lengths.
func (d *Decoder) turn(found []postprocess.Detection) {
	t := &d.img.transform
	all := room(&d.img.details.oriented, len(found))
	for i := range found {
		o := d.turnedBox(d.origins[i])
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

// turnedSuppressor suppresses oriented boxes that come best first by their probabilistic IoU. As in the networks' own postprocessing a box
// gives way to every better one of its class, also to one that gave way itself: fast NMS, "YOLACT: Real-time Instance Segmentation", Bolya
// et al., 2019.
type turnedSuppressor struct {
	over     postprocess.OverlapTest
	agnostic bool
	newest   []int32 // by class: the newest box plus 1, 0 for none
	chain    []turnedBox
}

type turnedBox struct {
	postprocess.Gaussian
	older int32 // number of the next box of the chain plus 1
	class int32
}

// begin forgets the last image.
func (s *turnedSuppressor) begin(classes int, limit float32, agnostic bool) {
	for i := range s.chain {
		s.newest[s.chain[i].class] = 0
	}
	s.chain = s.chain[:0]
	s.over, s.agnostic = postprocess.NewOverlapTest(limit), agnostic
	if len(s.newest) < classes {
		s.newest = make([]int32, classes)
	}
}

// admit reports whether no better box of its class overlaps the candidate by more than the limit.
func (s *turnedSuppressor) admit(c *scan.Candidate, o postprocess.OrientedBox) bool {
	class := c.Class
	if s.agnostic {
		class = 0
	}
	own, stays := o.Gaussian(), true
	for i := s.newest[class]; i != 0 && stays; i = s.chain[i-1].older {
		stays = !s.over.Exceeds(&own, &s.chain[i-1].Gaussian)
	}
	s.chain = append(s.chain, turnedBox{own, s.newest[class], class})
	s.newest[class] = int32(len(s.chain))
	return stays
}
