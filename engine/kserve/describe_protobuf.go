package kserve

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// ModelRequest is a request about a model; with an empty version the server chooses it.
type ModelRequest struct{ Name, Version string }

// Marshal encodes the request.
func (n *ModelRequest) Marshal(b []byte) []byte {
	return appendText(appendText(b, 1, n.Name), 2, n.Version)
}

// Unmarshal decodes the request.
func (n *ModelRequest) Unmarshal(b []byte) error {
	return each(b, func(f *field) error {
		switch f.number {
		case 1:
			n.Name = string(f.data)
		case 2:
			n.Version = string(f.data)
		}
		return nil
	})
}

// BoolResponse is the response to ServerLive, ServerReady and ModelReady.
type BoolResponse bool

// Marshal encodes the response.
func (t *BoolResponse) Marshal(b []byte) []byte { return appendBool(b, 1, bool(*t)) }

// Unmarshal decodes the response.
func (t *BoolResponse) Unmarshal(b []byte) error {
	*t = false
	return each(b, func(f *field) error {
		if f.number == 1 {
			*t = f.value != 0
		}
		return nil
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

// Marshal encodes a SystemSharedMemoryRegisterRequest, or a CudaSharedMemoryRegisterRequest if Handle is set.
func (r *Registration) Marshal(b []byte) []byte {
	b = appendText(b, 1, r.Name)
	if r.Handle != nil {
		b = appendNumber(appendText(b, 2, string(r.Handle)), 3, uint64(r.Device))
	} else {
		b = appendText(b, 2, r.Key)
	}
	return appendNumber(b, 4, uint64(r.Size))
}

// Unmarshal decodes a registration; cuda is set for GPU memory.
func (r *Registration) Unmarshal(b []byte, cuda bool) error {
	return each(b, func(f *field) error {
		switch {
		case f.number == 1:
			r.Name = string(f.data)
		case f.number == 2 && cuda:
			r.Handle = append([]byte{}, f.data...)
		case f.number == 2:
			r.Key = string(f.data)
		case f.number == 3 && cuda:
			r.Device = int(f.value)
		case f.number == 4:
			r.Size = int64(f.value)
		}
		return nil
	})
}

// Marshal encodes server metadata.
func (m *ServerMetadata) Marshal(b []byte) []byte {
	b = appendText(appendText(b, 1, m.Name), 2, m.Version)
	for _, extension := range m.Extensions {
		b = appendText(b, 3, extension)
	}
	return b
}

// Unmarshal decodes server metadata.
func (m *ServerMetadata) Unmarshal(b []byte) error {
	return each(b, func(f *field) (err error) {
		switch f.number {
		case 1:
			m.Name = string(f.data)
		case 2:
			m.Version = string(f.data)
		case 3:
			m.Extensions, err = appendEntry(m.Extensions, string(f.data))
		}
		return err
	})
}

// appendEntry appends to a list whose length another machine determines, and limits it.
func appendEntry[T any](list []T, entry T) ([]T, error) {
	if len(list) == maxEntries {
		return list, fmt.Errorf("%w: more than %d entries of a list", errMalformed, maxEntries)
	}
	return append(list, entry), nil
}

// Marshal encodes model metadata.
func (m *ModelMetadata) Marshal(b []byte) []byte {
	b = appendText(b, 1, m.Name)
	for _, version := range m.Versions {
		b = appendText(b, 2, version)
	}
	b = appendText(b, 3, m.Platform)
	for number, list := range [][]TensorMetadata{m.Inputs, m.Outputs} {
		for i := range list {
			b = appendMessage(b, protowire.Number(4+number), func(b []byte) []byte {
				return appendNumbers(appendText(appendText(b, 1, list[i].Name), 2, list[i].Datatype), 3, list[i].Shape)
			})
		}
	}
	return b
}

// Unmarshal decodes model metadata.
func (m *ModelMetadata) Unmarshal(b []byte) error {
	return each(b, func(f *field) (err error) {
		switch f.number {
		case 1:
			m.Name = string(f.data)
		case 2:
			m.Versions, err = appendEntry(m.Versions, string(f.data))
		case 3:
			m.Platform = string(f.data)
		case 4:
			m.Inputs, err = appendDescription(m.Inputs, f.data)
		case 5:
			m.Outputs, err = appendDescription(m.Outputs, f.data)
		}
		return err
	})
}

func appendDescription(list []TensorMetadata, b []byte) ([]TensorMetadata, error) {
	t := TensorMetadata{Shape: []int64{}}
	err := each(b, func(f *field) (err error) {
		switch f.number {
		case 1:
			t.Name = string(f.data)
		case 2:
			t.Datatype = string(f.data)
		case 3:
			t.Shape, err = f.numbers(t.Shape, maxRank)
		}
		return err
	})
	if err != nil || len(list) == maxTensors {
		return list, fmt.Errorf("description of a tensor: %w", orDamaged(err))
	}
	return append(list, t), nil
}

func orDamaged(err error) error {
	if err == nil {
		return errMalformed
	}
	return err
}

// elementTypes are the names of element types in a model's configuration, indexed by their number.
var elementTypes = []string{
	"TYPE_INVALID", "TYPE_BOOL", "TYPE_UINT8", "TYPE_UINT16", "TYPE_UINT32", "TYPE_UINT64", "TYPE_INT8", "TYPE_INT16", "TYPE_INT32",
	"TYPE_INT64", "TYPE_FP16", "TYPE_FP32", "TYPE_FP64", "TYPE_STRING", "TYPE_BF16",
}

// ConfigType returns the name of a datatype in a model's configuration.
func ConfigType(datatype string) string {
	if datatype == "BYTES" {
		return "TYPE_STRING"
	}
	return "TYPE_" + datatype
}

// Marshal encodes the response to ModelConfig.
func (c *ModelConfig) Marshal(b []byte) []byte { return appendMessage(b, 1, c.append) }

func (c *ModelConfig) append(b []byte) []byte {
	b = appendText(b, 1, c.Name)
	b = appendText(b, 2, c.Platform)
	b = appendText(b, 17, c.Backend)
	b = appendNumber(b, 4, uint64(c.MaxBatch))
	for i := range c.Inputs {
		b = appendMessage(b, 5, func(b []byte) []byte { return c.Inputs[i].append(b, 4) })
	}
	for i := range c.Outputs {
		b = appendMessage(b, 6, func(b []byte) []byte { return c.Outputs[i].append(b, 3) })
	}
	if c.DynamicBatching != nil {
		b = appendMessage(b, 11, func(b []byte) []byte { return appendNumber(b, 2, c.DynamicBatching.MaxQueueDelay) })
	}
	for key, value := range c.Parameters {
		b = appendMessage(b, 14, func(b []byte) []byte {
			return appendMessage(appendText(b, 1, key), 2, func(b []byte) []byte { return appendText(b, 1, value.Text) })
		})
	}
	return b
}

func (t *ConfigTensor) append(b []byte, dims protowire.Number) []byte {
	b = appendText(b, 1, t.Name)
	for number, name := range elementTypes {
		if name == t.DataType {
			b = appendNumber(b, 2, uint64(number))
		}
	}
	return appendNumbers(b, dims, t.Dims)
}

// Unmarshal decodes the response to ModelConfig.
func (c *ModelConfig) Unmarshal(b []byte) error {
	return each(b, func(f *field) error {
		if f.number == 1 {
			return c.read(f.data)
		}
		return nil
	})
}

func (c *ModelConfig) read(b []byte) error {
	return each(b, func(f *field) (err error) {
		switch f.number {
		case 1:
			c.Name = string(f.data)
		case 2:
			c.Platform = string(f.data)
		case 17:
			c.Backend = string(f.data)
		case 4:
			c.MaxBatch = int(int32(f.value))
		case 14:
			err = c.parameter(f.data)
		}
		return err
	})
}

func (c *ModelConfig) parameter(entry []byte) error {
	var key, text string
	err := each(entry, func(f *field) error {
		switch f.number {
		case 1:
			key = string(f.data)
		case 2:
			return each(f.data, func(f *field) error {
				if f.number == 1 {
					text = string(f.data)
				}
				return nil
			})
		}
		return nil
	})
	if err != nil || len(c.Parameters) == maxEntries {
		return orDamaged(err)
	}
	if c.Parameters == nil {
		c.Parameters = map[string]Parameter{}
	}
	c.Parameters[key] = Parameter{text}
	return nil
}

// MarshalStatistics encodes the response to ModelStatistics.
func MarshalStatistics(b []byte, models []ModelStatistics) []byte {
	for i := range models {
		b = appendMessage(b, 1, models[i].append)
	}
	return b
}

func (s *ModelStatistics) append(b []byte) []byte {
	b = appendText(appendText(b, 1, s.Name), 2, s.Version)
	b = appendNumber(b, 3, s.LastInference)
	b = appendNumber(b, 4, s.InferenceCount)
	b = appendNumber(b, 5, s.ExecutionCount)
	b = appendMessage(b, 6, func(b []byte) []byte {
		i := &s.Infer
		return appendDurations(b, i.Success, i.Fail, i.Queue, i.ComputeInput, i.ComputeInfer, i.ComputeOutput, i.CacheHit, i.CacheMiss)
	})
	for _, batch := range s.Batches {
		b = appendMessage(b, 7, func(b []byte) []byte {
			b = appendNumber(b, 1, batch.BatchSize)
			for number, d := range []Duration{batch.ComputeInput, batch.ComputeInfer, batch.ComputeOutput} {
				b = appendMessage(b, protowire.Number(2+number), d.append)
			}
			return b
		})
	}
	return b
}

func appendDurations(b []byte, durations ...Duration) []byte {
	for number, d := range durations {
		b = appendMessage(b, protowire.Number(1+number), d.append)
	}
	return b
}

func (d Duration) append(b []byte) []byte { return appendNumber(appendNumber(b, 1, d.Count), 2, d.Ns) }

// AppendIndex appends one model to the response to RepositoryIndex.
func AppendIndex(b []byte, name, version, state, reason string) []byte {
	return appendMessage(b, 1, func(b []byte) []byte {
		return appendText(appendText(appendText(appendText(b, 1, name), 2, version), 3, state), 4, reason)
	})
}
