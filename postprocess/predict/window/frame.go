package window

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// frame is where an input lies that is surrounded with zeros: its own sides, those with the zeros, and where it begins in them, by
// dimension behind the channels.
type frame struct {
	own, around, start []int64
}

// surround makes room for the window around an input, the same before and behind it, and reports whether it needs any.
func (s *Sliding) surround(in *engine.Tensor) (f frame, needed bool) {
	f.own = in.Shape[2:]
	for d, side := range s.Window {
		around := max(side, f.own[d])
		f.around, f.start = append(f.around, around), append(f.start, (around-f.own[d])/2)
	}
	return f, !slices.Equal(f.own, f.around)
}

// pad is the input with zeros around it.
func (f *frame) pad(in *engine.Tensor) engine.Tensor {
	to := engine.Tensor{Name: in.Name, Type: in.Type, Shape: append(slices.Clone(in.Shape[:2]), f.around...)}
	to.Data = make([]byte, 4*engine.Elements(to.Shape))
	f.each(in.Shape[0]*in.Shape[1], nil, func(around, own, width int64) {
		copy(to.Data[4*around:4*(around+width)], in.Data[4*own:])
	})
	return to
}

// cut is the part of an output that is the input's, where an output is that many times as large along each axis.
func (f *frame) cut(out *engine.Tensor, scales []int64) engine.Tensor {
	to := engine.Tensor{Name: out.Name, Type: out.Type, Shape: slices.Clone(out.Shape[:2])}
	for d, side := range f.own {
		to.Shape = append(to.Shape, side*scales[d])
	}
	to.Data = make([]byte, 4*engine.Elements(to.Shape))
	f.each(out.Shape[0]*out.Shape[1], scales, func(around, own, width int64) {
		copy(to.Data[4*own:4*(own+width)], out.Data[4*around:])
	})
	return to
}

// each calls copies with every row of so many planes: its first element with the zeros and without, and how many it has.
func (f *frame) each(planes int64, scales []int64, copies func(around, own, width int64)) {
	own, around, start := slices.Clone(f.own), slices.Clone(f.around), slices.Clone(f.start)
	for d := range scales {
		own[d], around[d], start[d] = own[d]*scales[d], around[d]*scales[d], start[d]*scales[d]
	}
	inner, outer := engine.Elements(own), engine.Elements(around)
	for plane := range planes {
		rows(around, own, start, func(inAround, inOwn, _, _ int64) {
			copies(plane*outer+inAround, plane*inner+inOwn, own[len(own)-1])
		})
	}
}
