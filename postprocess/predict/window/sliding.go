// Package window runs image-to-image and volume-to-volume networks on inputs that are larger than theirs: through a sliding window, with
// blended seams.
package window

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// Model runs one batch of windows; *predict.Raw implements it.
type Model interface {
	Model() engine.Model
	Tensors(inputs ...engine.Tensor) (*engine.Result, error)
}

// Sliding runs a model with one input of batch, channels and two or three further dimensions, whose outputs have the same sizes there or
// whole multiples of them. Set the exported fields before Run. One goroutine at a time.
type Sliding struct {
	Model Model
	// Window is the size of the window, by dimension after the channels.
	Window []int64
	// Overlap is the share of a window that its neighbour covers as well, 0 to 0.75.
	Overlap float64
	// Margin is how many elements at a border between windows are ignored: those that the padding inside the network affects. Negative for
	// a quarter of the overlap.
	Margin int64
	// Blend is the weighting of the others, Gaussian when empty.
	Blend Blend
	// Batch is the number of windows of a request, if the model leaves that open; 1 when 0.
	Batch int
	// MaxMemory bounds the bytes of the input, the outputs and a batch together; 0 for no bound.
	MaxMemory int64
	// Progress, if set, is called after each batch.
	Progress func(done, total int)

	axes    []axis
	batch   []engine.Tensor // one tensor
	outputs []engine.Tensor
	scales  [][]int64 // by output and dimension
	extra   int64     // bytes of an input that was padded, else 0
}

// maxElements bounds a window, and maxPadded a padded input.
const (
	maxElements = 1 << 28
	maxPadded   = 1 << 32
)

// Validate returns an error unless the settings are usable.
func (s *Sliding) Validate() error {
	switch {
	case len(s.Window) < 2 || len(s.Window) > 3:
		return fmt.Errorf("a window of %d sides, must be 2 for images or 3 for volumes", len(s.Window))
	case slices.ContainsFunc(s.Window, func(side int64) bool { return side < 1 || side > 1<<16 }):
		return fmt.Errorf("a window of %v, sides must be 1 to %d", s.Window, 1<<16)
	case engine.Elements(s.Window) > maxElements:
		return fmt.Errorf("a window of %v, must be %d elements at most", s.Window, maxElements)
	case !(s.Overlap >= 0 && s.Overlap <= 0.75):
		return fmt.Errorf("windows that overlap by %v, must be 0 to 0.75", s.Overlap)
	case s.MaxMemory < 0:
		return fmt.Errorf("memory of %d bytes, must not be negative", s.MaxMemory)
	}
	return s.Blend.validate()
}

// BatchShape returns the shape of one batch of windows for an input.
func (s *Sliding) BatchShape(input []int64) []int64 {
	return append([]int64{int64(max(s.Batch, 1)), input[1]}, s.Window...)
}

func refuse(format string, arguments ...any) error {
	return &engine.Error{Op: "slide", Kind: engine.ErrShape, Message: fmt.Sprintf(format, arguments...)}
}

// Run slides over a float32 input and returns the outputs, which the caller owns. An input smaller than the window is padded with zeros,
// and the outputs are cut to its size.
func (s *Sliding) Run(in engine.Tensor) ([]engine.Tensor, error) {
	if err := s.Validate(); err != nil {
		return nil, err
	}
	switch {
	case len(in.Shape) != len(s.Window)+2:
		return nil, refuse("input %v under a window of %v: it needs a batch, channels and %d sides", in.Shape, s.Window, len(s.Window))
	case engine.Elements(in.Shape) == 0:
		return nil, refuse("input %v has no elements", in.Shape)
	case in.Float32s() == nil:
		return nil, refuse("input of %v, windows slide over float32", in.Type)
	}
	f, needed := s.pad(&in)
	if !needed {
		s.extra = 0
		return s.slide(in)
	}
	if padded := in.Shape[0] * in.Shape[1] * engine.Elements(f.padded); padded > maxPadded || s.MaxMemory > 0 && 4*padded > s.MaxMemory {
		return nil, refuse("input %v padded with zeros for the window %v takes %d MiB (name a smaller window)", in.Shape, s.Window,
			4*padded>>20)
	}
	s.extra = int64(len(in.Data))
	outputs, err := s.slide(f.pad(&in))
	for i := range outputs {
		outputs[i] = f.cut(&outputs[i], s.scales[i])
	}
	return outputs, err
}

// slide runs on an input that is no smaller than the window.
func (s *Sliding) slide(in engine.Tensor) ([]engine.Tensor, error) {
	s.axes = s.axes[:0]
	windows := int(in.Shape[0])
	for d, side := range s.Window {
		a, err := newAxis(in.Shape[d+2], side, s.Overlap, s.Margin, s.Blend)
		if err != nil {
			return nil, err
		}
		s.axes = append(s.axes, a)
		windows *= len(a.starts)
	}
	s.outputs = nil
	batch := engine.Tensor{Name: in.Name, Type: engine.Float32, Shape: s.BatchShape(in.Shape)}
	batch.Data = make([]byte, 4*engine.Elements(batch.Shape))
	s.batch = []engine.Tensor{batch}
	places := make([]position, 0, batch.Shape[0])
	for done := 0; done < windows; {
		places = places[:0]
		for len(places) < cap(places) && done+len(places) < windows {
			p := s.position(done + len(places))
			s.cut(&in, p, len(places))
			places = append(places, p)
		}
		result, err := s.Model.Tensors(s.batch...)
		if err != nil {
			return nil, err
		}
		if s.outputs == nil {
			if err := s.begin(&in, result); err != nil {
				return nil, err
			}
		}
		for o := range s.outputs {
			values := result.Outputs[o].Float32s()
			if values == nil || !slices.Equal(result.Outputs[o].Shape[1:], s.window(o)) {
				return nil, refuse("output %q is %v %v for a window, and was float32 of %v", result.Outputs[o].Name, result.Outputs[o].Type,
					result.Outputs[o].Shape, s.window(o))
			}
			each := len(values) / int(batch.Shape[0])
			for i, p := range places {
				s.add(o, p, values[i*each:(i+1)*each])
			}
		}
		done += len(places)
		if s.Progress != nil {
			s.Progress(done, windows)
		}
	}
	return s.outputs, nil
}

// position is where a window lies: in which image or volume, and its number along each axis.
type position struct {
	item  int64
	along [3]int
}

// position returns the position of a window by its number; the last axis runs fastest.
func (s *Sliding) position(number int) (p position) {
	for d := len(s.axes) - 1; d >= 0; d-- {
		n := len(s.axes[d].starts)
		p.along[d], number = number%n, number/n
	}
	p.item = int64(number)
	return p
}

// begin allocates the outputs when the first batch has shown their shapes.
func (s *Sliding) begin(in *engine.Tensor, result *engine.Result) error {
	need := int64(len(in.Data)) + int64(len(s.batch[0].Data)) + s.extra
	s.scales = nil
	for i := range result.Outputs {
		out := &result.Outputs[i]
		if out.Type != engine.Float32 || len(out.Shape) != len(in.Shape) || out.Shape[0] != s.batch[0].Shape[0] {
			return refuse("output %q is %v %v: a sliding window needs float32 with the input's dimensions", out.Name, out.Type, out.Shape)
		}
		shape, scales := []int64{in.Shape[0], out.Shape[1]}, []int64{}
		for d, side := range s.Window {
			if out.Shape[d+2] < side || out.Shape[d+2]%side != 0 {
				return refuse("output %q is %v for a window of %v: sides must be the same or whole multiples", out.Name, out.Shape, s.Window)
			}
			scales = append(scales, out.Shape[d+2]/side)
			shape = append(shape, in.Shape[d+2]*scales[d])
		}
		need += 4*engine.Elements(shape) + int64(len(out.Data))
		if s.extra > 0 { // the output is cut
			need += 4 * engine.Elements(shape)
		}
		if s.MaxMemory > 0 && need > s.MaxMemory {
			return refuse("input and outputs take %d MiB, the bound is %d (raise --memory, or cut the input)", need>>20, s.MaxMemory>>20)
		}
		s.outputs = append(s.outputs, engine.Tensor{Name: out.Name, Type: engine.Float32, Shape: shape})
		s.scales = append(s.scales, scales)
	}
	for i := range s.outputs {
		s.outputs[i].Data = make([]byte, 4*engine.Elements(s.outputs[i].Shape))
	}
	return nil
}

// window returns the shape of an output for one window.
func (s *Sliding) window(output int) []int64 {
	shape := []int64{s.outputs[output].Shape[1]}
	for d, side := range s.Window {
		shape = append(shape, side*s.scales[output][d])
	}
	return shape
}

// rows calls each for every row of a block of sides at start in a tensor of sizes, both by dimension after the channels: with the row's
// first element in the tensor and in the block, and its position along the outer axes. An image has one outer axis.
func rows(sizes, sides, start []int64, each func(inTensor, inBlock, outer, middle int64)) {
	d := len(sides)
	depth, layers, first := int64(1), int64(0), int64(0)
	if d == 3 {
		depth, layers, first = sides[0], sizes[1]*sizes[2], start[0]
	}
	height, width := sides[d-2], sides[d-1]
	for z := range depth {
		for y := range height {
			each((first+z)*layers+(start[d-2]+y)*sizes[d-1]+start[d-1], (z*height+y)*width, z, y)
		}
	}
}

// cut copies a window of the input into the batch.
func (s *Sliding) cut(in *engine.Tensor, p position, at int) {
	from, to := in.Float32s(), s.batch[0].Float32s()
	sizes, start := in.Shape[2:], s.start(p, nil)
	whole, block := engine.Elements(sizes), engine.Elements(s.Window)
	width := s.Window[len(s.Window)-1]
	for c := range in.Shape[1] {
		source, target := (p.item*in.Shape[1]+c)*whole, (int64(at)*in.Shape[1]+c)*block
		rows(sizes, s.Window, start, func(inTensor, inBlock, _, _ int64) {
			copy(to[target+inBlock:target+inBlock+width], from[source+inTensor:source+inTensor+width])
		})
	}
}

// start returns where a window begins in a tensor that is larger by those scales, nil for the input.
func (s *Sliding) start(p position, scales []int64) []int64 {
	start := make([]int64, len(s.axes))
	for d := range s.axes {
		start[d] = s.axes[d].starts[p.along[d]]
		if scales != nil {
			start[d] *= scales[d]
		}
	}
	return start
}

// add adds the output of a window, each element by its share. The shares of all windows there add up to 1.
func (s *Sliding) add(output int, p position, values []float32) {
	out := &s.outputs[output]
	to, scales := out.Float32s(), s.scales[output]
	sides := s.window(output)[1:]
	sizes, start := out.Shape[2:], s.start(p, scales)
	whole, block := engine.Elements(sizes), engine.Elements(sides)
	d := len(sides)
	across := s.axes[d-1].shares[p.along[d-1]]
	for c := range out.Shape[1] {
		source, target := c*block, (p.item*out.Shape[1]+c)*whole
		rows(sizes, sides, start, func(inTensor, inBlock, z, y int64) {
			share := s.axes[d-2].shares[p.along[d-2]][y/scales[d-2]]
			if d == 3 {
				share *= s.axes[0].shares[p.along[0]][z/scales[0]]
			}
			if share == 0 {
				return
			}
			row := to[target+inTensor : target+inTensor+sides[d-1]]
			for x := range row {
				row[x] += share * across[int64(x)/scales[d-1]] * values[source+inBlock+int64(x)]
			}
		})
	}
}
