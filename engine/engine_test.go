package engine

import (
	"errors"
	"io"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestError(t *testing.T) {
	for _, test := range []struct {
		err  Error
		want string
	}{
		{Error{Op: "open", Backend: "tensorrt", Message: "no library", Hint: "install it"}, "tensorrt open: no library (install it)"},
		{Error{Op: "open", Message: "read", Err: io.ErrUnexpectedEOF}, "open: read: unexpected EOF"},
		{Error{Backend: "onnxruntime", Err: io.EOF}, "onnxruntime: EOF"},
	} {
		assert.EqualError(t, &test.err, test.want)
	}
	err := error(&Error{Kind: ErrShape, Err: io.EOF})
	assert.ErrorIs(t, err, ErrShape)
	assert.ErrorIs(t, err, io.EOF)
	assert.NotErrorIs(t, err, ErrClosed)
	assert.NotErrorIs(t, &Error{}, nil)
}

func TestImageCheck(t *testing.T) {
	good := Image{Data: make([]byte, 3*4*2), Width: 4, Height: 2, Stride: 12, Format: BGR}
	require.NoError(t, good.Check())
	for _, test := range []struct {
		change func(*Image)
		want   string
	}{
		{func(im *Image) { im.Format = 9 }, "submit: unknown pixel format 9"},
		{func(im *Image) { im.Width = 0 }, "submit: image of 0x2, sides must be 1 to 32768"},
		{func(im *Image) { im.Height = MaxSide + 1 }, "submit: image of 4x32769, sides must be 1 to 32768"},
		{func(im *Image) { im.Stride = 11 }, "submit: row stride of 11 bytes, BGR at width 4 needs 12"},
		{func(im *Image) { im.Stride = -12 }, "submit: row stride of -12 bytes, BGR at width 4 needs 12"},
		{func(im *Image) { im.Data = im.Data[:23] }, "submit: 23 bytes for a BGR image of 4x2 with stride 12"},
		{func(im *Image) { im.Format, im.Height = NV12, 1 }, "submit: NV12 image of 4x1 needs even sides"},
		{func(im *Image) { im.Format, im.Width = YUYV, 3 }, "submit: YUYV image of 3x2 needs even sides"},
		{func(im *Image) { im.Stride = 1 << 62 }, "submit: row stride of 4611686018427387904 bytes, at most 1073741824 are read"},
	} {
		bad := good
		test.change(&bad)
		err := bad.Check()
		require.EqualError(t, err, test.want)
		require.ErrorIs(t, err, ErrShape)
	}
	for _, format := range []PixelFormat{BGR, BGRx, NV12, YUYV, GRAY8} {
		im := Image{Width: 6, Height: 4, Stride: format.RowBytes(6) + 1, Format: format}
		im.Data = make([]byte, im.Stride*(format.Rows(4)-1)+format.RowBytes(6))
		require.NoError(t, im.Check(), "the last row may end without padding")
		im.Data = im.Data[1:]
		require.Error(t, im.Check(), format)
	}
}

func TestNames(t *testing.T) {
	for format, name := range map[PixelFormat]string{
		BGR: "BGR", BGRx: "BGRx", NV12: "NV12", YUYV: "YUYV", GRAY8: "GRAY8",
		7: "PixelFormat(7)",
	} {
		assert.Equal(t, name, format.String())
	}
	for kind, name := range map[DataType]string{Float32: "float32", Float16: "float16", Bool: "bool", Int64: "int64", 9: "DataType(9)"} {
		assert.Equal(t, name, kind.String())
	}
}

func TestMemory(t *testing.T) {
	var m Memory
	first, err := m.Alloc(10)
	require.NoError(t, err)
	second, err := m.Alloc(5000)
	require.NoError(t, err)
	require.Len(t, second.Data, 5000)
	require.Zero(t, uintptr(unsafe.Pointer(&second.Data[0]))%4096)
	first.Free()
	first.Free()
	m.Close()
	m.Close()
	second.Free()
	_, err = m.Alloc(1)
	require.ErrorIs(t, err, ErrClosed)
	_, err = new(Memory).Alloc(0)
	require.EqualError(t, err, "alloc: 0 bytes asked for")
	_, err = new(Memory).Alloc(1 << 62)
	require.ErrorContains(t, err, "alloc: 4611686018427387904 bytes: ")
	(*Buffer)(nil).Free()
	NewBuffer([]byte{1}, nil).Free()
}

func TestFloat32s(t *testing.T) {
	numbers := []float32{1, 2}
	data := unsafe.Slice((*byte)(unsafe.Pointer(&numbers[0])), 8)
	assert.Equal(t, numbers, (&Tensor{Type: Float32, Data: data}).Float32s())
	assert.Nil(t, (&Tensor{Type: Float16, Data: data}).Float32s())
	assert.Nil(t, (&Tensor{Type: Float32, Data: data[1:]}).Float32s(), "not aligned")
	assert.Nil(t, (&Tensor{Type: Float32}).Float32s())
	assert.EqualValues(t, 24, Elements([]int64{2, 3, 4}))
}

func TestCheckTensors(t *testing.T) {
	inputs := []TensorInfo{{Name: "a", Type: Float32, Shape: []int64{-1, 2}}, {Name: "b", Type: Uint8, Shape: []int64{3}}}
	a, b := Tensor{Name: "a", Shape: []int64{2, 2}, Data: make([]byte, 16)}, Tensor{
		Name: "b", Type: Uint8, Shape: []int64{3},
		Data: make([]byte, 3),
	}
	require.NoError(t, CheckTensors(inputs, []Tensor{b, a}))
	for want, tensors := range map[string][]Tensor{
		`submit: input "b" is missing`:                                      {a},
		`submit: input "a" is given twice`:                                  {a, b, a},
		`submit: the model has no input "c"`:                                {a, b, {Name: "c"}},
		`submit: input "b" is float32, the model takes uint8`:               {a, {Name: "b", Shape: []int64{3}}},
		`submit: input "a" has shape [4], the model takes [-1 2]`:           {b, {Name: "a", Shape: []int64{4}}},
		`submit: input "a" has shape [2 3], the model takes [-1 2]`:         {b, {Name: "a", Shape: []int64{2, 3}}},
		`submit: input "a" has shape [0 2], the model takes [-1 2]`:         {b, {Name: "a", Shape: []int64{0, 2}}},
		`submit: input "a" has 15 bytes, too few for float32 of [2 2]`:      {b, {Name: "a", Shape: []int64{2, 2}, Data: make([]byte, 15)}},
		`submit: input "a" has 17 bytes instead of 16 for float32 of [2 2]`: {b, {Name: "a", Shape: []int64{2, 2}, Data: make([]byte, 17)}},
	} {
		err := CheckTensors(inputs, tensors)
		require.EqualError(t, err, want)
		require.True(t, errors.Is(err, ErrShape))
	}
}
