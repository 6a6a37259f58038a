// Package onnx reads, checks, rewrites and writes ONNX files. Rewriting preserves the bytes of everything else, unknown fields included.
package onnx

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative onnx.proto"
