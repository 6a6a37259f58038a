package engine

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
)

// The format is that of numpy.lib.format: magic, version, header length, header as a Python dictionary, elements.
const (
	npyMagic     = "\x93NUMPY"
	npyAlignment = 64      // of the elements in the file
	npyMaxHeader = 1 << 16 // a header of eight dimensions has some 120 bytes
	maxRank      = 8
)

// npyTypes maps NumPy's type codes, without the byte order, to element types.
var npyTypes = map[string]DataType{
	"f4": Float32, "f2": Float16, "i1": Int8, "u1": Uint8, "i4": Int32, "i8": Int64, "b1": Bool,
}

// ReadNPY reads one array as written by numpy.save, in either byte order and memory order. The tensor has no name. Trailing bytes and
// unsupported element types are errors.
func ReadNPY(from io.Reader) (Tensor, error) {
	r := bufio.NewReader(from)
	header, err := readNPYHeader(r)
	if err != nil {
		return Tensor{}, err
	}
	t := Tensor{Type: header.kind, Shape: header.shape}
	size := header.elements * int64(t.Type.Size())
	var data bytes.Buffer // grows with what arrives, whatever the header claims
	if n, err := io.CopyN(&data, r, size); errors.Is(err, io.EOF) {
		return Tensor{}, fmt.Errorf("ends after %d of the %d bytes of %v %v", n, size, t.Type, t.Shape)
	} else if err != nil {
		return Tensor{}, err
	}
	if _, err := r.ReadByte(); err == nil {
		return Tensor{}, fmt.Errorf("has more than the %d bytes of %v %v", size, t.Type, t.Shape)
	}
	t.Data = data.Bytes()
	if header.bigEndian {
		for element := range slices.Chunk(t.Data, t.Type.Size()) {
			slices.Reverse(element)
		}
	}
	if header.fortran {
		t.Data = rowMajor(t.Data, t.Type.Size(), t.Shape)
	}
	return t, nil
}

// npyHeader is the parsed header.
type npyHeader struct {
	kind               DataType
	bigEndian, fortran bool
	shape              []int64
	elements           int64
}

func readNPYHeader(r io.Reader) (npyHeader, error) {
	var h npyHeader
	var start [len(npyMagic) + 2]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || !bytes.HasPrefix(start[:], []byte(npyMagic)) {
		return h, errors.New("not a .npy file, as numpy.save writes it")
	}
	major, width := start[len(npyMagic)], 4
	switch major {
	case 1:
		width = 2
	case 2, 3:
	default:
		return h, fmt.Errorf("version %d of the .npy format, 1 to 3 are read", major)
	}
	var length [4]byte
	if _, err := io.ReadFull(r, length[:width]); err != nil {
		return h, errors.New("ends in its header")
	}
	n := binary.LittleEndian.Uint32(length[:])
	if n > npyMaxHeader {
		return h, fmt.Errorf("header of %d bytes, at most %d are read", n, npyMaxHeader)
	}
	text := make([]byte, n)
	if _, err := io.ReadFull(r, text); err != nil {
		return h, errors.New("ends in its header")
	}
	value, err := parseLiteral(string(text))
	if err != nil {
		return h, fmt.Errorf("header: %w", err)
	}
	return h, h.fill(value)
}

// fill sets the fields from the header's dictionary.
func (h *npyHeader) fill(value any) error {
	entries, _ := value.([]pair)
	fields := map[any]any{}
	for _, entry := range entries {
		fields[entry.key] = entry.value
	}
	descr, isText := fields["descr"].(string)
	fortran, isTruth := fields["fortran_order"].(bool)
	shape, isList := fields["shape"].([]any)
	if !isText || !isTruth || !isList {
		return errors.New("header: no descr, fortran_order and shape of a plain array")
	}
	kind, known := npyTypes[strings.TrimLeft(descr, "<>=|")]
	if !known {
		return fmt.Errorf(`element type %.20q is not float32, float16, int8, uint8, int32, int64 or bool: convert it with .astype("float32")`,
			descr)
	}
	if len(shape) > maxRank {
		return fmt.Errorf("%d dimensions, at most %d are read", len(shape), maxRank)
	}
	h.kind = kind
	h.bigEndian = strings.HasPrefix(descr, ">")
	h.fortran = fortran
	h.elements = 1
	h.shape = make([]int64, len(shape))
	for d, side := range shape {
		n, isNumber := side.(float64)
		if !isNumber || n < 0 || n != math.Trunc(n) || n > math.MaxInt32 {
			return fmt.Errorf("header: dimension %d is %.40v", d, side)
		}
		h.shape[d] = int64(n)
		if n > 0 && h.elements > math.MaxInt64/16/int64(n) {
			return fmt.Errorf("header: shape %v is too large", shape)
		}
		h.elements *= int64(n)
	}
	return nil
}

// rowMajor converts elements from column-major to row-major order.
func rowMajor(data []byte, size int, shape []int64) []byte {
	out := make([]byte, len(data))
	at, from := make([]int64, len(shape)), int64(0)
	strides := make([]int64, len(shape))
	stride := int64(size)
	for d, n := range shape {
		strides[d] = stride
		stride *= n
	}
	for to := 0; to < len(out); to += size {
		copy(out[to:to+size], data[from:])
		for d := len(shape) - 1; d >= 0; d-- {
			at[d]++
			from += strides[d]
			if at[d] < shape[d] {
				break
			}
			from -= at[d] * strides[d]
			at[d] = 0
		}
	}
	return out
}

// WriteNPY writes a tensor in the format of numpy.save.
func WriteNPY(to io.Writer, t *Tensor) error {
	descr := ""
	for name, kind := range npyTypes {
		if kind == t.Type {
			descr = name
		}
	}
	order := "<"
	if t.Type.Size() == 1 {
		order = "|"
	}
	sides := make([]string, len(t.Shape))
	for d, n := range t.Shape {
		sides[d] = strconv.FormatInt(n, 10)
	}
	shape := strings.Join(sides, ", ")
	if len(sides) == 1 {
		shape += ","
	}
	header := fmt.Sprintf("{'descr': '%s%s', 'fortran_order': False, 'shape': (%s), }", order, descr, shape)
	begin := len(npyMagic) + 4
	blanks := (npyAlignment - (begin+len(header)+1)%npyAlignment) % npyAlignment
	header += strings.Repeat(" ", blanks) + "\n"
	file := binary.LittleEndian.AppendUint16([]byte(npyMagic+"\x01\x00"), uint16(len(header)))
	if _, err := to.Write(append(file, header...)); err != nil {
		return err
	}
	_, err := to.Write(t.Data)
	return err
}
