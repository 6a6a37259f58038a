package onnx

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strconv"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// tensors returns every tensor of the model: initializers and attributes, subgraphs included.
func (m *Model) tensors() []*TensorProto {
	var all []*TensorProto
	var graph func(g *GraphProto)
	graph = func(g *GraphProto) {
		all = append(all, g.GetInitializer()...)
		for _, n := range g.GetNode() {
			for _, a := range n.Attribute {
				if a.T != nil {
					all = append(all, a.T)
				}
				all = append(all, a.Tensors...)
				if a.G != nil {
					graph(a.G)
				}
				for _, g := range a.Graphs {
					graph(g)
				}
			}
		}
	}
	graph(m.Proto.Graph)
	return all
}

func entry(entries []*StringStringEntryProto, key string) string {
	for _, e := range entries {
		if e.GetKey() == key {
			return e.GetValue()
		}
	}
	return ""
}

// Embed reads the external tensors from data files under dir into the model. It rejects files outside dir, including links to them.
func (m *Model) Embed(dir string) error {
	if len(m.ExternalFiles()) == 0 {
		return nil
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return fmt.Errorf("open external data: %w", err)
	}
	defer root.Close()
	files := make(map[string]*os.File)
	defer func() {
		for _, f := range files {
			f.Close()
		}
	}()
	total := int64(0)
	for _, t := range m.tensors() {
		if t.GetDataLocation() != TensorProto_EXTERNAL {
			continue
		}
		location := entry(t.ExternalData, "location")
		file := files[location]
		if file == nil {
			file, err = root.Open(filepath.FromSlash(location))
			if err != nil {
				return m.missing(dir, location, err)
			}
			files[location] = file
		}
		size, err := m.externalSize(t, file)
		if err != nil {
			return err
		}
		total += size
		if total > math.MaxInt32 {
			return unsupported(m.Path, "its external data is larger than 2 GiB", "use a smaller model")
		}
		offset, _ := strconv.ParseInt(entry(t.ExternalData, "offset"), 10, 64)
		raw := make([]byte, size)
		if _, err := file.ReadAt(raw, offset); err != nil && !errors.Is(err, io.EOF) {
			return fmt.Errorf("read external data %q: %w", location, err)
		}
		t.RawData, t.ExternalData, t.DataLocation = raw, nil, nil
	}
	return nil
}

func (m *Model) missing(dir, location string, err error) error {
	e := &engine.Error{
		Op: "model", Backend: "onnx", Kind: engine.ErrUnsupported,
		Message: fmt.Sprintf("%q: its data file %q cannot be read", m.Path, location), Err: err,
	}
	if errors.Is(err, fs.ErrNotExist) {
		e.Message, e.Err = fmt.Sprintf("%q: its data file %q is missing", m.Path, location), nil
		e.Hint = fmt.Sprintf("copy %s to %s: the exporter wrote it beside the model", location, dir)
	}
	return e
}

// externalSize returns the number of bytes of a tensor in its data file and checks it against the file and the tensor's shape.
func (m *Model) externalSize(t *TensorProto, file *os.File) (int64, error) {
	bad := func(format string, arguments ...any) error {
		message := fmt.Sprintf("tensor %q in data file %q: ", t.GetName(), entry(t.ExternalData, "location"))
		return unsupported(m.Path, message+fmt.Sprintf(format, arguments...), fetchAgain)
	}
	state, err := file.Stat()
	if err != nil {
		return 0, bad("%v", err)
	}
	offset, length := int64(0), state.Size()
	if text := entry(t.ExternalData, "offset"); text != "" {
		offset, err = strconv.ParseInt(text, 10, 64)
		if err != nil || offset < 0 || offset > state.Size() {
			return 0, bad("offset %q in a file of %d bytes", text, state.Size())
		}
	}
	length -= offset
	if text := entry(t.ExternalData, "length"); text != "" {
		length, err = strconv.ParseInt(text, 10, 64)
		if err != nil || length < 0 || length > state.Size()-offset {
			return 0, bad("length %q at offset %d in a file of %d bytes", text, offset, state.Size())
		}
	}
	want, err := t.byteSize()
	if err != nil {
		return 0, bad("%v", err)
	}
	if length != want {
		return 0, bad("%d bytes, shape %v of %v needs %d", length, t.Dims, TensorProto_DataType(t.GetDataType()), want)
	}
	return length, nil
}

const (
	// singleFile is the largest size that Save writes as one file, under protobuf's limit of 2 GiB with room for readers with signed sizes.
	singleFile = 2000 << 20
	// smallTensor is the size in bytes below which tensors always stay in the model file.
	smallTensor = 1024
	// dataAlignment allows readers to map each tensor.
	dataAlignment = 4096
)

// Save writes the model and replaces the file atomically. If it is too large for one file, its tensors go to path + ".data".
func (m *Model) Save(path string) error { return m.save(path, singleFile) }

func (m *Model) save(path string, limit int) error {
	model := m
	if proto.Size(m.Proto) > limit {
		var err error
		model, err = m.externalize(path + ".data")
		if err != nil {
			return err
		}
	}
	data, err := model.Bytes()
	if err != nil {
		return err
	}
	return replace(path, func(out io.Writer) error {
		_, err := out.Write(data)
		return err
	})
}

// externalize writes the large initializers to the data file at path and returns the model that refers to them.
func (m *Model) externalize(path string) (*Model, error) {
	spilled, graph := &Model{Path: m.Path, Proto: new(ModelProto)}, new(GraphProto)
	shallowCopy(spilled.Proto, m.Proto)
	shallowCopy(graph, m.Proto.Graph)
	spilled.Proto.Graph, graph.Initializer = graph, nil
	err := replace(path, func(out io.Writer) error {
		offset := int64(0)
		for _, t := range m.Proto.Graph.Initializer {
			if len(t.RawData) < smallTensor {
				graph.Initializer = append(graph.Initializer, t)
				continue
			}
			if gap := -offset & (dataAlignment - 1); gap > 0 {
				if _, err := out.Write(make([]byte, gap)); err != nil {
					return err
				}
				offset += gap
			}
			if _, err := out.Write(t.RawData); err != nil {
				return err
			}
			outside := &TensorProto{}
			shallowCopy(outside, t)
			outside.RawData, outside.DataLocation = nil, TensorProto_EXTERNAL.Enum()
			outside.ExternalData = []*StringStringEntryProto{
				{Key: proto.String("location"), Value: proto.String(filepath.Base(path))},
				{Key: proto.String("offset"), Value: proto.String(strconv.FormatInt(offset, 10))},
				{Key: proto.String("length"), Value: proto.String(strconv.Itoa(len(t.RawData)))},
			}
			graph.Initializer = append(graph.Initializer, outside)
			offset += int64(len(t.RawData))
		}
		return nil
	})
	return spilled, err
}

// shallowCopy copies the fields of a message without copying their contents.
func shallowCopy(to, from proto.Message) {
	target := to.ProtoReflect()
	from.ProtoReflect().Range(func(field protoreflect.FieldDescriptor, value protoreflect.Value) bool {
		target.Set(field, value)
		return true
	})
	target.SetUnknown(from.ProtoReflect().GetUnknown())
}

// replace writes a file atomically.
func replace(path string, write func(io.Writer) error) error {
	file, err := atomicfile.Create(path, 0o644)
	if err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	err = write(file)
	if err == nil {
		err = file.Commit()
	}
	err = errors.Join(err, file.Close())
	if err != nil {
		return fmt.Errorf("save model: %w", err)
	}
	return nil
}
