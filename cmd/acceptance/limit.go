package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// bound is the lower bound of the time of a network's convolutions on a device (roofline model).
type bound struct {
	layers            int
	operations, bytes float64 // of all convolutions, in FP16
	// Seconds for the arithmetic, for the memory traffic, and for the slower of the two summed by layer.
	arithmetic, memory, both float64
}

// limit adds up a network's convolutions for a batch: a multiplication and an addition per weight and output element, with inputs, weights
// and outputs transferred once. Other layers cost nothing, as if they were all fused. operations and bandwidth are per second.
func limit(m *onnx.Model, batch int64, operations, bandwidth float64) (b bound, err error) {
	inputs, err := m.Inputs()
	if err != nil {
		return b, err
	}
	shapes := map[string][]int64{}
	for _, in := range inputs {
		shapes[in.Name] = append([]int64{batch}, in.Shape[1:]...)
	}
	values := m.Infer(shapes)
	for _, n := range m.Proto.Graph.Node {
		if n.GetOpType() != "Conv" {
			continue
		}
		in, weights, out := values[n.Input[0]].Shape, values[n.Input[1]].Shape, values[n.Output[0]].Shape
		if elements(in)*elements(weights)*elements(out) == 0 {
			return b, fmt.Errorf("the shapes at %s are unknown", n.GetName())
		}
		work := 2 * elements(out) * elements(weights[1:])
		moved := 2 * (elements(in) + elements(weights) + elements(out))
		b.layers++
		b.operations, b.bytes = b.operations+work, b.bytes+moved
		b.both += max(work/operations, moved/bandwidth)
	}
	b.arithmetic, b.memory = b.operations/operations, b.bytes/bandwidth
	return b, nil
}

// elements returns the number of elements, 0 if the shape is unknown.
func elements(shape []int64) float64 {
	if len(shape) == 0 || slices.Min(shape) < 1 {
		return 0
	}
	n := 1.0
	for _, side := range shape {
		n *= float64(side)
	}
	return n
}

// printLimit prints the bounds for the arguments NET.onnx BATCH TFLOP/s TB/s.
func printLimit(out io.Writer, args []string) error {
	if len(args) != 4 {
		return usage{}
	}
	m, err := onnx.Read(args[0])
	if err != nil {
		return err
	}
	var numbers [3]float64
	for i := range numbers {
		if numbers[i], err = strconv.ParseFloat(args[i+1], 64); err != nil || !(numbers[i] > 0) {
			return fmt.Errorf("%q: must be a positive number", args[i+1])
		}
	}
	b, err := limit(m, int64(numbers[0]), numbers[1]*1e12, numbers[2]*1e12)
	if err != nil {
		return err
	}
	rate := func(seconds float64) string {
		return fmt.Sprintf("%.0f us, %.0f images fps", seconds*1e6, numbers[0]/seconds)
	}
	_, err = fmt.Fprintf(out, "%d convolutions, %.1f GFLOP, %.3f GB in FP16\narithmetic: %s\nmemory: %s\n"+
		"the slower of both, layer by layer: %s\n", b.layers, b.operations/1e9, b.bytes/1e9, rate(b.arithmetic), rate(b.memory), rate(b.both))
	return err
}
