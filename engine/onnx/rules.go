package onnx

// rule infers the outputs of a node.
type rule func(f *inference, n *NodeProto) []Value

// rules are the operators of detectors, classifiers and their pre- and post-processing.
var rules = ruleTable()

func ruleTable() map[string]rule {
	table := map[string]rule{
		"Constant": constant, "ConstantOfShape": constantOfShape, "Shape": shapeOf, "Size": sizeOf, "Range": rangeOf, "Cast": cast,
		"CastLike": castLike, "QuantizeLinear": quantizeLinear, "DequantizeLinear": dequantizeLinear,
		"Conv": conv, "ConvTranspose": convTranspose, "MaxPool": pool, "AveragePool": pool, "LpPool": pool,
		"GlobalAveragePool": globalPool, "GlobalMaxPool": globalPool, "MatMul": matMul, "Gemm": gemm, "GridSample": gridSample,
		"RoiAlign": roiAlign, "Concat": concat, "Split": split, "Slice": slice, "Gather": gather, "GatherElements": gatherElements,
		"GatherND": gatherND, "Squeeze": squeeze, "Unsqueeze": unsqueeze, "Reshape": reshape, "Flatten": flatten, "Transpose": transpose,
		"Expand": expand, "Tile": tile, "Pad": pad, "Resize": resize, "Upsample": resize, "DepthToSpace": depthToSpace,
		"SpaceToDepth": spaceToDepth, "Where": where, "ArgMax": argReduce, "ArgMin": argReduce, "TopK": topK,
		"NonMaxSuppression": nonMaxSuppression, "NonZero": nonZero, "Identity": identity,
	}
	for _, op := range []string{
		"Relu", "LeakyRelu", "Sigmoid", "Tanh", "Elu", "Selu", "Celu", "Softplus", "Softsign", "HardSigmoid", "HardSwish", "Mish", "Swish",
		"Gelu", "ThresholdedRelu", "Erf", "Exp", "Log", "Sqrt", "Neg", "Abs", "Sign", "Floor", "Ceil", "Round", "Reciprocal", "Sin", "Cos", "Tan",
		"Atan", "Clip", "Softmax", "LogSoftmax", "Hardmax", "BatchNormalization", "InstanceNormalization", "LayerNormalization",
		"GroupNormalization", "RMSNormalization", "LpNormalization", "LRN", "Dropout", "CumSum", "ScatterND", "ScatterElements", "Trilu",
		"Not", "BitwiseNot",
	} {
		table[op] = sameAsFirst
	}
	for _, op := range []string{"Add", "Sub", "Mul", "Div", "Mod", "Pow", "Max", "Min", "Sum", "Mean", "PRelu", "And", "Or", "Xor"} {
		table[op] = elementwise
	}
	for _, op := range []string{"Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual"} {
		table[op] = compare
	}
	for _, op := range []string{
		"ReduceMax", "ReduceMin", "ReduceMean", "ReduceSum", "ReduceProd", "ReduceL1", "ReduceL2", "ReduceSumSquare",
		"ReduceLogSum", "ReduceLogSumExp",
	} {
		table[op] = reduce
	}
	return table
}

func sameAsFirst(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	return []Value{{Type: x.Type, Shape: cloneShape(x.Shape)}}
}

func identity(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	return []Value{{Type: x.Type, Shape: cloneShape(x.Shape), numbers: x.numbers}}
}

func elementwise(f *inference, n *NodeProto) []Value {
	result := Value{Type: f.in(n, 0).Type, Shape: cloneShape(f.in(n, 0).Shape)}
	for i := 1; i < len(n.Input); i++ {
		result.Shape = broadcast(result.Shape, f.in(n, i).Shape)
	}
	if len(n.Input) == 2 {
		result.numbers = arithmetic(n.GetOpType(), f.in(n, 0), f.in(n, 1))
	}
	return []Value{result}
}

// arithmetic evaluates shape calculations on lists of the same length, or on a list and a scalar.
func arithmetic(op string, a, b Value) []int64 {
	if a.numbers == nil || b.numbers == nil || len(a.Shape) > 1 || len(b.Shape) > 1 {
		return nil
	}
	length := max(len(a.numbers), len(b.numbers))
	at := func(numbers []int64, i int) int64 {
		if len(numbers) == 1 {
			return numbers[0]
		}
		if i < len(numbers) {
			return numbers[i]
		}
		return openNumber
	}
	result := make([]int64, length)
	for i := range result {
		x, y := at(a.numbers, i), at(b.numbers, i)
		if abs(x) > maxSize || abs(y) > maxSize {
			result[i] = openNumber
			continue
		}
		switch op {
		case "Add":
			result[i] = x + y
		case "Sub":
			result[i] = x - y
		case "Mul":
			result[i] = openNumber
			if y == 0 || abs(x) <= maxSize/abs(y) {
				result[i] = x * y
			}
		case "Div":
			result[i] = openNumber
			if y != 0 {
				result[i] = x / y
			}
		default:
			return nil
		}
	}
	return result
}

func abs(v int64) int64 {
	if v < 0 && v != openNumber {
		return -v
	}
	if v == openNumber {
		return 1<<63 - 1
	}
	return v
}

func compare(f *inference, n *NodeProto) []Value {
	return []Value{{Type: TensorProto_BOOL, Shape: broadcast(f.in(n, 0).Shape, f.in(n, 1).Shape)}}
}

func where(f *inference, n *NodeProto) []Value {
	shape := broadcast(f.in(n, 0).Shape, broadcast(f.in(n, 1).Shape, f.in(n, 2).Shape))
	return []Value{{Type: f.in(n, 1).Type, Shape: shape}}
}

func constant(f *inference, n *NodeProto) []Value {
	if t := f.index.Constant(n.Out(0)); t != nil {
		return []Value{tensorValue(t)}
	}
	return nil
}

func constantOfShape(f *inference, n *NodeProto) []Value {
	result := Value{Type: TensorProto_FLOAT}
	fill := n.FindAttribute("value").GetT()
	if fill != nil {
		result.Type = TensorProto_DataType(fill.GetDataType())
	}
	if numbers := f.in(n, 0).numbers; numbers != nil {
		result.Shape = append([]int64{}, numbers...)
		if len(numbers) == 1 && numbers[0] >= 0 && numbers[0] <= maxNumbers && fill != nil {
			if value, err := fill.Ints(); err == nil && len(value) == 1 {
				result.numbers = make([]int64, numbers[0])
				for i := range result.numbers {
					result.numbers[i] = value[0]
				}
			}
		}
	} else if d := f.in(n, 0).Shape; len(d) == 1 && d[0] >= 0 && d[0] <= 64 {
		result.Shape = unknownShape(int(d[0]))
	}
	return []Value{result}
}

func shapeOf(f *inference, n *NodeProto) []Value {
	shape := f.in(n, 0).Shape
	if shape == nil {
		return []Value{{Type: TensorProto_INT64, Shape: []int64{UnknownDim}}}
	}
	start, end := clip(n.IntOr("start", 0), len(shape)), clip(n.IntOr("end", int64(len(shape))), len(shape))
	numbers := []int64{}
	for i := start; i < end; i++ {
		if shape[i] == UnknownDim {
			numbers = append(numbers, openNumber)
		} else {
			numbers = append(numbers, shape[i])
		}
	}
	return []Value{{Type: TensorProto_INT64, Shape: []int64{int64(len(numbers))}, numbers: numbers}}
}

// clip resolves a negative index and limits it to 0..length.
func clip(at int64, length int) int64 {
	if at < 0 {
		at += int64(length)
	}
	return min(max(at, 0), int64(length))
}

func sizeOf(f *inference, n *NodeProto) []Value {
	result := Value{Type: TensorProto_INT64, Shape: []int64{}}
	if x := f.in(n, 0); x.Shape != nil {
		if elements := product(x.Shape); elements != UnknownDim {
			result.numbers = []int64{elements}
		}
	}
	return []Value{result}
}

func rangeOf(f *inference, n *NodeProto) []Value {
	result := Value{Type: f.in(n, 0).Type, Shape: []int64{UnknownDim}}
	start, limit, delta := f.fixed(n, 0), f.fixed(n, 1), f.fixed(n, 2)
	if len(start) != 1 || len(limit) != 1 || len(delta) != 1 || delta[0] == 0 || max(abs(start[0]), abs(limit[0]), abs(delta[0])) > maxSize {
		return []Value{result}
	}
	span := limit[0] - start[0]
	count := span / delta[0]
	if span%delta[0] != 0 {
		count++
	}
	if (span < 0) != (delta[0] < 0) {
		count = 0
	}
	result.Shape[0] = count
	if count <= maxNumbers {
		for i := range count {
			result.numbers = append(result.numbers, start[0]+i*delta[0])
		}
	}
	return []Value{result}
}

func cast(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: TensorProto_DataType(n.IntOr("to", 0)), Shape: cloneShape(x.Shape)}
	if result.Type == TensorProto_INT64 || result.Type == TensorProto_INT32 {
		result.numbers = x.numbers
	}
	return []Value{result}
}

func castLike(f *inference, n *NodeProto) []Value {
	return []Value{{Type: f.in(n, 1).Type, Shape: cloneShape(f.in(n, 0).Shape)}}
}

func quantizeLinear(f *inference, n *NodeProto) []Value {
	kind := f.in(n, 2).Type
	if n.In(2) == "" {
		kind = TensorProto_DataType(n.IntOr("output_dtype", int64(TensorProto_UINT8)))
	}
	return []Value{{Type: kind, Shape: cloneShape(f.in(n, 0).Shape)}}
}

func dequantizeLinear(f *inference, n *NodeProto) []Value {
	return []Value{{Type: f.in(n, 1).Type, Shape: cloneShape(f.in(n, 0).Shape)}}
}

func matMul(f *inference, n *NodeProto) []Value {
	a, b := f.in(n, 0), f.in(n, 1)
	result := Value{Type: a.Type}
	if a.rank() == 0 || b.rank() == 0 {
		return []Value{result}
	}
	left, right := a.Shape, b.Shape
	if a.rank() == 1 {
		left = []int64{1, a.Shape[0]}
	}
	if b.rank() == 1 {
		right = []int64{b.Shape[0], 1}
	}
	result.Shape = broadcast(left[:len(left)-2], right[:len(right)-2])
	if a.rank() > 1 {
		result.Shape = append(result.Shape, left[len(left)-2])
	}
	if b.rank() > 1 {
		result.Shape = append(result.Shape, right[len(right)-1])
	}
	return []Value{result}
}

func gemm(f *inference, n *NodeProto) []Value {
	a, b := f.in(n, 0), f.in(n, 1)
	if a.rank() != 2 || b.rank() != 2 {
		return []Value{{Type: a.Type}}
	}
	return []Value{{Type: a.Type, Shape: []int64{a.Shape[n.IntOr("transA", 0)&1], b.Shape[1-n.IntOr("transB", 0)&1]}}}
}

func reduce(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: x.Type}
	if x.Shape == nil {
		return []Value{result}
	}
	axes := f.list(n, "axes")
	if axes == nil && n.In(1) != "" {
		if n.IntOr("keepdims", 1) != 0 {
			result.Shape = unknownShape(x.rank())
		}
		return []Value{result}
	}
	if len(axes) == 0 && n.IntOr("noop_with_empty_axes", 0) != 0 {
		result.Shape = cloneShape(x.Shape)
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
		switch {
		case !gone[i] && len(axes) > 0:
			result.Shape = append(result.Shape, d)
		case n.IntOr("keepdims", 1) != 0:
			result.Shape = append(result.Shape, 1)
		}
	}
	return []Value{result}
}

func argReduce(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	result := Value{Type: TensorProto_INT64}
	if i, ok := axis(n.IntOr("axis", 0), x.rank()); ok {
		result.Shape = cloneShape(x.Shape)
		if n.IntOr("keepdims", 1) != 0 {
			result.Shape[i] = 1
		} else {
			result.Shape = append(result.Shape[:i], result.Shape[i+1:]...)
		}
	}
	return []Value{result}
}

func topK(f *inference, n *NodeProto) []Value {
	x := f.in(n, 0)
	values, indices := Value{Type: x.Type}, Value{Type: TensorProto_INT64}
	if i, ok := axis(n.IntOr("axis", -1), x.rank()); ok {
		values.Shape = cloneShape(x.Shape)
		values.Shape[i] = UnknownDim
		if k := f.fixed(n, 1); len(k) == 1 {
			values.Shape[i] = k[0]
		}
		indices.Shape = cloneShape(values.Shape)
	}
	return []Value{values, indices}
}

func nonMaxSuppression(*inference, *NodeProto) []Value {
	return []Value{{Type: TensorProto_INT64, Shape: []int64{UnknownDim, 3}}}
}

func nonZero(f *inference, n *NodeProto) []Value {
	result := Value{Type: TensorProto_INT64}
	if x := f.in(n, 0); x.Shape != nil {
		result.Shape = []int64{int64(x.rank()), UnknownDim}
	}
	return []Value{result}
}
