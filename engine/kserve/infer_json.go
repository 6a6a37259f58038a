package kserve

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strconv"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// HeaderLength is the HTTP header with the length of the JSON part of a body in bytes; binary tensors follow it.
const HeaderLength = "Inference-Header-Content-Length"

// ContentType is the content type of a body with binary tensors after its JSON.
const ContentType = "application/octet-stream"

// parameters are the supported parameters of a tensor or a request.
type parameters struct {
	BinarySize   *int64 `json:"binary_data_size,omitempty"`
	Binary       *bool  `json:"binary_data,omitempty"`        // of a wanted output
	BinaryOutput *bool  `json:"binary_data_output,omitempty"` // of a request: of all outputs
	Classes      int64  `json:"classification,omitempty"`     // of a wanted output
	Region       string `json:"shared_memory_region,omitempty"`
	RegionSize   int64  `json:"shared_memory_byte_size,omitempty"`
	RegionOffset int64  `json:"shared_memory_offset,omitempty"`
}

type jsonTensor struct {
	Name       string          `json:"name"`
	Shape      jsonShape       `json:"shape,omitempty"`
	Datatype   string          `json:"datatype,omitempty"`
	Parameters *parameters     `json:"parameters,omitempty"`
	Data       json.RawMessage `json:"data,omitempty"`
}

type jsonRequest struct {
	ID         string      `json:"id,omitempty"`
	Parameters *parameters `json:"parameters,omitempty"`
	Inputs     jsonTensors `json:"inputs"`
	Outputs    jsonTensors `json:"outputs,omitempty"`
}

type jsonResponse struct {
	Model   string      `json:"model_name"`
	Version string      `json:"model_version"`
	ID      string      `json:"id,omitempty"`
	Outputs jsonTensors `json:"outputs"`
}

// jsonTensors and jsonShape are lists that are decoded element by element, so that a long list of tiny elements fails before it takes many
// times its size in memory.
type (
	jsonTensors []jsonTensor
	jsonShape   []int64
)

// UnmarshalJSON implements json.Unmarshaler.
func (l *jsonTensors) UnmarshalJSON(b []byte) (err error) {
	*l, err = decodeList[jsonTensor](b, maxTensors, "tensors")
	return err
}

// UnmarshalJSON implements json.Unmarshaler.
func (l *jsonShape) UnmarshalJSON(b []byte) (err error) {
	*l, err = decodeList[int64](b, maxRank, "dimensions")
	return err
}

// decodeList decodes a JSON list of at most limit elements; null is empty.
func decodeList[T any](b []byte, limit int, what string) (all []T, err error) {
	if string(b) == "null" {
		return nil, nil
	}
	decoder := json.NewDecoder(bytes.NewReader(b))
	if open, err := decoder.Token(); err != nil || open != json.Delim('[') {
		return nil, fmt.Errorf("%w: a list of %s must be in brackets", errMalformed, what)
	}
	for decoder.More() {
		if len(all) == limit {
			return nil, fmt.Errorf("%w: more than %d %s", errMalformed, limit, what)
		}
		var next T
		if err := decoder.Decode(&next); err != nil {
			return nil, err
		}
		all = append(all, next)
	}
	return all, nil
}

// placed returns the parameters of a tensor in a region, nil for other tensors.
func (r *Region) placed() *parameters {
	if r.Name == "" {
		return nil
	}
	return &parameters{Region: r.Name, RegionSize: r.Size, RegionOffset: r.Offset}
}

func (p *parameters) region() Region {
	if p == nil {
		return Region{}
	}
	return Region{p.Region, p.RegionOffset, p.RegionSize}
}

// MarshalHead encodes a request as JSON. Inputs that are in no Region follow it in binary, in order; sizes are their lengths in bytes.
func (r *InferRequest) MarshalHead(sizes []int64) ([]byte, error) {
	body := jsonRequest{ID: r.ID, Parameters: &parameters{BinaryOutput: &r.BinaryOutput}}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		p := t.Region.placed()
		if p == nil {
			p = &parameters{BinarySize: &sizes[i]}
		}
		body.Inputs = append(body.Inputs, jsonTensor{Name: t.Name, Shape: t.Shape, Datatype: t.Datatype, Parameters: p})
	}
	for i := range r.Outputs {
		p := r.Outputs[i].Region.placed()
		if p == nil {
			p = &parameters{Binary: &r.BinaryOutput}
		}
		body.Outputs = append(body.Outputs, jsonTensor{Name: r.Outputs[i].Name, Parameters: p})
	}
	return json.Marshal(&body)
}

// MarshalJSONOnly encodes a request with its tensors as JSON, for servers without the binary extension.
func (r *InferRequest) MarshalJSONOnly() ([]byte, error) {
	body := jsonRequest{ID: r.ID}
	for i := range r.Inputs {
		t := &r.Inputs[i]
		data, err := appendJSON(nil, t)
		if err != nil {
			return nil, err
		}
		body.Inputs = append(body.Inputs, jsonTensor{Name: t.Name, Shape: t.Shape, Datatype: t.Datatype, Data: data})
	}
	return json.Marshal(&body)
}

// UnmarshalHTTP decodes a request in a server: head bytes of JSON, or all of b if head is negative, and the tensors after it.
func (r *InferRequest) UnmarshalHTTP(b []byte, head int) error {
	text, binary, err := cut(b, head)
	if err != nil {
		return err
	}
	var body jsonRequest
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("request: %w", plain(err))
	}
	*r = InferRequest{ID: body.ID}
	if p := body.Parameters; p != nil && p.BinaryOutput != nil {
		r.BinaryOutput = *p.BinaryOutput
	}
	for i := range body.Inputs {
		var t Tensor
		if binary, err = body.Inputs[i].take(&t, binary); err != nil {
			return err
		}
		r.Inputs = append(r.Inputs, t)
	}
	for i := range body.Outputs {
		out := &body.Outputs[i]
		r.Outputs = append(r.Outputs, Tensor{Name: out.Name, Region: out.Parameters.region()})
		if out.Parameters == nil {
			continue
		}
		r.Outputs[i].Classes = out.Parameters.Classes
		if out.Parameters.Binary != nil {
			r.BinaryOutput = *out.Parameters.Binary
		}
	}
	if len(binary) > 0 {
		return fmt.Errorf("%w: %d bytes behind the last tensor", errMalformed, len(binary))
	}
	return nil
}

// MarshalHTTP encodes a response. head is the length of the JSON part, negative if all of the body is JSON.
func (r *InferResponse) MarshalHTTP(binary bool) (body []byte, head int, err error) {
	answer := jsonResponse{Model: r.Model, Version: r.Version, ID: r.ID, Outputs: []jsonTensor{}}
	size := 0
	for i := range r.Outputs {
		t := &r.Outputs[i]
		out := jsonTensor{Name: t.Name, Shape: t.Shape, Datatype: t.Datatype}
		if binary {
			n := int64(len(t.Data))
			out.Parameters = &parameters{BinarySize: &n}
			size += len(t.Data)
		} else if out.Data, err = appendJSON(nil, t); err != nil {
			return nil, 0, err
		}
		answer.Outputs = append(answer.Outputs, out)
	}
	text, err := json.Marshal(&answer)
	if err != nil || !binary {
		return text, -1, err
	}
	body = append(make([]byte, 0, len(text)+size), text...)
	for i := range r.Outputs {
		body = append(body, r.Outputs[i].Data...)
	}
	return body, len(text), nil
}

// UnmarshalHTTP decodes a response: head bytes of JSON, all of b if head is negative, and the tensors behind it; their Data are slices of
// b. A server may answer with numbers in JSON to a request for binary outputs.
func (r *InferResponse) UnmarshalHTTP(b []byte, head int) error {
	text, binary, err := cut(b, head)
	if err != nil {
		return err
	}
	var body jsonResponse
	if err := json.Unmarshal(text, &body); err != nil {
		return fmt.Errorf("answer: %w", plain(err))
	}
	r.Model = body.Model
	r.Version = body.Version
	r.ID = body.ID
	r.Outputs = r.Outputs[:0]
	for i := range body.Outputs {
		var t *Tensor
		r.Outputs, t = extend(r.Outputs)
		if binary, err = body.Outputs[i].take(t, binary); err != nil {
			return err
		}
	}
	return nil
}

// plain returns a JSON decoder's error without the text that it decoded.
func plain(err error) error {
	if errors.Is(err, errMalformed) {
		return err
	}
	var syntax *json.SyntaxError
	if errors.As(err, &syntax) {
		return fmt.Errorf("no JSON at byte %d", syntax.Offset)
	}
	var kind *json.UnmarshalTypeError
	if errors.As(err, &kind) {
		return fmt.Errorf("field %.64q does not hold %.16s", kind.Field, kind.Value)
	}
	return errors.New("no JSON")
}

func cut(b []byte, head int) (text, binary []byte, err error) {
	if head < 0 {
		return b, nil, nil
	}
	if head > len(b) {
		return nil, nil, fmt.Errorf("%w: %d bytes of JSON announced, %d are there", errMalformed, head, len(b))
	}
	return b[:head], b[head:], nil
}

// take fills a tensor from its JSON and removes its data from the binary part.
func (j *jsonTensor) take(t *Tensor, binary []byte) (rest []byte, err error) {
	t.Name, t.Datatype = j.Name, j.Datatype
	t.Shape = append(t.Shape[:0], j.Shape...)
	switch p := j.Parameters; {
	case p != nil && p.Region != "":
		t.Region = p.region()
	case p != nil && p.BinarySize != nil:
		n := *p.BinarySize
		if n < 0 || n > int64(len(binary)) {
			return nil, fmt.Errorf("tensor %.64q: %d bytes announced, %d are there", j.Name, n, len(binary))
		}
		t.Data, binary = binary[:n:n], binary[n:]
	default:
		if t.Data, err = parseNumbers(t.Datatype, j.Data); err != nil {
			return nil, fmt.Errorf("tensor %.64q: %w", j.Name, err)
		}
	}
	return binary, nil
}

// parseNumbers decodes the numbers and booleans of a list, nested or not, into the memory of a tensor. The text is valid JSON.
func parseNumbers(datatype string, text []byte) ([]byte, error) {
	t, ok := ElementType(datatype)
	if !ok {
		return nil, fmt.Errorf("type %.16q is not read", datatype)
	}
	var data []byte
	for at := 0; at < len(text); {
		switch text[at] {
		case '[', ']', ',', ' ', '\n', '\r', '\t':
			at++
			continue
		}
		end := at
		for end < len(text) && text[end] != ',' && text[end] != ']' && text[end] != ' ' && text[end] != '\n' {
			end++
		}
		word := string(text[at:end])
		at = end
		bits, err := parseNumber(datatype, word)
		if err != nil {
			return nil, fmt.Errorf("%.32q is no %s", word, datatype)
		}
		data = appendLittle(data, bits, t.Size())
	}
	return data, nil
}

// parseNumber returns the bits of a number in the given element type.
func parseNumber(datatype, word string) (uint64, error) {
	switch datatype {
	case "FP32":
		v, err := strconv.ParseFloat(word, 32)
		return uint64(math.Float32bits(float32(v))), err
	case "FP16":
		v, err := strconv.ParseFloat(word, 32)
		return uint64(onnx.ToHalf(float32(v))), err
	case "BOOL":
		v, err := strconv.ParseBool(word)
		if v {
			return 1, err
		}
		return 0, err
	case "UINT8":
		return strconv.ParseUint(word, 10, 8)
	}
	width := map[string]int{"INT8": 8, "INT32": 32, "INT64": 64}[datatype]
	v, err := strconv.ParseInt(word, 10, width)
	return uint64(v), err
}

// appendJSON encodes a tensor's numbers as one flat list. It fails for infinities and NaN, which JSON does not have.
func appendJSON(b []byte, t *Tensor) ([]byte, error) {
	if err := t.Check(); err != nil {
		return nil, err
	}
	kind, _ := ElementType(t.Datatype)
	size := kind.Size()
	b = append(b, '[')
	for at := 0; at < len(t.Data); at += size {
		if at > 0 {
			b = append(b, ',')
		}
		element := t.Data[at : at+size]
		switch t.Datatype {
		case "FP32", "FP16":
			v := float32(0)
			if size == 2 {
				v = onnx.FromHalf(binary.LittleEndian.Uint16(element))
			} else {
				v = math.Float32frombits(binary.LittleEndian.Uint32(element))
			}
			if math.IsInf(float64(v), 0) || math.IsNaN(float64(v)) {
				return nil, fmt.Errorf("tensor %.64q holds %v, which JSON cannot: ask for binary", t.Name, v)
			}
			b = strconv.AppendFloat(b, float64(v), 'g', -1, 32)
		case "BOOL":
			b = strconv.AppendBool(b, element[0] != 0)
		case "UINT8":
			b = strconv.AppendUint(b, uint64(element[0]), 10)
		case "INT8":
			b = strconv.AppendInt(b, int64(int8(element[0])), 10)
		case "INT32":
			b = strconv.AppendInt(b, int64(int32(binary.LittleEndian.Uint32(element))), 10)
		case "INT64":
			b = strconv.AppendInt(b, int64(binary.LittleEndian.Uint64(element)), 10)
		}
	}
	return append(b, ']'), nil
}
