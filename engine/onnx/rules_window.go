package onnx

import "math"

// Operators with a sliding window, and those that resize the image.

func conv(f *inference, n *NodeProto) []Value {
	x, w := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if x.rank() < 3 || w.rank() != x.rank() {
		return []Value{result}
	}
	result.Shape = append([]int64{x.Shape[0], w.Shape[0]}, windows(n, x.Shape[2:], w.Shape[2:], false)...)
	return []Value{result}
}

func pool(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	results := []Value{{Type: x.Type}, {Type: TensorProto_INT64}}
	if kernel := n.FindAttribute("kernel_shape").GetInts(); x.rank() >= 3 && len(kernel) == x.rank()-2 {
		results[0].Shape = append(cloneShape(x.Shape[:2]), windows(n, x.Shape[2:], kernel, n.IntOr("ceil_mode", 0) != 0)...)
		results[1].Shape = cloneShape(results[0].Shape)
	}
	return results
}

// windows returns the number of positions of a sliding window along each side.
func windows(n *NodeProto, sides, kernel []int64, up bool) []int64 {
	strides, dilations, pads := n.FindAttribute("strides").GetInts(), n.FindAttribute("dilations").GetInts(), n.FindAttribute("pads").GetInts()
	auto := string(n.FindAttribute("auto_pad").GetS())
	counts := unknownShape(len(sides))
	for i, side := range sides {
		stride, reach := entryOr(strides, i, 1), (kernel[i]-1)*min(entryOr(dilations, i, 1), math.MaxInt32)+1
		if side == UnknownDim || kernel[i] < 1 || kernel[i] > math.MaxInt32 || stride < 1 {
			continue
		}
		if auto == "SAME_UPPER" || auto == "SAME_LOWER" {
			counts[i] = (side + stride - 1) / stride
			continue
		}
		if auto != "VALID" {
			side += clampPad(pads, i) + clampPad(pads, i+len(sides))
		}
		if side < reach {
			continue
		}
		counts[i] = (side-reach)/stride + 1
		if up && (side-reach)%stride != 0 && counts[i]*stride < sides[i]+clampPad(pads, i) {
			counts[i]++
		}
	}
	return counts
}

func entryOr(list []int64, i int, otherwise int64) int64 {
	if i < len(list) {
		return list[i]
	}
	return otherwise
}

func clampPad(pads []int64, i int) int64 { return min(max(entryOr(pads, i, 0), -maxSize), maxSize) }

func convTranspose(f *inference, n *NodeProto) []Value {
	x, w := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if x.rank() < 3 || w.rank() != x.rank() {
		return []Value{result}
	}
	result.Shape = unknownShape(x.rank())
	result.Shape[0], result.Shape[1] = x.Shape[0], product([]int64{w.Shape[1], min(max(n.IntOr("group", 1), 1), math.MaxInt32)})
	strides, dilations, pads := n.FindAttribute("strides").GetInts(), n.FindAttribute("dilations").GetInts(), n.FindAttribute("pads").GetInts()
	extra := n.FindAttribute("output_padding").GetInts()
	fixed := n.FindAttribute("output_shape").GetInts()
	auto := string(n.FindAttribute("auto_pad").GetS())
	for i := range result.Shape[2:] {
		side, kernel := x.Shape[i+2], w.Shape[i+2]
		stride, dilation := entryOr(strides, i, 1), entryOr(dilations, i, 1)
		switch {
		case i < len(fixed):
			result.Shape[i+2] = fixed[i]
		case side == UnknownDim || kernel == UnknownDim || max(side, kernel, stride, dilation) > math.MaxInt32 || min(stride, dilation) < 1:
		case auto == "SAME_UPPER" || auto == "SAME_LOWER":
			result.Shape[i+2] = side * stride
		default:
			result.Shape[i+2] = stride*(side-1) + clampPad(extra, i) + (kernel-1)*dilation + 1 - clampPad(pads, i) - clampPad(pads, i+x.rank()-2)
		}
	}
	return []Value{result}
}

func globalPool(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type, Shape: cloneShape(x.Shape)}
	for i := 2; i < len(result.Shape); i++ {
		result.Shape[i] = 1
	}
	return []Value{result}
}

func resize(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	result.Shape = unknownShape(x.rank())
	axes := n.FindAttribute("axes").GetInts()
	if axes == nil {
		for i := range x.Shape {
			axes = append(axes, int64(i))
		}
	} else {
		copy(result.Shape, x.Shape)
	}
	scales, policy := f.scales(n), string(n.FindAttribute("keep_aspect_ratio_policy").GetS())
	sizes := f.in(n, 3).numbers
	for k, a := range axes {
		i, ok := axis(a, x.rank())
		if !ok {
			continue
		}
		result.Shape[i] = UnknownDim
		switch {
		case k < len(sizes) && sizes[k] >= 0 && policy != "not_larger" && policy != "not_smaller":
			result.Shape[i] = sizes[k]
		case k < len(scales) && x.Shape[i] != UnknownDim && scales[k] > 0 && scales[k] < math.MaxInt32:
			result.Shape[i] = int64(math.Floor(float64(x.Shape[i]) * float64(scales[k])))
		}
	}
	return []Value{result}
}

// scales returns the factors of a Resize or Upsample if they are constants.
func (f *inference) scales(n *NodeProto) []float32 {
	if a := n.FindAttribute("scales"); a != nil {
		return a.Floats
	}
	at := 2
	if n.GetOpType() == "Upsample" || f.opset < 11 {
		at = 1
	}
	t := f.index.Constant(n.In(at))
	if t == nil {
		return nil
	}
	scales, err := t.Floats()
	if err != nil || len(scales) > 64 {
		return nil
	}
	return scales
}

func gridSample(f *inference, n *NodeProto) []Value {
	x, grid := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if x.rank() > 2 && grid.rank() == x.rank() {
		result.Shape = append(cloneShape(x.Shape[:2]), grid.Shape[1:grid.rank()-1]...)
	}
	return []Value{result}
}

func roiAlign(f *inference, n *NodeProto) []Value {
	x, boxes := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if x.rank() == 4 && boxes.rank() == 2 {
		result.Shape = []int64{boxes.Shape[0], x.Shape[1], n.IntOr("output_height", 1), n.IntOr("output_width", 1)}
	}
	return []Value{result}
}
