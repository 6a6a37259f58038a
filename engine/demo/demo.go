// Package demo holds the detector that runs when no model is named: six kinds of machine parts on the belt of capture/scene. How it was
// trained, and how well it does, is in README.md.
package demo

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

//go:embed model.onnx.gz
var packed []byte

// Model unpacks the ONNX file, which takes some 20 ms; the memory is the caller's.
func Model() []byte {
	reader, err := gzip.NewReader(bytes.NewReader(packed))
	if err != nil {
		panic(err) // it is part of the program
	}
	model, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	return model
}
