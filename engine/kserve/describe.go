package kserve

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/edge-infer/edge-infer/engine/kserve/kservepb"
)

// Marshal appends a message of package kservepb to b. It fails if a text of the message is not UTF-8.
func Marshal(b []byte, m proto.Message) ([]byte, error) {
	b, err := proto.MarshalOptions{}.MarshalAppend(b, m)
	if err != nil {
		return nil, Statusf(Internal, "%s has a text that is not UTF-8", m.ProtoReflect().Descriptor().Name())
	}
	return b, nil
}

// Unmarshal decodes a message of package kservepb. Unknown fields are ignored.
func Unmarshal(b []byte, m proto.Message) error {
	if err := checkLists(b, m.ProtoReflect().Descriptor(), map[protoreflect.FullName]int{}); err != nil {
		return err
	}
	if (proto.UnmarshalOptions{DiscardUnknown: true}).Unmarshal(b, m) != nil {
		return errMalformed
	}
	return nil
}

// checkLists returns an error if a message has too many elements in a list or map; lengths are those of all lists that were read before. An
// empty element takes 2 bytes in the message and 100 bytes or more after decoding. Numbers are packed and take at most 8 times their bytes.
func checkLists(b []byte, message protoreflect.MessageDescriptor, lengths map[protoreflect.FullName]int) error {
	return each(b, func(f *field) error {
		about := message.Fields().ByNumber(f.number)
		if about == nil {
			return nil
		}
		if about.Cardinality() == protoreflect.Repeated && !about.IsPacked() {
			lengths[about.FullName()]++
		}
		if lengths[about.FullName()] > maxEntries {
			return fmt.Errorf("%w: more than %d entries of a list", errMalformed, maxEntries)
		}
		if about.Message() == nil {
			return nil
		}
		return checkLists(f.data, about.Message(), lengths)
	})
}

// Registration registers shared memory with a server under a name.
type Registration struct {
	Name string
	Size int64
	// Key is the name of POSIX shared memory; empty for GPU memory.
	Key string
	// Handle is the result of cuIpcGetMemHandle for memory of GPU number Device, as the server numbers it.
	Handle []byte
	Device int
}

// Message returns a CudaSharedMemoryRegisterRequest if Handle is set, else a SystemSharedMemoryRegisterRequest.
func (r *Registration) Message() proto.Message {
	if r.Handle != nil {
		return &kservepb.CudaSharedMemoryRegisterRequest{
			Name: r.Name, RawHandle: r.Handle, DeviceId: int64(r.Device), ByteSize: uint64(r.Size),
		}
	}
	return &kservepb.SystemSharedMemoryRegisterRequest{Name: r.Name, Key: r.Key, ByteSize: uint64(r.Size)}
}

// Message returns the message of a response to ServerMetadata.
func (m *ServerMetadata) Message() *kservepb.ServerMetadataResponse {
	return &kservepb.ServerMetadataResponse{Name: m.Name, Version: m.Version, Extensions: m.Extensions}
}

// SetMessage sets m from a response to ServerMetadata.
func (m *ServerMetadata) SetMessage(from *kservepb.ServerMetadataResponse) {
	*m = ServerMetadata{Name: from.Name, Version: from.Version, Extensions: from.Extensions}
}

// Message returns the message of a response to ModelMetadata.
func (m *ModelMetadata) Message() *kservepb.ModelMetadataResponse {
	return &kservepb.ModelMetadataResponse{
		Name: m.Name, Versions: m.Versions, Platform: m.Platform, Inputs: tensorMessages(m.Inputs), Outputs: tensorMessages(m.Outputs),
	}
}

func tensorMessages(list []TensorMetadata) (messages []*kservepb.TensorMetadata) {
	for _, t := range list {
		messages = append(messages, &kservepb.TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: t.Shape})
	}
	return messages
}

// SetMessage sets m from a response to ModelMetadata. It fails if there are too many tensors or dimensions.
func (m *ModelMetadata) SetMessage(from *kservepb.ModelMetadataResponse) (err error) {
	*m = ModelMetadata{Name: from.Name, Versions: from.Versions, Platform: from.Platform}
	if m.Inputs, err = tensorsOf(from.Inputs); err == nil {
		m.Outputs, err = tensorsOf(from.Outputs)
	}
	return err
}

func tensorsOf(messages []*kservepb.TensorMetadata) (list []TensorMetadata, err error) {
	if len(messages) > maxTensors {
		return nil, fmt.Errorf("%w: more than %d tensors", errMalformed, maxTensors)
	}
	for _, t := range messages {
		if len(t.Shape) > maxRank {
			return nil, fmt.Errorf("description of a tensor: %w: more than %d sizes", errMalformed, maxRank)
		}
		list = append(list, TensorMetadata{Name: t.Name, Datatype: t.Datatype, Shape: append([]int64{}, t.Shape...)})
	}
	return list, nil
}

// ConfigType returns the name of a datatype in a model's configuration.
func ConfigType(datatype string) string {
	if datatype == "BYTES" {
		return kservepb.DataType_TYPE_STRING.String()
	}
	return "TYPE_" + datatype
}

// Message returns the message of a response to ModelConfig.
func (c *ModelConfig) Message() *kservepb.ModelConfigResponse {
	m := &kservepb.ModelConfig{
		Name: c.Name, Platform: c.Platform, Backend: c.Backend, MaxBatchSize: int32(c.MaxBatch),
		Parameters: map[string]*kservepb.ModelParameter{},
	}
	for _, t := range c.Inputs {
		m.Input = append(m.Input, &kservepb.ModelInput{Name: t.Name, DataType: t.dataType(), Dims: t.Dims})
	}
	for _, t := range c.Outputs {
		m.Output = append(m.Output, &kservepb.ModelOutput{Name: t.Name, DataType: t.dataType(), Dims: t.Dims})
	}
	if c.DynamicBatching != nil {
		m.DynamicBatching = &kservepb.ModelDynamicBatching{MaxQueueDelayMicroseconds: c.DynamicBatching.MaxQueueDelay}
	}
	for key, value := range c.Parameters {
		m.Parameters[key] = &kservepb.ModelParameter{StringValue: value.Text}
	}
	return &kservepb.ModelConfigResponse{Config: m}
}

func (t *ConfigTensor) dataType() kservepb.DataType {
	return kservepb.DataType(kservepb.DataType_value[t.DataType])
}

// SetMessage sets c from a response to ModelConfig, without Inputs, Outputs and DynamicBatching.
func (c *ModelConfig) SetMessage(from *kservepb.ModelConfigResponse) {
	m := from.GetConfig()
	*c = ModelConfig{Name: m.GetName(), Platform: m.GetPlatform(), Backend: m.GetBackend(), MaxBatch: int(m.GetMaxBatchSize())}
	for key, value := range m.GetParameters() {
		if c.Parameters == nil {
			c.Parameters = map[string]Parameter{}
		}
		c.Parameters[key] = Parameter{value.GetStringValue()}
	}
}

// Message returns the message of the statistics.
func (s *ModelStatistics) Message() *kservepb.ModelStatistics {
	i := &s.Infer
	m := &kservepb.ModelStatistics{
		Name: s.Name, Version: s.Version, LastInference: s.LastInference, InferenceCount: s.InferenceCount, ExecutionCount: s.ExecutionCount,
		InferenceStats: &kservepb.InferStatistics{
			Success: i.Success.message(), Fail: i.Fail.message(), Queue: i.Queue.message(), ComputeInput: i.ComputeInput.message(),
			ComputeInfer: i.ComputeInfer.message(), ComputeOutput: i.ComputeOutput.message(), CacheHit: i.CacheHit.message(),
			CacheMiss: i.CacheMiss.message(),
		},
	}
	for _, batch := range s.Batches {
		m.BatchStats = append(m.BatchStats, &kservepb.InferBatchStatistics{
			BatchSize: batch.BatchSize, ComputeInput: batch.ComputeInput.message(), ComputeInfer: batch.ComputeInfer.message(),
			ComputeOutput: batch.ComputeOutput.message(),
		})
	}
	return m
}

func (d Duration) message() *kservepb.StatisticDuration {
	return &kservepb.StatisticDuration{Count: d.Count, Ns: d.Ns}
}
