package onnx_test

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/internal/prototest"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"
)

func read(t *testing.T, name string) []byte {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return data
}

func TestExportedModel(t *testing.T) {
	m, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	assert.Equal(t, 17, m.Opset())
	assert.Equal(t, map[string]int{"Conv": 2, "Sigmoid": 1, "Mul": 1, "Reshape": 1}, m.Operators())
	inputs, err := m.Inputs()
	require.NoError(t, err)
	assert.Equal(t, []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{-1, 3, 32, 32}}}, inputs)
	outputs, err := m.Outputs()
	require.NoError(t, err)
	assert.Equal(t, []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{-1, 6, 256}}}, outputs)
	metadata, err := engine.ParseMetadata(m.Metadata())
	require.NoError(t, err)
	assert.Equal(t,
		engine.Metadata{
			Task: engine.Detect, Labels: []string{"cap", "nut"}, Stride: 32, Width: 32, Height: 32, Batch: 1,
			Preprocess: engine.Preprocess{Preset: "ultralytics"},
		}, metadata)
}

func TestRoundTrip(t *testing.T) {
	for _, name := range []string{"exported.onnx", "external.onnx"} {
		data := read(t, name)
		m, err := onnx.Parse(name, data)
		require.NoError(t, err)
		again, err := m.Bytes()
		require.NoError(t, err)
		assert.Equal(t, data, again, name)
	}
	m, err := onnx.Parse("demo", demo.Model())
	require.NoError(t, err)
	again, err := m.Bytes()
	require.NoError(t, err)
	assert.True(t, bytes.Equal(demo.Model(), again), "an export of PyTorch")
}

func TestRewriteKeepsOtherFields(t *testing.T) {
	data := read(t, "exported.onnx")
	m, err := onnx.Parse("", data)
	require.NoError(t, err)
	m.SetMetadata("names", "{0: 'cap', 1: 'bolt'}")
	m.SetMetadata("quantized", "int8")
	changed, err := m.Bytes()
	require.NoError(t, err)
	back, err := onnx.Parse("", changed)
	require.NoError(t, err)
	assert.Equal(t, "{0: 'cap', 1: 'bolt'}", back.Metadata()["names"])
	assert.Equal(t, "int8", back.Metadata()["quantized"])

	back.SetMetadata("names", "{0: 'cap', 1: 'nut'}")
	properties := back.Proto.MetadataProps
	back.Proto.MetadataProps = properties[:len(properties)-1]
	restored, err := back.Bytes()
	require.NoError(t, err)
	assert.Equal(t, data, restored)
}

func TestExternalData(t *testing.T) {
	whole, err := onnx.Read("testdata/external.onnx")
	require.NoError(t, err)
	assert.Empty(t, whole.ExternalFiles())
	reference, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	for i, tensor := range reference.Proto.Graph.Initializer {
		assert.Equal(t, tensor.Name, whole.Proto.Graph.Initializer[i].Name)
		assert.Len(t, whole.Proto.Graph.Initializer[i].RawData, len(tensor.RawData))
	}

	apart, err := onnx.Parse("external.onnx", read(t, "external.onnx"))
	require.NoError(t, err)
	assert.Equal(t, []string{"external.onnx.data"}, apart.ExternalFiles())
	_, err = apart.Proto.Graph.Initializer[0].Floats()
	assert.EqualError(t, err, `tensor "w1": its data file was not read`)

	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "model.onnx"), read(t, "external.onnx"), 0o600))
	_, err = onnx.Read(filepath.Join(dir, "model.onnx"))
	require.ErrorIs(t, err, engine.ErrUnsupported)
	assert.Contains(t, err.Error(), `its data file "external.onnx.data" is missing (copy external.onnx.data to `+dir)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "external.onnx.data"), read(t, "external.onnx.data")[:200], 0o600))
	_, err = onnx.Read(filepath.Join(dir, "model.onnx"))
	assert.ErrorContains(t, err, `tensor "w1" in data file "external.onnx.data": length "1728" at offset 0 in a file of 200 bytes`)
}

func TestExternalDataStaysInItsDirectory(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "secret"), make([]byte, 1<<16), 0o600))
	inside := filepath.Join(dir, "model")
	require.NoError(t, os.Mkdir(inside, 0o700))
	require.NoError(t, os.Symlink("../secret", filepath.Join(inside, "link")))
	for _, location := range []string{"../secret", filepath.Join(dir, "secret"), "link", ""} {
		m, err := onnx.Parse("m.onnx", read(t, "external.onnx"))
		require.NoError(t, err)
		m.Proto.Graph.Initializer[0].ExternalData[0].Value = proto.String(location)
		assert.Error(t, m.Embed(inside), location)
	}
}

func TestSave(t *testing.T) {
	m, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	path := filepath.Join(t.TempDir(), "saved.onnx")
	require.NoError(t, m.Save(path))
	saved, err := os.ReadFile(path)
	require.NoError(t, err)
	assert.Equal(t, read(t, "exported.onnx"), saved)
	left, err := os.ReadDir(filepath.Dir(path))
	require.NoError(t, err)
	assert.Len(t, left, 1, "no temporary file may stay")
	assert.ErrorContains(t, m.Save(filepath.Join(path, "under-a-file.onnx")), "save model: ")
}

func TestUnreadableModels(t *testing.T) {
	good := read(t, "exported.onnx")
	for name, test := range map[string]struct {
		data []byte
		want string
	}{
		"empty": {nil, `onnx model: "m": the file is empty (fetch or export the file again and compare its size)`},
		"web page": {
			[]byte("\n<!DOCTYPE html><html>"),
			`onnx model: "m": a web page or XML text, not ONNX (the download was answered with a page; fetch the file itself)`,
		},
		"git-LFS": {
			[]byte("version https://git-lfs.github.com/spec/v1\noid sha256:1\n"),
			`onnx model: "m": a git-LFS pointer, not the model itself (run git lfs pull where it came from)`,
		},
		"checkpoint": {
			[]byte("PK\x03\x04\x00\x00best/data.pkl"),
			`onnx model: "m": a PyTorch checkpoint, not ONNX (export it: yolo export model=FILE.pt format=onnx)`,
		},
		"zip": {[]byte("PK\x03\x04\x00\x00best.onnx"), `onnx model: "m": a zip file, not ONNX (unpack it and name the .onnx file)`},
		"plan": {
			[]byte("ftrt\x00\x00\x00"),
			`onnx model: "m": a TensorRT plan, not ONNX (a plan belongs to one GPU and one TensorRT; name the .onnx file that it was built from)`,
		},
		"ultralytics": {[]byte("\x21\x01\x00\x00{\"task\""), `onnx model: "m": a TensorRT plan with a header of Ultralytics, not ONNX (a plan belongs to one GPU and one TensorRT; name the .onnx file that it was built from)`},
		"image":       {[]byte("\xff\xd8\xff\xe0"), `onnx model: "m": a JPEG image, not ONNX (name the .onnx file)`},
		"text": {
			[]byte("hello, this is text"),
			`onnx model: "m": not ONNX: byte 3 fits no ONNX field (name the .onnx file that the exporter wrote)`,
		},
		"cut": {
			good[:1000],
			`onnx model: "m": truncated: its graph takes 2689 bytes and 979 are there (fetch or export the file again and compare its size)`,
		},
		"no graph": {
			[]byte("\x08\x08"),
			`onnx model: "m": not an ONNX model: it has no graph with outputs (name the .onnx file that the exporter wrote)`,
		},
		"nested too far": {nested(100), `onnx model: "m": more than 2097152 nested fields or 64 levels (no exporter writes such a file; fetch or export the file again and compare its size)`},
		"too many nodes": {field(7, bytes.Repeat([]byte{10, 0},
			3<<20)), `onnx model: "m": more than 2097152 nested fields or 64 levels (no exporter writes such a file; fetch or export the file again and compare its size)`},
	} {
		_, err := onnx.Parse("m", test.data)
		require.ErrorIs(t, err, engine.ErrUnsupported, name)
		assert.EqualError(t, err, test.want, name)
	}
	_, err := onnx.Read("testdata/absent.onnx")
	assert.EqualError(t, err, "read model: open testdata/absent.onnx: no such file or directory")
}

// field encodes a body of less than 2^28 bytes as a length-delimited field.
func field(number int, body []byte) []byte {
	length := len(body)
	return append([]byte{byte(number<<3 | 2), byte(length) | 0x80, byte(length>>7) | 0x80, byte(length>>14) | 0x80, byte(length>>21) & 0x7f},
		body...)
}

// nested returns a model with graphs nested in attributes.
func nested(levels int) []byte {
	var graph []byte
	for range levels {
		graph = field(1, field(5, field(6, graph)))
	}
	return field(7, graph)
}

func TestOpsetTooNew(t *testing.T) {
	m, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	require.NoError(t, m.CheckOpset(17, "TensorRT 8.5"))
	assert.EqualError(t, m.CheckOpset(16, "TensorRT 8.4"),
		`onnx model: "testdata/exported.onnx": uses opset 17, TensorRT 8.4 reads up to 16 (export the model again with opset=16)`)
}

func TestUnsupportedInputs(t *testing.T) {
	m, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	m.Proto.Graph.Input[0].Type.GetTensorType().ElemType = proto.Int32(int32(onnx.TensorProto_STRING))
	_, err = m.Inputs()
	assert.EqualError(t, err, `onnx model: "testdata/exported.onnx": input "images" is a tensor of STRING (only dense tensors of float32, float16, int8, uint8, int32, int64 and bool are supported)`)
}

func TestGeneratedCodeIsCurrent(t *testing.T) { prototest.Current(t, "onnx") }

func FuzzParse(f *testing.F) {
	for _, name := range []string{"exported.onnx", "external.onnx"} {
		data, err := os.ReadFile(filepath.Join("testdata", name))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Add(nested(3))
	f.Fuzz(func(t *testing.T, data []byte) {
		m, err := onnx.Parse("fuzz", data)
		if err != nil {
			return
		}
		m.Inputs()
		m.Outputs()
		m.Metadata()
		for _, tensor := range m.Proto.Graph.Initializer {
			tensor.Floats()
			tensor.Ints()
		}
		again, err := m.Bytes()
		if err != nil {
			t.Fatal(err)
		}
		back, err := onnx.Parse("fuzz", again)
		if err != nil {
			t.Fatalf("its own bytes are refused: %v", err)
		}
		if twice, _ := back.Bytes(); !bytes.Equal(again, twice) {
			t.Fatal("the second round trip changes the bytes")
		}
	})
}

func TestSetPreprocess(t *testing.T) {
	m, err := onnx.Read("testdata/exported.onnx")
	require.NoError(t, err)
	preprocess := func() engine.Preprocess {
		metadata, err := engine.ParseMetadata(m.Metadata())
		require.NoError(t, err)
		return metadata.Preprocess
	}
	for _, test := range []struct {
		p       engine.Preprocess
		changed bool
		want    engine.Preprocess
	}{
		{engine.Preprocess{}, false, engine.Preprocess{Preset: "ultralytics"}},
		{engine.Preprocess{Preset: "ultralytics"}, false, engine.Preprocess{Preset: "ultralytics"}},
		{
			engine.Preprocess{Preset: "yolox", Pad: new(int), Mean: []float64{1, 2, 3}},
			true,
			engine.Preprocess{Preset: "yolox", Pad: new(int), Mean: []float64{1, 2, 3}},
		},
		{
			engine.Preprocess{Preset: "yolox", Pad: new(int), Mean: []float64{1, 2, 3}},
			false,
			engine.Preprocess{Preset: "yolox", Pad: new(int), Mean: []float64{1, 2, 3}},
		},
		{engine.Preprocess{Preset: "ultralytics"}, true, engine.Preprocess{Preset: "ultralytics"}},
	} {
		changed, err := m.SetPreprocess(test.p)
		require.NoError(t, err)
		assert.Equal(t, test.changed, changed, test.p)
		assert.Equal(t, test.want, preprocess())
	}
}
