// Package demo embeds the demo model, a detector of six kinds of machine parts on the conveyor belt of capture/scene. README.md describes
// its training and accuracy.
package demo

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"io"
)

//go:embed model.onnx.gz
var model []byte

// Model decompresses the ONNX file, which takes about 20 ms. The caller owns the result.
func Model() []byte {
	reader, err := gzip.NewReader(bytes.NewReader(model))
	if err != nil {
		panic(err) // the program file is damaged
	}
	data, err := io.ReadAll(reader)
	if err != nil {
		panic(err)
	}
	return data
}
