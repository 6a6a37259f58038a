package kserve

import (
	"encoding/binary"
	"fmt"

	"google.golang.org/protobuf/encoding/protowire"
)

// unpack converts InferTensorContents, which has one list per kind of number, to the memory of a tensor. Fixed-width lists have that layout
// already. The protocol has no list for FP16.
func unpack(datatype string, contents []byte) ([]byte, error) {
	t, ok := ElementType(datatype)
	if !ok {
		return nil, fmt.Errorf("tensors of %.16q are not read", datatype)
	}
	size := t.Size()
	var data []byte
	err := each(contents, func(f *field) error {
		switch {
		case f.kind == protowire.BytesType && f.number == 6 && data == nil:
			data = f.data
		case f.kind == protowire.BytesType && f.number == 6:
			data = append(data[:len(data):len(data)], f.data...)
		case f.kind == protowire.BytesType && f.number <= 5:
			for packed := f.data; len(packed) > 0; {
				v, n := protowire.ConsumeVarint(packed)
				if n < 0 {
					return errMalformed
				}
				packed, data = packed[n:], appendLittle(data, v, size)
			}
		case f.kind != protowire.BytesType && f.number <= 6:
			data = appendLittle(data, f.value, size)
		default:
			return fmt.Errorf("%s tensors are not read from list %d of the contents", datatype, f.number)
		}
		return nil
	})
	return data, err
}

// appendLittle appends the lowest bytes of a number.
func appendLittle(b []byte, v uint64, size int) []byte {
	switch size {
	case 1:
		return append(b, byte(v))
	case 2:
		return binary.LittleEndian.AppendUint16(b, uint16(v))
	case 4:
		return binary.LittleEndian.AppendUint32(b, uint32(v))
	}
	return binary.LittleEndian.AppendUint64(b, v)
}
