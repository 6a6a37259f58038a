// Package kserve is the Open Inference Protocol, version 2, as Triton Inference Server and KServe speak it: its messages in protocol
// buffers for gRPC, and in JSON with tensors in binary behind it for HTTP. It reads and writes bytes and opens no connection. What it reads
// comes from other machines, so every size is compared with the bytes that are there before memory is taken for it.
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
	maxEntries = 1024 // of a list or a map that is no list of tensors
	// MaxErrorBytes is how much of an error's text is kept: some servers repeat the whole request in it.
	MaxErrorBytes = 512
)

// Tensor is an input or an output of a request. Data is little endian and dense; it is empty where the tensor is in a Region. After
// Unmarshal it is a view of the bytes that were read wherever the message holds it as it is.
type Tensor struct {
	Name     string
	Datatype string
	Shape    []int64
	Data     []byte
	Region   Region
	// Classes is how many of its best classes a requested output is to be reduced to (Triton's classification extension); 0 for none.
	Classes int64
}

// Region is a part of shared memory that was registered with the server by name.
type Region struct {
	Name         string
	Offset, Size int64
}

// InferRequest asks for one run of a model.
type InferRequest struct {
	Model, Version, ID string
	Inputs             []Tensor
	// Outputs are the requested outputs; none means all. Their Datatype and Shape are not used.
	Outputs []Tensor
	// BinaryOutput permits binary outputs behind the JSON. Over gRPC they are always binary.
	BinaryOutput bool
}

// InferResponse is the answer.
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

// TensorMetadata describes an input or an output of a model. A size that may vary is -1.
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

// ConfigTensor is an input or output in a model's configuration, without the batch where the model has one.
type ConfigTensor struct {
	Name     string  `json:"name"`
	DataType string  `json:"data_type"` // TYPE_FP32 and so on
	Dims     []int64 `json:"dims"`
}

// DynamicBatching holds the settings by which a server combines requests.
type DynamicBatching struct {
	MaxQueueDelay uint64 `json:"max_queue_delay_microseconds"`
}

// ModelConfig is the part of Triton's model configuration that is of use here.
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

// Duration is how often something happened and how long it took in all, in nanoseconds.
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

// ElementType is the element type of that name; false for those that the engine has not.
func ElementType(datatype string) (engine.DataType, bool) {
	for t, name := range datatypes {
		if name == datatype {
			return t, true
		}
	}
	return 0, false
}

// Bytes is the memory of a tensor with that shape, false where it has no size that can be: an unknown element type or a size under 0, or
// one that no memory holds.
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

// BatchBytes returns the memory of tensors whose open first dimension is the batch, false if another dimension is open.
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

// Check compares the data with the shape: servers were seen that answer with a shape and no data.
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

// extend adds a tensor to a list; what an earlier message left there lends it the memory of its shape.
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

// reuse is the old text where the new one is the same, so that what never changes is allocated once.
func reuse(old string, read []byte) string {
	if old == string(read) {
		return old
	}
	return string(read)
}
