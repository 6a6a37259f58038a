package kserve

import (
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// Field numbers of InferRequest and InferResponse, which differ only in the lists of tensors.
const (
	fieldModel      = 1
	fieldVersion    = 2
	fieldID         = 3
	fieldInputs     = 5
	fieldWanted     = 6 // of a request
	fieldRawInputs  = 7
	fieldOutputs    = 5 // of an answer
	fieldRawOutputs = 6
)

// Names of the parameters for tensors in shared memory.
const (
	regionName   = "shared_memory_region"
	regionSize   = "shared_memory_byte_size"
	regionOffset = "shared_memory_offset"
)

// classification is the parameter that requests the best classes of an output.
const classification = "classification"

// AppendHead encodes the request without the data of its inputs. For each input that is in no Region, AppendRaw and the data must follow.
// Requests that differ in their data only have the same head.
func (r *InferRequest) AppendHead(b []byte) []byte {
	b = appendText(b, fieldModel, r.Model)
	b = appendText(b, fieldVersion, r.Version)
	b = appendText(b, fieldID, r.ID)
	for i := range r.Inputs {
		b = appendMessage(b, fieldInputs, r.Inputs[i].append)
	}
	for i := range r.Outputs {
		wanted := Tensor{Name: r.Outputs[i].Name, Region: r.Outputs[i].Region}
		b = appendMessage(b, fieldWanted, wanted.appendWanted)
	}
	return b
}

// AppendRaw appends the field header of an input's data with the given size.
func AppendRaw(b []byte, size int) []byte {
	return protowire.AppendVarint(protowire.AppendTag(b, fieldRawInputs, protowire.BytesType), uint64(size))
}

// append encodes a tensor without its data.
func (t *Tensor) append(b []byte) []byte {
	b = appendText(b, 1, t.Name)
	b = appendText(b, 2, t.Datatype)
	b = appendNumbers(b, 3, t.Shape)
	return t.Region.append(b, 4)
}

func (t *Tensor) appendWanted(b []byte) []byte { return t.Region.append(appendText(b, 1, t.Name), 2) }

// append encodes a region as parameters of a tensor.
func (r *Region) append(b []byte, number protowire.Number) []byte {
	if r.Name == "" {
		return b
	}
	parameter := func(key string, value func([]byte) []byte) {
		b = appendMessage(b, number, func(b []byte) []byte { return appendMessage(appendText(b, 1, key), 2, value) })
	}
	parameter(regionName, func(b []byte) []byte { return appendText(b, 3, r.Name) })
	parameter(regionSize, func(b []byte) []byte { return appendNumber(b, 2, uint64(r.Size)) })
	if r.Offset != 0 {
		parameter(regionOffset, func(b []byte) []byte { return appendNumber(b, 2, uint64(r.Offset)) })
	}
	return b
}

// Unmarshal decodes a request in a server. Data refers to b.
func (r *InferRequest) Unmarshal(b []byte) error {
	*r = InferRequest{BinaryOutput: true}
	var raws [][]byte
	err := each(b, func(f *field) (err error) {
		switch f.number {
		case fieldModel:
			r.Model = string(f.data)
		case fieldVersion:
			r.Version = string(f.data)
		case fieldID:
			r.ID = string(f.data)
		case fieldInputs:
			r.Inputs, err = appendTensor(r.Inputs, f, 4, false)
		case fieldWanted:
			r.Outputs, err = appendTensor(r.Outputs, f, 2, true)
		case fieldRawInputs:
			raws, err = appendRaw(raws, f)
		}
		return err
	})
	if err != nil {
		return err
	}
	return distribute(r.Inputs, raws)
}

// Marshal encodes a response.
func (r *InferResponse) Marshal(b []byte) []byte {
	b = appendText(b, fieldModel, r.Model)
	b = appendText(b, fieldVersion, r.Version)
	b = appendText(b, fieldID, r.ID)
	for i := range r.Outputs {
		b = appendMessage(b, fieldOutputs, r.Outputs[i].append)
	}
	for i := range r.Outputs {
		b = protowire.AppendBytes(protowire.AppendTag(b, fieldRawOutputs, protowire.BytesType), r.Outputs[i].Data)
	}
	return b
}

// Unmarshal decodes a response in a client. Data refers to b where possible; memory of an earlier response in r is reused.
func (r *InferResponse) Unmarshal(b []byte) error {
	r.Outputs, r.raws = r.Outputs[:0], r.raws[:0]
	for {
		f, ok, err := next(&b)
		if err != nil {
			return err
		}
		if !ok {
			return distribute(r.Outputs, r.raws)
		}
		switch f.number {
		case fieldModel:
			r.Model = reuse(r.Model, f.data)
		case fieldVersion:
			r.Version = reuse(r.Version, f.data)
		case fieldID:
			r.ID = reuse(r.ID, f.data)
		case fieldOutputs:
			r.Outputs, err = appendTensor(r.Outputs, &f, 4, false)
		case fieldRawOutputs:
			r.raws, err = appendRaw(r.raws, &f)
		}
		if err != nil {
			return err
		}
	}
}

func appendRaw(raws [][]byte, f *field) ([][]byte, error) {
	if len(raws) == maxTensors {
		return raws, fmt.Errorf("%w: more than %d tensors", errMalformed, maxTensors)
	}
	return append(raws, f.data), f.expect(protowire.BytesType)
}

// distribute assigns raw data, in order, to the tensors that are not in shared memory.
func distribute(tensors []Tensor, raws [][]byte) error {
	if len(raws) == 0 {
		return nil
	}
	given := 0
	for i := range tensors {
		t := &tensors[i]
		switch {
		case t.Region.Name != "":
		case given == len(raws):
			return fmt.Errorf("%w: %d raw tensors are too few", errMalformed, given)
		default:
			t.Data = raws[given]
			given++
		}
	}
	// Servers send an empty raw entry for tensors in shared memory, or none.
	for _, raw := range raws[given:] {
		if len(raw) > 0 {
			return fmt.Errorf("%w: more raw tensors than tensors", errMalformed)
		}
	}
	return nil
}

// appendTensor decodes one tensor of a message; parameters is the number of its parameters field. A requested output has a name and
// parameters only.
func appendTensor(list []Tensor, f *field, parameters protowire.Number, wanted bool) ([]Tensor, error) {
	if err := f.expect(protowire.BytesType); err != nil {
		return list, err
	}
	if len(list) == maxTensors {
		return list, fmt.Errorf("%w: more than %d tensors", errMalformed, maxTensors)
	}
	list, t := extend(list)
	var name, datatype string
	var contents []byte
	for data := f.data; ; {
		f, ok, err := next(&data)
		if err != nil {
			return list, err
		}
		if !ok {
			break
		}
		switch {
		case f.number == 1:
			name = reuse(t.Name, f.data)
		case f.number == parameters:
			err = t.parameter(f.data)
		case wanted:
		case f.number == 2:
			datatype = reuse(t.Datatype, f.data)
		case f.number == 3:
			t.Shape, err = f.numbers(t.Shape, maxRank)
		case f.number == 5:
			contents = f.data
		}
		if err != nil {
			return list, err
		}
	}
	t.Name, t.Datatype = name, datatype
	if contents == nil {
		return list, nil
	}
	data, err := unpack(t.Datatype, contents)
	t.Data = data
	return list, err
}

// parameter decodes one parameter of a tensor; unknown ones are ignored.
func (t *Tensor) parameter(entry []byte) error {
	var key string
	var text string
	var number uint64
	err := each(entry, func(f *field) error {
		switch f.number {
		case 1:
			key = string(f.data)
		case 2:
			return each(f.data, func(f *field) error {
				if f.kind == protowire.BytesType {
					text = string(f.data)
				} else {
					number = f.value
				}
				return nil
			})
		}
		return nil
	})
	switch key {
	case regionName:
		t.Region.Name = text
	case regionSize:
		t.Region.Size = int64(number)
	case regionOffset:
		t.Region.Offset = int64(number)
	case classification:
		t.Classes = int64(number)
	}
	return err
}
