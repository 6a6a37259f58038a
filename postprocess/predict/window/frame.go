package window

import (
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// frame is the padding of an input: its own sizes, those with padding, and where it begins in them, by dimension after the channels.
type frame struct {
	own, padded, start []int64
}

// pad returns the padding of an input to the window, equal before and after it, and whether it needs any.
func (s *Sliding) pad(in *engine.Tensor) (f frame, needed bool) {
	f.own = in.Shape[2:]
	for d, side := range s.Window {
		padded := max(side, f.own[d])
		f.padded = append(f.padded, padded)
		f.start = append(f.start, (padded-f.own[d])/2)
	}
	return f, !slices.Equal(f.own, f.padded)
}

// pad returns the padded input.
func (f *frame) pad(in *engine.Tensor) engine.Tensor {
	to := engine.Tensor{Name: in.Name, Type: in.Type, Shape: append(slices.Clone(in.Shape[:2]), f.padded...)}
	to.Data = make([]byte, 4*engine.Elements(to.Shape))
	f.each(in.Shape[0]*in.Shape[1], nil, func(padded, own, width int64) {
		copy(to.Data[4*padded:4*(padded+width)], in.Data[4*own:])
	})
	return to
}

// cut returns the part of an output that belongs to the input, where the output is larger by the scales along each axis.
func (f *frame) cut(out *engine.Tensor, scales []int64) engine.Tensor {
	to := engine.Tensor{Name: out.Name, Type: out.Type, Shape: slices.Clone(out.Shape[:2])}
	for d, side := range f.own {
		to.Shape = append(to.Shape, side*scales[d])
	}
	to.Data = make([]byte, 4*engine.Elements(to.Shape))
	f.each(out.Shape[0]*out.Shape[1], scales, func(padded, own, width int64) {
		copy(to.Data[4*own:4*(own+width)], out.Data[4*padded:])
	})
	return to
}

// each calls copies for every row of so many planes: with its first element in the padded and in the own tensor, and its length.
func (f *frame) each(planes int64, scales []int64, copies func(padded, own, width int64)) {
	own, padded, start := slices.Clone(f.own), slices.Clone(f.padded), slices.Clone(f.start)
	for d := range scales {
		own[d] *= scales[d]
		padded[d] *= scales[d]
		start[d] *= scales[d]
	}
	inner, outer := engine.Elements(own), engine.Elements(padded)
	for plane := range planes {
		rows(padded, own, start, func(inPadded, inOwn, _, _ int64) {
			copies(plane*outer+inPadded, plane*inner+inOwn, own[len(own)-1])
		})
	}
}
