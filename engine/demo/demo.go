// Package demo holds the detector that runs when no model is named: six kinds of machine parts on the belt of capture/scene. How it was
// trained, and how well it does, is in README.md.
package demo

import (
	_ "embed"

	"github.com/edge-infer/edge-infer/engine/packed"
)

//go:embed model.onnx.gz
var model []byte

// Model unpacks the ONNX file, which takes some 20 ms; the memory is the caller's.
func Model() []byte { return packed.Unpack(model) }
