package onnx

import "math"

// Operators that move data without changing it.

func concat(f *inference, n *NodeProto) []Value {
	result := Value{Type: f.in(n, 0).Type, Shape: cloneShape(f.in(n, 0).Shape)}
	at, ok := axis(n.IntOr("axis", 0), result.rank())
	if !ok {
		return []Value{{Type: result.Type}}
	}
	numbers := append([]int64{}, f.in(n, 0).numbers...)
	known := f.in(n, 0).numbers != nil
	for i := 1; i < len(n.Input); i++ {
		x := f.in(n, i)
		if x.rank() != result.rank() {
			return []Value{{Type: result.Type}}
		}
		for d := range result.Shape {
			switch {
			case d != at && result.Shape[d] == UnknownDim:
				result.Shape[d] = x.Shape[d]
			case d == at && (result.Shape[d] == UnknownDim || x.Shape[d] == UnknownDim):
				result.Shape[d] = UnknownDim
			case d == at:
				result.Shape[d] = min(result.Shape[d]+x.Shape[d], maxSize)
			}
		}
		known = known && x.numbers != nil && len(numbers) <= maxNumbers
		if known {
			numbers = append(numbers, x.numbers...)
		}
	}
	if known && result.rank() == 1 {
		result.numbers = numbers
	}
	return []Value{result}
}

func split(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	results := make([]Value, len(n.Output))
	for i := range results {
		results[i].Type = x.Type
	}
	at, ok := axis(n.IntOr("axis", 0), x.rank())
	if !ok || len(results) == 0 {
		return results
	}
	sizes := f.list(n, "split")
	each := (x.Shape[at] + int64(len(results)) - 1) / int64(len(results))
	for i := range results {
		results[i].Shape = cloneShape(x.Shape)
		switch {
		case i < len(sizes):
			results[i].Shape[at] = sizes[i]
		case n.In(1) != "" || x.Shape[at] == UnknownDim:
			results[i].Shape[at] = UnknownDim
		default:
			results[i].Shape[at] = max(min(each, x.Shape[at]-each*int64(i)), 0)
		}
	}
	return results
}

func slice(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	var starts, ends, axes, steps []int64
	if n.FindAttribute("starts") != nil {
		starts, ends, axes = n.FindAttribute("starts").Ints, n.FindAttribute("ends").GetInts(), n.FindAttribute("axes").GetInts()
	} else {
		starts = f.fixed(n, 1)
		ends = f.fixed(n, 2)
		axes = f.fixed(n, 3)
		steps = f.fixed(n, 4)
	}
	result.Shape = cloneShape(x.Shape)
	if axes == nil && n.In(3) == "" {
		for i := range starts {
			axes = append(axes, int64(i))
		}
	}
	if axes == nil {
		result.Shape = unknownShape(x.rank())
		return []Value{result}
	}
	for i, a := range axes {
		at, ok := axis(a, x.rank())
		if !ok {
			continue
		}
		size := x.Shape[at]
		if size == UnknownDim || i >= len(starts) || i >= len(ends) || (n.In(4) != "" && i >= len(steps)) {
			result.Shape[at] = UnknownDim
			continue
		}
		step := int64(1)
		if i < len(steps) {
			step = steps[i]
		}
		from, count := sliced(size, starts[i], ends[i], step)
		result.Shape[at] = count
		if x.numbers != nil && x.rank() == 1 && int64(len(x.numbers)) == size {
			result.numbers = []int64{}
			for k := range count {
				result.numbers = append(result.numbers, x.numbers[from+k*step])
			}
		}
	}
	return []Value{result}
}

// sliced returns the first element and the number of elements of start:end:step.
func sliced(size, start, end, step int64) (first, count int64) {
	if step == 0 || step == math.MinInt64 || size == 0 {
		return 0, 0
	}
	around := func(v, low, high int64) int64 {
		if v < 0 {
			v = max(v, -size-1) + size
		}
		return min(max(v, low), high)
	}
	if step > 0 {
		start, end = around(start, 0, size), around(end, 0, size)
		if end <= start {
			return 0, 0
		}
		return start, (end-start-1)/step + 1
	}
	start, end = around(start, 0, size-1), around(end, -1, size-1)
	if start <= end {
		return 0, 0
	}
	return start, (start-end-1)/-step + 1
}

func gather(f *inference, n *NodeProto) []Value {
	x, indices := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	at, ok := axis(n.IntOr("axis", 0), x.rank())
	if !ok || indices.Shape == nil {
		return []Value{result}
	}
	result.Shape = append(append(append([]int64{}, x.Shape[:at]...), indices.Shape...), x.Shape[at+1:]...)
	if x.numbers != nil && x.rank() == 1 && indices.numbers != nil {
		result.numbers = []int64{}
		for _, i := range indices.numbers {
			value := int64(openNumber)
			if k, ok := axis(i, len(x.numbers)); ok && i != openNumber {
				value = x.numbers[k]
			}
			result.numbers = append(result.numbers, value)
		}
	}
	return []Value{result}
}

func gatherElements(f *inference, n *NodeProto) []Value {
	return []Value{{Type: f.in(n, 0).Type, Shape: cloneShape(f.in(n, 1).Shape)}}
}

func gatherND(f *inference, n *NodeProto) []Value {
	x, indices := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if indices.rank() == 0 || x.Shape == nil {
		return []Value{result}
	}
	last, batch := indices.Shape[indices.rank()-1], n.IntOr("batch_dims", 0)
	if last == UnknownDim || batch < 0 || last < 0 || batch+last > int64(x.rank()) {
		return []Value{result}
	}
	result.Shape = append(cloneShape(indices.Shape[:indices.rank()-1]), x.Shape[batch+last:]...)
	return []Value{result}
}

func squeeze(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type, numbers: x.numbers}
	axes := f.list(n, "axes")
	if x.Shape == nil || axes == nil && n.In(1) != "" {
		return []Value{result}
	}
	gone := make([]bool, x.rank())
	for _, a := range axes {
		if i, ok := axis(a, x.rank()); ok {
			gone[i] = true
		}
	}
	result.Shape = []int64{}
	for i, d := range x.Shape {
		if axes == nil && d == UnknownDim {
			return []Value{{Type: x.Type}}
		}
		if !gone[i] && !(axes == nil && d == 1) {
			result.Shape = append(result.Shape, d)
		}
	}
	return []Value{result}
}

func unsqueeze(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type}
	axes := f.list(n, "axes")
	if x.Shape == nil || axes == nil || len(axes) > 64 {
		return []Value{result}
	}
	rank := x.rank() + len(axes)
	added := make([]bool, rank)
	for _, a := range axes {
		if i, ok := axis(a, rank); ok {
			added[i] = true
		}
	}
	result.Shape = []int64{}
	next := 0
	for i := range rank {
		switch {
		case added[i]:
			result.Shape = append(result.Shape, 1)
		case next < x.rank():
			result.Shape = append(result.Shape, x.Shape[next])
			next++
		}
	}
	if len(result.Shape) == 1 {
		result.numbers = x.numbers
	}
	return []Value{result}
}

func reshape(f *inference, n *NodeProto) []Value {
	x, target := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	numbers := target.numbers
	if a := n.FindAttribute("shape"); a != nil {
		numbers = a.Ints
	}
	if numbers == nil {
		if len(target.Shape) == 1 && target.Shape[0] >= 0 && target.Shape[0] <= 64 {
			result.Shape = unknownShape(int(target.Shape[0]))
		}
		return []Value{result}
	}
	rest, rests := -1, 0
	result.Shape = make([]int64, len(numbers))
	for i, d := range numbers {
		switch {
		case d == -1:
			rest, rests, result.Shape[i] = i, rests+1, UnknownDim
		case d == 0 && n.IntOr("allowzero", 0) == 0:
			result.Shape[i] = UnknownDim
			if i < x.rank() {
				result.Shape[i] = x.Shape[i]
			}
		case d < 0 || d > maxSize:
			result.Shape[i] = UnknownDim
		default:
			result.Shape[i] = d
		}
	}
	if rests == 1 && x.Shape != nil {
		result.Shape[rest] = remaining(x.Shape, result.Shape, rest)
	}
	return []Value{result}
}

// remaining returns the size of dimension rest for which the products of both shapes are equal. Unknown dimensions in both shapes cancel.
func remaining(from, to []int64, rest int) int64 {
	open, want := 0, product(without(from))
	for _, d := range from {
		if d == UnknownDim {
			open++
		}
	}
	others := append(append([]int64{}, to[:rest]...), to[rest+1:]...)
	for _, d := range others {
		if d == UnknownDim {
			open--
		}
	}
	have := product(without(others))
	if open != 0 || have <= 0 || want == UnknownDim || want%have != 0 {
		return UnknownDim
	}
	return want / have
}

// without returns the known dimensions.
func without(shape []int64) []int64 {
	known := make([]int64, 0, len(shape))
	for _, d := range shape {
		if d != UnknownDim {
			known = append(known, d)
		}
	}
	return known
}

func flatten(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	if x.Shape == nil {
		return []Value{{Type: x.Type}}
	}
	at := clip(n.IntOr("axis", 1), x.rank())
	return []Value{{Type: x.Type, Shape: []int64{product(x.Shape[:at]), product(x.Shape[at:])}}}
}

func transpose(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	order := n.FindAttribute("perm").GetInts()
	result.Shape = unknownShape(x.rank())
	for i := range result.Shape {
		from := int64(x.rank() - 1 - i)
		if order != nil {
			if i >= len(order) || order[i] < 0 || order[i] >= int64(x.rank()) {
				continue
			}
			from = order[i]
		}
		result.Shape[i] = x.Shape[from]
	}
	return []Value{result}
}

func expand(f *inference, n *NodeProto) []Value {
	x, target := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if target.numbers == nil {
		if len(target.Shape) == 1 && target.Shape[0] >= 0 && target.Shape[0] <= 64 && x.Shape != nil {
			result.Shape = unknownShape(max(int(target.Shape[0]), x.rank()))
		}
		return []Value{result}
	}
	shape := append([]int64{}, target.numbers...)
	for i, d := range shape {
		if d < 0 {
			shape[i] = UnknownDim
		}
	}
	result.Shape = broadcast(x.Shape, shape)
	return []Value{result}
}

func tile(f *inference, n *NodeProto) []Value {
	x, repeats := f.in(n, 0), f.in(n, 1)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	result.Shape = unknownShape(x.rank())
	for i, d := range x.Shape {
		if i < len(repeats.numbers) && d != UnknownDim && repeats.numbers[i] >= 0 {
			result.Shape[i] = product([]int64{d, repeats.numbers[i]})
		}
	}
	return []Value{result}
}

func pad(f *inference, n *NodeProto) []Value {
	x, pads, axes := f.in(n, 0), f.list(n, "pads"), f.fixed(n, 3)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	result.Shape = unknownShape(x.rank())
	if pads == nil || n.In(3) != "" && axes == nil {
		return []Value{result}
	}
	copy(result.Shape, x.Shape)
	if axes == nil {
		for i := range x.Shape {
			axes = append(axes, int64(i))
		}
	}
	for k, a := range axes {
		i, ok := axis(a, x.rank())
		if !ok || k+len(axes) >= len(pads) || x.Shape[i] == UnknownDim || max(abs(pads[k]), abs(pads[k+len(axes)])) > maxSize {
			continue
		}
		result.Shape[i] = x.Shape[i] + pads[k] + pads[k+len(axes)]
	}
	return []Value{result}
}

func depthToSpace(f *inference, n *NodeProto) []Value { return rearranged(f, n, false) }
func spaceToDepth(f *inference, n *NodeProto) []Value { return rearranged(f, n, true) }

func rearranged(f *inference, n *NodeProto, deeper bool) []Value {
	x, block := f.in(n, 0), n.IntOr("blocksize", 0)
	result := Value{Type: x.Type}
	if x.rank() != 4 || block < 1 || block > 1024 {
		return []Value{result}
	}
	result.Shape = cloneShape(x.Shape)
	for i, times := range []int64{block * block, block, block} {
		at := i + 1
		switch {
		case x.Shape[at] == UnknownDim:
		case (at == 1) == deeper:
			result.Shape[at] = product([]int64{x.Shape[at], times})
		default:
			result.Shape[at] = x.Shape[at] / times
		}
	}
	return []Value{result}
}
