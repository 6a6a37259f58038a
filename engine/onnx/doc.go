// Package onnx reads, checks, rewrites and writes ONNX files. What a rewrite does not touch keeps its bytes, fields that this package does
// not know included.
package onnx

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative onnx.proto"
