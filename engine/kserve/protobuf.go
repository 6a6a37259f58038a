package kserve

import (
	"encoding/binary"
	"errors"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// FrameHead is the length of the prefix of a gRPC message: a compression flag and the message's length.
const FrameHead = 5

// PutFrameHead writes the prefix of an uncompressed message with the given length.
func PutFrameHead(to []byte, length int) {
	to[0] = 0
	binary.BigEndian.PutUint32(to[1:FrameHead], uint32(length))
}

// FrameLength returns the length from the prefix of a message. Compressed messages are rejected, because compression gains nothing for
// tensors.
func FrameLength(head []byte) (int, error) {
	if head[0] != 0 {
		return 0, Statusf(Unimplemented, "compressed messages are not read")
	}
	return int(binary.BigEndian.Uint32(head[1:FrameHead])), nil
}

// Inference requests and responses are encoded and decoded by hand in this file and infer_protobuf.go, because every frame passes through
// them: tensors are sent from the caller's memory and received as views of the message, and the memory of an earlier response is reused.
// Generated code would copy each tensor. All other messages are in package kservepb.

var errMalformed = errors.New("no message of this protocol")

// field is one field of a message.
type field struct {
	number protowire.Number
	kind   protowire.Type
	value  uint64 // of a number
	data   []byte // of everything else, a view
}

// next decodes the first field of b and removes it from b; ok is false at the end.
func next(data *[]byte) (f field, ok bool, err error) {
	if len(*data) == 0 {
		return f, false, nil
	}
	b := *data
	number, kind, n := protowire.ConsumeTag(b)
	if n < 0 {
		return f, false, errMalformed
	}
	b = b[n:]
	f = field{number: number, kind: kind}
	switch kind {
	case protowire.VarintType:
		f.value, n = protowire.ConsumeVarint(b)
	case protowire.Fixed64Type:
		f.value, n = protowire.ConsumeFixed64(b)
	case protowire.Fixed32Type:
		var v uint32
		v, n = protowire.ConsumeFixed32(b)
		f.value = uint64(v)
	case protowire.BytesType:
		f.data, n = protowire.ConsumeBytes(b)
	default:
		return f, false, errMalformed
	}
	if n < 0 {
		return f, false, errMalformed
	}
	*data = b[n:]
	return f, true, nil
}

// each calls visit with every field of a message.
func each(data []byte, visit func(f *field) error) error {
	for {
		f, ok, err := next(&data)
		if !ok || err != nil {
			return err
		}
		if err := visit(&f); err != nil {
			return err
		}
	}
}

// expect returns an error if the field has another wire type.
func (f *field) expect(kind protowire.Type) error {
	if f.kind != kind {
		return fmt.Errorf("%w: field %d is of kind %d", errMalformed, f.number, f.kind)
	}
	return nil
}

// numbers appends the values of a repeated number field, packed or not.
func (f *field) numbers(list []int64, most int) ([]int64, error) {
	data := f.data
	for {
		v := f.value
		if f.kind == protowire.BytesType {
			if len(data) == 0 {
				return list, nil
			}
			var n int
			if v, n = protowire.ConsumeVarint(data); n < 0 {
				return list, errMalformed
			}
			data = data[n:]
		}
		if len(list) == most {
			return list, fmt.Errorf("%w: more than %d sizes", errMalformed, most)
		}
		list = append(list, int64(v))
		if f.kind != protowire.BytesType {
			return list, nil
		}
	}
}

// Encoding: fields with default values are omitted, as protocol buffers specify.

func appendText(b []byte, number protowire.Number, text string) []byte {
	if text == "" {
		return b
	}
	return protowire.AppendString(protowire.AppendTag(b, number, protowire.BytesType), text)
}

func appendNumber(b []byte, number protowire.Number, v uint64) []byte {
	if v == 0 {
		return b
	}
	return protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), v)
}

func appendNumbers(b []byte, number protowire.Number, list []int64) []byte {
	if len(list) == 0 {
		return b
	}
	size := 0
	for _, v := range list {
		size += protowire.SizeVarint(uint64(v))
	}
	b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.BytesType), uint64(size))
	for _, v := range list {
		b = protowire.AppendVarint(b, uint64(v))
	}
	return b
}

// appendMessage appends a nested message that write encodes.
func appendMessage(b []byte, number protowire.Number, write func([]byte) []byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(b, number, protowire.BytesType), write(nil))
}
