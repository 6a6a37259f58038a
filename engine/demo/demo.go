// Package demo holds the detector that runs when no model is named: six kinds of machine parts on the belt of capture/scene. How it was
// trained, and how well it does, is in README.md.
package demo

import _ "embed"

//go:embed model.onnx
var model []byte

// Model returns the ONNX file. The memory is shared and must not be changed.
func Model() []byte { return model }
