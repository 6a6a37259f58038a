package onnx

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"sort"

	"github.com/goccy/go-yaml"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/engine"
)

// Model is an ONNX model in memory. It must not be used by other goroutines while one of them rewrites it.
type Model struct {
	// Path is the model's file, for messages and for its external data.
	Path string
	// Proto is the whole file; changing it changes the model.
	Proto *ModelProto
}

// Read reads the file at path with its external data files.
func Read(path string) (*Model, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read model: %w", err)
	}
	m, err := Parse(path, data)
	if err != nil {
		return nil, err
	}
	if err := m.Embed(filepath.Dir(path)); err != nil {
		return nil, err
	}
	return m, nil
}

// Parse parses the bytes of a model file. External tensors stay in their files until Embed. Memory use is bounded by a small multiple of
// len(data) and a constant. Errors are *engine.Error of kind engine.ErrUnsupported; they name the actual file type if it is a known one.
func Parse(path string, data []byte) (*Model, error) {
	if err := checkFormat(path, data); err != nil {
		return nil, err
	}
	if err := checkSize(path, data); err != nil {
		return nil, err
	}
	m := &Model{Path: path, Proto: new(ModelProto)}
	if err := (proto.UnmarshalOptions{RecursionLimit: maxDepth}).Unmarshal(data, m.Proto); err != nil {
		return nil, unsupported(path, "damaged ONNX file: "+err.Error(), fetchAgain)
	}
	if m.Proto.Graph == nil || len(m.Proto.Graph.Output) == 0 {
		return nil, unsupported(path, "not an ONNX model: it has no graph with outputs", "name the .onnx file that the exporter wrote")
	}
	return m, nil
}

// Bytes encodes the model as one file. Equal models have equal bytes.
func (m *Model) Bytes() ([]byte, error) {
	if size := proto.Size(m.Proto); size > math.MaxInt32 {
		return nil, unsupported(m.Path, fmt.Sprintf("%d bytes exceed the limit of 2 GiB of one ONNX file", size),
			"save it with its tensors in a data file beside it")
	}
	data, err := (proto.MarshalOptions{Deterministic: true}).Marshal(m.Proto)
	if err != nil {
		return nil, unsupported(m.Path, "cannot be encoded: "+err.Error(), "")
	}
	return data, nil
}

// Clone returns a deep copy.
func (m *Model) Clone() *Model {
	return &Model{Path: m.Path, Proto: proto.Clone(m.Proto).(*ModelProto)}
}

// Metadata returns the model's metadata properties; see engine.ParseMetadata. The last of repeated keys wins.
func (m *Model) Metadata() map[string]string {
	properties := make(map[string]string, len(m.Proto.MetadataProps))
	for _, p := range m.Proto.MetadataProps {
		properties[p.GetKey()] = p.GetValue()
	}
	return properties
}

// SetMetadata sets one metadata property.
func (m *Model) SetMetadata(key, value string) {
	for _, p := range m.Proto.MetadataProps {
		if p.GetKey() == key {
			p.Value = &value
			return
		}
	}
	m.Proto.MetadataProps = append(m.Proto.MetadataProps, &StringStringEntryProto{Key: &key, Value: &value})
}

// SetPreprocess writes the preprocessing into the metadata and reports whether it changed.
func (m *Model) SetPreprocess(p engine.Preprocess) (changed bool, err error) {
	own, err := engine.ParseMetadata(m.Metadata())
	if p.IsZero() || err == nil && reflect.DeepEqual(own.Preprocess, p) {
		return false, nil
	}
	text, err := yaml.Marshal(p)
	if err != nil {
		return false, fmt.Errorf("preprocess: %w", err)
	}
	m.SetMetadata(engine.PreprocessProperty, string(text))
	return true, nil
}

// Inputs describes the model's inputs in its own order; the shape is nil if the file does not define the rank. Initializers that old files
// list as inputs are omitted.
func (m *Model) Inputs() ([]engine.TensorInfo, error) {
	given := make(map[string]bool, len(m.Proto.Graph.Initializer))
	for _, t := range m.Proto.Graph.Initializer {
		given[t.GetName()] = true
	}
	var inputs []*ValueInfoProto
	for _, v := range m.Proto.Graph.Input {
		if !given[v.GetName()] {
			inputs = append(inputs, v)
		}
	}
	return m.infos("input", inputs)
}

// Outputs describes the model's outputs in its own order, like Inputs.
func (m *Model) Outputs() ([]engine.TensorInfo, error) {
	return m.infos("output", m.Proto.Graph.Output)
}

func (m *Model) infos(side string, values []*ValueInfoProto) ([]engine.TensorInfo, error) {
	infos := make([]engine.TensorInfo, 0, len(values))
	for _, v := range values {
		tensor := v.GetType().GetTensorType()
		kind, known := elementTypes[TensorProto_DataType(tensor.GetElemType())]
		if tensor == nil || !known {
			what := "not a tensor"
			if tensor != nil {
				what = "a tensor of " + TensorProto_DataType(tensor.GetElemType()).String()
			}
			return nil, unsupported(m.Path, fmt.Sprintf("%s %q is %s", side, v.GetName(), what),
				"only dense tensors of float32, float16, int8, uint8, int32, int64 and bool are supported")
		}
		info := engine.TensorInfo{Name: v.GetName(), Type: kind}
		if tensor.GetShape() != nil {
			info.Shape = []int64{} // a scalar if there are no dimensions
		}
		for _, d := range tensor.GetShape().GetDim() {
			size := d.GetDimValue()
			if size < 1 {
				size = -1
			}
			info.Shape = append(info.Shape, size)
		}
		infos = append(infos, info)
	}
	return infos, nil
}

var elementTypes = map[TensorProto_DataType]engine.DataType{
	TensorProto_FLOAT: engine.Float32, TensorProto_FLOAT16: engine.Float16, TensorProto_INT8: engine.Int8, TensorProto_UINT8: engine.Uint8,
	TensorProto_INT32: engine.Int32, TensorProto_INT64: engine.Int64, TensorProto_BOOL: engine.Bool,
}

// Opset returns the version of the ONNX operators that the model uses, 0 if it uses none of them.
func (m *Model) Opset() int {
	for _, o := range m.Proto.OpsetImport {
		if o.GetDomain() == "" || o.GetDomain() == "ai.onnx" {
			return int(o.GetVersion())
		}
	}
	return 0
}

// CheckOpset returns an error if the model's operators are newer than reader supports.
func (m *Model) CheckOpset(newest int, reader string) error {
	if opset := m.Opset(); opset > newest {
		return unsupported(m.Path, fmt.Sprintf("uses opset %d, %s reads up to %d", opset, reader, newest),
			fmt.Sprintf("export the model again with opset=%d", min(newest, 17)))
	}
	return nil
}

// Operators returns the number of nodes by operator.
func (m *Model) Operators() map[string]int {
	counts := make(map[string]int)
	for _, n := range m.Proto.Graph.Node {
		counts[n.GetOpType()]++
	}
	return counts
}

// ExternalFiles returns the sorted names of the data files of external tensors.
func (m *Model) ExternalFiles() []string {
	seen := make(map[string]bool)
	var files []string
	for _, t := range m.tensors() {
		if t.GetDataLocation() != TensorProto_EXTERNAL {
			continue
		}
		if location := entry(t.ExternalData, "location"); !seen[location] {
			seen[location] = true
			files = append(files, location)
		}
	}
	sort.Strings(files)
	return files
}
