package engine

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
)

// niftiTypes are the numbers of NIfTI's element types and how one element becomes a number.
var niftiTypes = map[int16]struct {
	size int
	read func(o binary.ByteOrder, b []byte) float64
}{
	2:    {1, func(_ binary.ByteOrder, b []byte) float64 { return float64(b[0]) }},
	4:    {2, func(o binary.ByteOrder, b []byte) float64 { return float64(int16(o.Uint16(b))) }},
	8:    {4, func(o binary.ByteOrder, b []byte) float64 { return float64(int32(o.Uint32(b))) }},
	16:   {4, func(o binary.ByteOrder, b []byte) float64 { return float64(math.Float32frombits(o.Uint32(b))) }},
	64:   {8, func(o binary.ByteOrder, b []byte) float64 { return math.Float64frombits(o.Uint64(b)) }},
	256:  {1, func(_ binary.ByteOrder, b []byte) float64 { return float64(int8(b[0])) }},
	512:  {2, func(o binary.ByteOrder, b []byte) float64 { return float64(o.Uint16(b)) }},
	768:  {4, func(o binary.ByteOrder, b []byte) float64 { return float64(o.Uint32(b)) }},
	1024: {8, func(o binary.ByteOrder, b []byte) float64 { return float64(int64(o.Uint64(b))) }},
	1280: {8, func(o binary.ByteOrder, b []byte) float64 { return float64(o.Uint64(b)) }},
}

// niftiHeader is what counts of a header.
type niftiHeader struct {
	order        binary.ByteOrder
	kind         int16
	dims         [8]int64 // their number, then the sides
	begin        int64    // of the elements in the file
	slope, inter float64
}

// ReadNIfTI reads a volume as one file of NIfTI-1 or NIfTI-2 has it (.nii, .nii.gz), in either byte order. The tensor is float32 of shape
// [1, C, X, Y, Z], a batch of one as networks take it: X is what NIfTI calls i, as nibabel's arrays have it, and C its fourth side. Slope
// and intercept are applied; orientation and the sides of a voxel are not. What follows the elements is an error.
func ReadNIfTI(from io.Reader) (Tensor, error) {
	r := bufio.NewReader(from)
	if start, err := r.Peek(2); err == nil && start[0] == 0x1f && start[1] == 0x8b {
		unpacked, err := gzip.NewReader(r)
		if err != nil {
			return Tensor{}, err
		}
		r = bufio.NewReader(unpacked)
	}
	h, read, err := readNIfTIHeader(r)
	if err != nil {
		return Tensor{}, err
	}
	sides, channels, err := h.shape()
	if err != nil {
		return Tensor{}, err
	}
	kind, known := niftiTypes[h.kind]
	if !known {
		return Tensor{}, fmt.Errorf("element type %d of NIfTI is none of whole or real numbers", h.kind)
	}
	if h.begin < read {
		return Tensor{}, fmt.Errorf("header: the elements begin at %d, within it", h.begin)
	}
	if _, err := io.CopyN(io.Discard, r, h.begin-read); err != nil {
		return Tensor{}, errors.New("ends before its elements")
	}
	volume := Elements(sides)
	var data bytes.Buffer // grows with what arrives, whatever the header claims
	element, value := make([]byte, kind.size), make([]byte, 4)
	for n := range volume * channels {
		if _, err := io.ReadFull(r, element); errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
			return Tensor{}, fmt.Errorf("ends after %d of its %d elements", n, volume*channels)
		} else if err != nil {
			return Tensor{}, err
		}
		binary.LittleEndian.PutUint32(value, math.Float32bits(float32(kind.read(h.order, element)*h.slope+h.inter)))
		data.Write(value)
	}
	if _, err := r.ReadByte(); !errors.Is(err, io.EOF) {
		return Tensor{}, errors.Join(errors.New("has more than its elements"), err)
	}
	t := Tensor{Type: Float32, Shape: append([]int64{1, channels}, sides...), Data: make([]byte, 0, data.Len())}
	for c := range channels {
		t.Data = append(t.Data, rowMajor(data.Bytes()[4*volume*c:4*volume*(c+1)], 4, sides)...)
	}
	return t, nil
}

// readNIfTIHeader also says how many bytes it read.
func readNIfTIHeader(r io.Reader) (h niftiHeader, read int64, err error) {
	b := make([]byte, 540)
	if _, err := io.ReadFull(r, b[:348]); err != nil {
		return h, 0, errors.New("not a NIfTI file: shorter than its header")
	}
	for _, order := range []binary.ByteOrder{binary.LittleEndian, binary.BigEndian} {
		h.order = order
		switch size := order.Uint32(b); {
		case size == 348 && string(b[344:347]) == "ni1":
			return h, 0, errors.New("the elements are in an .img file of their own: make one .nii of both")
		case size == 348 && string(b[344:347]) == "n+1":
			for i := range h.dims {
				h.dims[i] = int64(int16(order.Uint16(b[40+2*i:])))
			}
			begin := float64(math.Float32frombits(order.Uint32(b[108:])))
			if !(begin >= 0 && begin < 1<<31) {
				return h, 0, fmt.Errorf("header: the elements begin at %v", begin)
			}
			h.kind, h.begin = int16(order.Uint16(b[70:])), int64(begin)
			h.scale(float64(math.Float32frombits(order.Uint32(b[112:]))), float64(math.Float32frombits(order.Uint32(b[116:]))))
			return h, 348, nil
		case size == 540 && string(b[4:7]) == "n+2":
			if _, err := io.ReadFull(r, b[348:]); err != nil {
				return h, 0, errors.New("ends in its header")
			}
			for i := range h.dims {
				h.dims[i] = int64(order.Uint64(b[16+8*i:]))
			}
			h.kind, h.begin = int16(order.Uint16(b[12:])), int64(order.Uint64(b[168:]))
			h.scale(math.Float64frombits(order.Uint64(b[176:])), math.Float64frombits(order.Uint64(b[184:])))
			return h, 540, nil
		}
	}
	return h, 0, errors.New("not a NIfTI file (.nii or .nii.gz)")
}

// scale takes slope and intercept; a slope of 0, or one that is no number, stands for none.
func (h *niftiHeader) scale(slope, inter float64) {
	h.slope, h.inter = slope, inter
	if slope == 0 || math.IsNaN(slope+inter) || math.IsInf(slope+inter, 0) {
		h.slope, h.inter = 1, 0
	}
}

// shape is up to three sides and the number of volumes.
func (h *niftiHeader) shape() (sides []int64, channels int64, err error) {
	rank := h.dims[0]
	if rank < 1 || rank > 7 {
		return nil, 0, fmt.Errorf("header: %d dimensions", rank)
	}
	channels, all := 1, int64(1)
	for d, n := range h.dims[1 : rank+1] {
		if n < 1 || n > math.MaxInt32 || all > math.MaxInt64/16/n {
			return nil, 0, fmt.Errorf("header: sides %v", h.dims[1:rank+1])
		}
		all *= n
		switch {
		case d < 3:
			sides = append(sides, n)
		case d == 3:
			channels = n
		case n > 1:
			return nil, 0, fmt.Errorf("sides %v: what has more than four dimensions is no volume of channels", h.dims[1:rank+1])
		}
	}
	return sides, channels, nil
}
