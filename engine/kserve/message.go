// Package kserve encodes and decodes messages of the Open Inference Protocol, version 2, as Triton Inference Server and KServe use it:
// protocol buffers for gRPC, and for HTTP JSON that binary tensors may follow. It works on bytes and opens no connection. Messages come
// from other machines, so every size is compared with the bytes received before memory is allocated for it.
package kserve

import (
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
)

// Limits of decoded messages.
const (
	maxTensors = 256
	maxRank    = 8
	maxEntries = 1024 // of lists and maps other than lists of tensors
	// MaxErrorBytes limits the text of an error: some servers repeat the whole request in it.
	MaxErrorBytes = 512
)

// Tensor is an input or output of a request. Data is little endian and dense, and empty for a tensor in a Region. After Unmarshal it refers
// to the decoded message where that has the data in this form, otherwise it is a copy.
type Tensor struct {
	Name     string
	Datatype string
	Shape    []int64
	Data     []byte
	Region   Region
	// Classes requests the given number of best classes instead of the whole output (Triton's classification extension); 0 for the whole
	// output.
	Classes int64
}

// Region is a part of shared memory that was registered with the server by name.
type Region struct {
	Name         string
	Offset, Size int64
}

// InferRequest is a request to run a model once.
type InferRequest struct {
	Model, Version, ID string
	Inputs             []Tensor
	// Outputs are the requested outputs; none means all. Their Datatype and Shape are not used.
	Outputs []Tensor
	// BinaryOutput permits binary outputs behind the JSON. Over gRPC they are always binary.
	BinaryOutput bool
}

// InferResponse is the response to an InferRequest.
type InferResponse struct {
	Model, Version, ID string
	Outputs            []Tensor

	raws [][]byte // of a message being read
}

// ServerMetadata describes a server.
type ServerMetadata struct {
	Name       string   `json:"name"`
	Version    string   `json:"version"`
	Extensions []string `json:"extensions"`
}

// TensorMetadata describes an input or output of a model. Dynamic dimensions are -1.
type TensorMetadata struct {
	Name     string  `json:"name"`
	Datatype string  `json:"datatype"`
	Shape    []int64 `json:"shape"`
}

// ModelMetadata describes a model.
type ModelMetadata struct {
	Name     string           `json:"name"`
	Versions []string         `json:"versions"`
	Platform string           `json:"platform"`
	Inputs   []TensorMetadata `json:"inputs"`
	Outputs  []TensorMetadata `json:"outputs"`
}

// Parameter is a value of a model's configuration.
type Parameter struct {
	Text string `json:"string_value"`
}

// ConfigTensor is an input or output in a model's configuration, without the batch dimension if the model supports batches.
type ConfigTensor struct {
	Name     string  `json:"name"`
	DataType string  `json:"data_type"` // TYPE_FP32 and so on
	Dims     []int64 `json:"dims"`
}

// DynamicBatching configures how a server combines requests.
type DynamicBatching struct {
	MaxQueueDelay uint64 `json:"max_queue_delay_microseconds"`
}

// ModelConfig is the part of Triton's model configuration that this project uses.
type ModelConfig struct {
	Name            string               `json:"name"`
	Platform        string               `json:"platform"`
	Backend         string               `json:"backend"`
	MaxBatch        int                  `json:"max_batch_size"` // 0 for a model without batches
	Inputs          []ConfigTensor       `json:"input"`
	Outputs         []ConfigTensor       `json:"output"`
	Parameters      map[string]Parameter `json:"parameters"`
	DynamicBatching *DynamicBatching     `json:"dynamic_batching,omitempty"`
}

// Duration is the number of occurrences and their total time in nanoseconds.
type Duration struct {
	Count uint64 `json:"count"`
	Ns    uint64 `json:"ns"`
}

// InferStatistics are the durations of a model's requests.
type InferStatistics struct {
	Success       Duration `json:"success"`
	Fail          Duration `json:"fail"`
	Queue         Duration `json:"queue"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
	CacheHit      Duration `json:"cache_hit"`
	CacheMiss     Duration `json:"cache_miss"`
}

// BatchStatistics are the durations of the runs with one batch size.
type BatchStatistics struct {
	BatchSize     uint64   `json:"batch_size"`
	ComputeInput  Duration `json:"compute_input"`
	ComputeInfer  Duration `json:"compute_infer"`
	ComputeOutput Duration `json:"compute_output"`
}

// ModelStatistics are a model's counters since the server started.
type ModelStatistics struct {
	Name           string            `json:"name"`
	Version        string            `json:"version"`
	LastInference  uint64            `json:"last_inference"` // milliseconds since 1970
	InferenceCount uint64            `json:"inference_count"`
	ExecutionCount uint64            `json:"execution_count"`
	Infer          InferStatistics   `json:"inference_stats"`
	Batches        []BatchStatistics `json:"batch_stats"`
}

var datatypes = map[engine.DataType]string{
	engine.Float32: "FP32", engine.Float16: "FP16", engine.Int8: "INT8", engine.Uint8: "UINT8", engine.Int32: "INT32", engine.Int64: "INT64",
	engine.Bool: "BOOL",
}

// Datatype is the protocol's name of an element type.
func Datatype(t engine.DataType) string { return datatypes[t] }

// ElementType returns the element type for a name of the protocol; false if the engine does not support it.
func ElementType(datatype string) (engine.DataType, bool) {
	for t, name := range datatypes {
		if name == datatype {
			return t, true
		}
	}
	return 0, false
}

// Bytes returns the size of a tensor with that shape in bytes. It returns false for an unknown element type, a negative dimension, or a
// size that exceeds any memory.
func Bytes(datatype string, shape []int64) (int, bool) {
	t, ok := ElementType(datatype)
	if !ok {
		return 0, false
	}
	const most = 1 << 40
	size := int64(t.Size())
	for _, n := range shape {
		if n < 0 || n > 0 && size > most/n {
			return 0, false
		}
		size *= n
	}
	return int(size), true
}

// BatchBytes returns the size of tensors whose dynamic first dimension is the batch, false if another dimension is dynamic.
func BatchBytes(tensors []engine.TensorInfo, batch int) (size int, known bool) {
	for _, t := range tensors {
		shape := slices.Clone(t.Shape)
		if len(shape) > 0 && shape[0] == -1 {
			shape[0] = int64(batch)
		}
		n, ok := Bytes(Datatype(t.Type), shape)
		if !ok {
			return 0, false
		}
		size += n
	}
	return size, true
}

// Check returns an error unless the data has the size of the shape: some servers return a shape without data.
func (t *Tensor) Check() error {
	size, ok := Bytes(t.Datatype, t.Shape)
	if !ok {
		return fmt.Errorf("tensor %.64q: %.16s %v is no type and shape that can be read", t.Name, t.Datatype, t.Shape)
	}
	if len(t.Data) != size {
		return fmt.Errorf("tensor %.64q: %d bytes instead of %d for %s %v", t.Name, len(t.Data), size, t.Datatype, t.Shape)
	}
	return nil
}

// extend adds a tensor to a list and reuses the memory of a previous message at that index.
func extend(list []Tensor) ([]Tensor, *Tensor) {
	if len(list) < cap(list) {
		list = list[:len(list)+1]
	} else {
		list = append(list, Tensor{})
	}
	t := &list[len(list)-1]
	*t = Tensor{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape[:0]}
	return list, t
}

// reuse returns the old text if the new one is equal, so that unchanging texts are allocated once.
func reuse(old string, read []byte) string {
	if old == string(read) {
		return old
	}
	return string(read)
}
