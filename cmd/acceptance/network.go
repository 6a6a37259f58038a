package main

import (
	"fmt"
	"path"
	"strconv"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
)

// background is subtracted from the biases of the class scores. A trained detector scores nearly every anchor below 0.01; random weights
// would score all of them above the tracker's minimum, and the benchmark would measure the sorting of thousands of boxes.
const background = 4

// writeNetwork writes a YOLOv8n-shaped network with random weights and a dynamic batch. Its arguments are OUT.onnx [SIDE [half]]; half
// makes inputs, outputs and weights float16.
func writeNetwork(args []string) error {
	side := int64(640)
	if len(args) > 1 {
		var err error
		if side, err = strconv.ParseInt(args[1], 10, 16); err != nil || side < 32 || side%32 != 0 {
			return fmt.Errorf("side %q: must be a multiple of 32", args[1])
		}
	}
	m := testnet.YOLO{Size: side, Dynamic: true, Seed: 1}.V8()
	lowered := 0
	for i, t := range m.Proto.Graph.Initializer {
		if is, err := path.Match("model.22.cv3.?.2.bias", t.GetName()); err != nil || !is {
			continue
		}
		values, err := t.Floats()
		if err != nil {
			return err
		}
		for j := range values {
			values[j] -= background
		}
		m.Proto.Graph.Initializer[i] = onnx.NewFloats(t.GetName(), values, t.Dims...)
		lowered++
	}
	if lowered != 3 {
		return fmt.Errorf("found %d class score layers instead of 3", lowered)
	}
	if len(args) > 2 {
		if args[2] != "half" {
			return usage{}
		}
		if _, err := quantize.ConvertFP16(m, quantize.FP16Options{ConvertIO: true, ConvertTail: true}); err != nil {
			return err
		}
	}
	return m.Save(args[0])
}
