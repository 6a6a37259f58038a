// Package kservepb has the messages without tensors of the Open Inference Protocol, version 2, over gRPC. Inference requests and responses
// are not among them: package kserve encodes those itself, since generated code would copy every tensor.
package kservepb

//go:generate sh -c "protoc --plugin=protoc-gen-go=$(go tool -n protoc-gen-go) --go_out=. --go_opt=paths=source_relative kserve.proto"
