package tensorrt

// #include "shim.h"
import "C"

import (
	"encoding/json"
	"fmt"
	"strings"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
)

// Layer is one layer of a plan after TensorRT's fusion and placement.
type Layer struct {
	Name string `json:"name"`
	// Type is TensorRT's name of the layer type.
	Type string `json:"kind,omitempty"`
	// Precision is the type of the layer's first input, in which a convolution computes: int8, fp16, fp32, bf16, fp8, int32 and so on;
	// empty if unknown.
	Precision string `json:"precision,omitempty"`
	// Device is DLA or GPU.
	Device string `json:"device"`
}

// Placement returns the layers of the plan in execution order. Plans from other tools may contain the layers' names only.
func (e *Engine) Placement() ([]Layer, error) {
	e.open.RLock()
	defer e.open.RUnlock()
	if e.closed {
		return nil, newError("placement", engine.ErrClosed, "", "the engine is closed")
	}
	length := C.ei_engine_layers(e.handle, nil, 0)
	if length == 0 {
		return nil, newError("placement", engine.ErrUnsupported, "", "the plan has no layer information")
	}
	text := make([]byte, length+1)
	C.ei_engine_layers(e.handle, (*C.char)(unsafe.Pointer(&text[0])), length+1)
	layers, err := readLayers(text[:length])
	if err != nil {
		return nil, newError("placement", engine.ErrUnsupported, "", "%v", err)
	}
	return layers, nil
}

// inspected is a layer in the engine inspector's JSON.
type inspected struct {
	Name      string
	LayerType string
	Inputs    []inspectedTensor
	Outputs   []inspectedTensor
}

type inspectedTensor struct {
	Format   string `json:"Format/Datatype"`
	Datatype string
}

// readLayers parses the inspector's JSON: objects if the plan has details, otherwise names.
func readLayers(text []byte) ([]Layer, error) {
	var plan struct{ Layers []json.RawMessage }
	if err := json.Unmarshal(text, &plan); err != nil {
		return nil, fmt.Errorf("layer description: %w", err)
	}
	layers := make([]Layer, 0, len(plan.Layers))
	for _, raw := range plan.Layers {
		layer := Layer{Device: "GPU"}
		var in inspected
		if json.Unmarshal(raw, &layer.Name) != nil {
			if err := json.Unmarshal(raw, &in); err != nil {
				return nil, fmt.Errorf("layer description: %w", err)
			}
			layer.Name, layer.Type = in.Name, in.LayerType
		}
		for _, t := range append(in.Inputs, in.Outputs...) {
			layer.Precision = precisionOf(t.Datatype + " " + t.Format)
			if layer.Precision != "" {
				break
			}
		}
		if strings.HasPrefix(strings.ToUpper(in.LayerType), "DLA") {
			layer.Device = "DLA"
		}
		layers = append(layers, layer)
	}
	return layers, nil
}

// precisionOf extracts the element type from a text like "Channel major FP16 format where channel % 8 == 0".
func precisionOf(format string) string {
	words := strings.FieldsFunc(strings.ToLower(format), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	for _, word := range words {
		switch word {
		case "int8", "fp16", "fp32", "bf16", "fp8", "fp4", "int4", "int32", "int64", "uint8", "bool":
			return word
		case "half":
			return string(engine.FP16)
		case "float":
			return string(engine.FP32)
		case "bfloat16":
			return "bf16"
		}
	}
	return ""
}
