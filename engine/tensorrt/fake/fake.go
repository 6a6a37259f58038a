// Package fake builds TensorRT libraries that run on any machine, for tests of the shim: one per ABI family, from the same slot tables.
package fake

import (
	"embed"
	"encoding/binary"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
)

//go:embed library
var sources embed.FS

// Options configures Build.
type Options struct {
	// Version as getInferLibVersion returns it: 8502, 8602, 100300, 110100.
	Version int
	// Lean omits the builder, Parserless the ONNX parser.
	Lean, Parserless bool
	// Resource puts the builder's kernels into a separate library, which it loads by name, as real ones do.
	Resource bool
	// Tables is the directory of the slot tables, slots8.h and so on.
	Tables string
	// Flags are additional compiler arguments, for sanitizers.
	Flags []string
}

// Build compiles the library and its parser into dir with $CXX or g++ and returns the library's path.
func Build(dir string, o Options) (string, error) {
	family := o.Version / 10000
	if o.Version < 10000 {
		family = 8
	}
	soname := family
	source := filepath.Join(dir, "source")
	if err := extract(source); err != nil {
		return "", err
	}
	arguments := append([]string{
		fmt.Sprintf("-DFAKE_FAMILY=%d", family), fmt.Sprintf("-DFAKE_VERSION=%d", o.Version), "-I" + o.Tables,
	}, o.Flags...)
	name := "libnvinfer.so."
	if o.Lean {
		name = "libnvinfer_lean.so."
		arguments = append(arguments, "-DFAKE_LEAN")
	}
	if o.Resource {
		release := fmt.Sprintf("libnvinfer_builder_resource.so.%d.%d.%d", o.Version/10000, o.Version/100%100, o.Version%100)
		if family == 8 {
			release = fmt.Sprintf("libnvinfer_builder_resource.so.%d.%d.%d", o.Version/1000, o.Version/100%10, o.Version%100)
		}
		empty := filepath.Join(source, "resource.cc")
		if err := os.WriteFile(empty, nil, 0o600); err != nil {
			return "", err
		}
		if err := compile(filepath.Join(dir, release), append(arguments, empty)); err != nil {
			return "", err
		}
		arguments = append(arguments, fmt.Sprintf("-DFAKE_RESOURCE=%q", release))
	}
	library := filepath.Join(dir, name+fmt.Sprint(soname))
	if err := compile(library, append(arguments, filepath.Join(source, "nvinfer.cc"), "-ldl", "-lpthread")); err != nil {
		return "", err
	}
	if o.Lean || o.Parserless {
		return library, nil
	}
	parser := filepath.Join(dir, fmt.Sprintf("libnvonnxparser.so.%d", soname))
	return library, compile(parser, append(arguments, filepath.Join(source, "nvonnxparser.cc"), library, "-Wl,-rpath,$ORIGIN"))
}

// Plugin is a shared object that registers an operator.
type Plugin struct {
	Operator string
	// Version and Library are the plugin's TensorRT. Listed exports the creators for IPluginRegistry::loadLibrary, Linked lets the linker
	// resolve the registry, Needs names a library to link with, Idle registers nothing.
	Version      int
	Library      string
	Listed, Idle bool
	Linked       bool
	Needs        string
}

// Build compiles the plugin to path with $CXX or g++.
func (p Plugin) Build(path string) error {
	source := filepath.Join(filepath.Dir(path), "source")
	if err := extract(source); err != nil {
		return err
	}
	register := map[int]int{10: 12, 11: 8}[p.Version/10000] // slot of registerCreator; 0 up to TensorRT 9
	arguments := []string{
		fmt.Sprintf("-DFAKE_OPERATOR=%q", p.Operator), fmt.Sprintf("-DFAKE_LIBRARY=%q", p.Library), fmt.Sprintf("-DFAKE_REGISTER=%d", register),
		filepath.Join(source, "plugin.cc"), "-ldl",
	}
	for define, on := range map[string]bool{"-DFAKE_LISTED": p.Listed, "-DFAKE_LINKED": p.Linked, "-DFAKE_IDLE": p.Idle} {
		if on {
			arguments = append(arguments, define)
		}
	}
	if p.Needs != "" {
		needed := filepath.Join(source, p.Needs)
		empty := filepath.Join(source, "needed.cc")
		if err := os.WriteFile(empty, nil, 0o600); err != nil {
			return err
		}
		if err := compile(needed, []string{empty}); err != nil {
			return err
		}
		arguments = append(arguments, "-Wl,--no-as-needed", needed)
	}
	return compile(path, arguments)
}

func extract(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	return fs.WalkDir(sources, "library", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := sources.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(dir, filepath.Base(path)), data, 0o600)
	})
}

func compile(out string, arguments []string) error {
	compiler := os.Getenv("CXX")
	if compiler == "" {
		compiler = "g++"
	}
	arguments = append([]string{
		"-std=c++17", "-O0", "-Wall", "-shared", "-fPIC", "-fvisibility=hidden", "-fno-strict-aliasing", "-o", out,
		"-Wl,-soname," + filepath.Base(out),
	}, arguments...)
	if output, err := exec.Command(compiler, arguments...).CombinedOutput(); err != nil {
		return fmt.Errorf("compile %s: %w\n%s", filepath.Base(out), err, output)
	}
	return nil
}

// Model describes a network to the fake parser in place of an ONNX file.
type Model struct {
	Network   string // what it computes; see model.h
	Operators []string
	Inputs    []engine.TensorInfo
	Outputs   []engine.TensorInfo
}

// typeNumbers are TensorRT's element types.
var typeNumbers = map[engine.DataType]int{
	engine.Float32: 0, engine.Float16: 1, engine.Int8: 2, engine.Int32: 3, engine.Bool: 4, engine.Uint8: 5, engine.Int64: 8,
}

// Bytes returns the description as the producer name of an otherwise empty ONNX file.
func (m Model) Bytes() []byte {
	var text strings.Builder
	fmt.Fprintf(&text, "FAKEMODEL\nnetwork %s\n", m.Network)
	for _, name := range m.Operators {
		fmt.Fprintf(&text, "operator %s\n", name)
	}
	write := func(kind string, tensors []engine.TensorInfo) {
		for _, t := range tensors {
			fmt.Fprintf(&text, "%s %s %d 0", kind, t.Name, typeNumbers[t.Type])
			for _, d := range t.Shape {
				fmt.Fprintf(&text, " %d", d)
			}
			text.WriteByte('\n')
		}
	}
	write("input", m.Inputs)
	write("output", m.Outputs)
	file := []byte{1 << 3, 8, 2<<3 | 2} // ir_version 8, then the name
	file = binary.AppendUvarint(file, uint64(text.Len()))
	return append(file, text.String()...)
}
