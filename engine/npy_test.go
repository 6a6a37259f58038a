package engine_test

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
)

//go:generate python3 testdata/generate.py

func readNPY(t *testing.T, name string) (engine.Tensor, error) {
	file, err := os.Open(filepath.Join("testdata", name+".npy"))
	require.NoError(t, err)
	defer file.Close()
	return engine.ReadNPY(file)
}

// All files hold the numbers from 0 to 23 as 2x3x4.
func TestReadNPY(t *testing.T) {
	for name, want := range map[string]struct {
		kind    engine.DataType
		element func(i int) []byte
	}{
		"float32": {engine.Float32, nil},
		"float16_fortran": {engine.Float16, func(i int) []byte {
			return binary.LittleEndian.AppendUint16(nil, []uint16{
				0, 0x3c00, 0x4000, 0x4200, 0x4400, 0x4500, 0x4600, 0x4700, 0x4800, 0x4880, 0x4900, 0x4980, 0x4a00, 0x4a80, 0x4b00, 0x4b80, 0x4c00,
				0x4c40, 0x4c80, 0x4cc0, 0x4d00, 0x4d40, 0x4d80, 0x4dc0,
			}[i])
		}},
		"int64_big":         {engine.Int64, func(i int) []byte { return binary.LittleEndian.AppendUint64(nil, uint64(i)) }},
		"int32_big_fortran": {engine.Int32, func(i int) []byte { return binary.LittleEndian.AppendUint32(nil, uint32(i)) }},
		"bool":              {engine.Bool, func(i int) []byte { return []byte{byte(i % 2)} }},
	} {
		tensor, err := readNPY(t, name)
		require.NoError(t, err, name)
		require.Equal(t, want.kind, tensor.Type, name)
		require.Equal(t, []int64{2, 3, 4}, tensor.Shape, name)
		if want.element == nil {
			for i, value := range tensor.Float32s() {
				require.EqualValues(t, i, value)
			}
			continue
		}
		var data []byte
		for i := range 24 {
			data = append(data, want.element(i)...)
		}
		require.Equal(t, data, tensor.Data, name)
	}
	tensor, err := readNPY(t, "scalar")
	require.NoError(t, err)
	require.Equal(t, engine.Tensor{Type: engine.Int8, Shape: []int64{}, Data: []byte{0xfb}}, tensor)
}

func TestReadNPYRefuses(t *testing.T) {
	_, err := readNPY(t, "float64")
	require.EqualError(t, err,
		`element type "<f8" is not float32, float16, int8, uint8, int32, int64 or bool: convert it with .astype("float32")`)
	_, err = readNPY(t, "record")
	require.EqualError(t, err, "header: no descr, fortran_order and shape of a plain array")

	header := func(text string) string {
		return "\x93NUMPY\x01\x00" + string(binary.LittleEndian.AppendUint16(nil, uint16(len(text)))) + text
	}
	for file, want := range map[string]string{
		"":                                   "not a .npy file, as numpy.save writes it",
		"PK\x03\x04archive":                  "not a .npy file, as numpy.save writes it",
		"\x93NUMPY\x09\x00\x00\x00":          "version 9 of the .npy format, 1 to 3 are read",
		"\x93NUMPY\x01\x00\x80":              "ends in its header",
		"\x93NUMPY\x01\x00\x80\x00{":         "ends in its header",
		"\x93NUMPY\x02\x00\xff\xff\xff\xff{": "header of 4294967295 bytes, at most 65536 are read",
		header("{"):                          "header: ends too early",
		header("3"):                          "header: no descr, fortran_order and shape of a plain array",
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + "1234567":   "ends after 7 of the 8 bytes of float32 [2]",
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }") + "123456789": "has more than the 8 bytes of float32 [2]",
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (-2,), }"):              "header: dimension 0 is -2",
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (1e9, 2e9, 2e9), }"):    "header: shape [1e+09 2e+09 2e+09] is too large",
		header("{'descr': '<f4', 'fortran_order': False, 'shape': (1,1,1,1,1,1,1,1,1)}"):  "9 dimensions, at most 8 are read",
	} {
		_, err := engine.ReadNPY(strings.NewReader(file))
		assert.EqualError(t, err, want, "%q", file)
	}
}

func TestNPYRoundTrip(t *testing.T) {
	for _, tensor := range []engine.Tensor{
		{Type: engine.Float32, Shape: []int64{1, 2}, Data: []byte("12345678")},
		{Type: engine.Float16, Shape: []int64{3}, Data: []byte("123456")},
		{Type: engine.Int8, Shape: []int64{}, Data: []byte("1")},
		{Type: engine.Uint8, Shape: []int64{0, 7}, Data: []byte{}},
		{Type: engine.Int32, Shape: []int64{1, 1, 1, 1, 1, 1, 1, 1}, Data: []byte("1234")},
		{Type: engine.Int64, Shape: []int64{1}, Data: []byte("12345678")},
		{Type: engine.Bool, Shape: []int64{2}, Data: []byte{0, 1}},
	} {
		var file bytes.Buffer
		require.NoError(t, engine.WriteNPY(&file, &tensor))
		require.Zero(t, (file.Len()-len(tensor.Data))%64)
		read, err := engine.ReadNPY(&file)
		require.NoError(t, err)
		require.Equal(t, tensor, read)
	}
	// NumPy's own bytes for the same array.
	want, err := os.ReadFile("testdata/float32.npy")
	require.NoError(t, err)
	tensor, err := readNPY(t, "float32")
	require.NoError(t, err)
	var file bytes.Buffer
	require.NoError(t, engine.WriteNPY(&file, &tensor))
	require.Equal(t, want, file.Bytes())
}

func FuzzReadNPY(f *testing.F) {
	addFiles(f, "testdata/*.npy")
	f.Fuzz(func(t *testing.T, data []byte) {
		tensor, err := engine.ReadNPY(bytes.NewReader(data))
		if err == nil {
			require.EqualValues(t, engine.Elements(tensor.Shape)*int64(tensor.Type.Size()), len(tensor.Data))
		}
	})
}

// addFiles makes seeds of the files that a pattern names.
func addFiles(f *testing.F, pattern string) {
	files, err := filepath.Glob(pattern)
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
}
