package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"

	"github.com/edge-infer/edge-infer/internal/boundedfile"
)

// maxSidecar limits the size in bytes of the file beside a model: the YAML parser needs memory in proportion to the square of the nesting
// depth.
const maxSidecar = 8 << 10

// PreprocessFile returns the name of the preprocessing file of a model: yolox.preprocess.yaml for yolox.onnx.
func PreprocessFile(model string) string {
	return strings.TrimSuffix(model, filepath.Ext(model)) + ".preprocess.yaml"
}

// ReadPreprocess reads the preprocessing file beside a model. It returns the zero value if there is none.
func ReadPreprocess(model string) (Preprocess, error) {
	path := PreprocessFile(model)
	data, err := boundedfile.Read(path, boundedfile.Small)
	if errors.Is(err, fs.ErrNotExist) {
		return Preprocess{}, nil
	}
	if err != nil {
		return Preprocess{}, fmt.Errorf("preprocess: %w", err)
	}
	p, err := ParsePreprocess(data)
	if err != nil {
		return Preprocess{}, fmt.Errorf("%s: %w", path, err)
	}
	return p, nil
}

// ParsePreprocess reads YAML: the fields of Preprocess, or the name of a preset alone.
func ParsePreprocess(data []byte) (p Preprocess, err error) {
	if len(data) > maxSidecar {
		return Preprocess{}, fmt.Errorf("preprocess: over %d bytes", maxSidecar)
	}
	defer func() {
		if recover() != nil { // the parser panics on misplaced tags
			p, err = Preprocess{}, errors.New("preprocess: not YAML that can be read")
		}
	}()
	err = yaml.NewDecoder(bytes.NewReader(data), yaml.Strict()).Decode(&p)
	if err != nil && !errors.Is(err, io.EOF) {
		line, message := 1, err.Error()
		if positioned, ok := errors.AsType[yaml.Error](err); ok {
			message = positioned.GetMessage()
			if token := positioned.GetToken(); token != nil && token.Position != nil {
				line = token.Position.Line
			}
		}
		if typed, ok := errors.AsType[*yaml.TypeError](err); ok {
			message = fmt.Sprintf("a %v is not what belongs here", typed.SrcType)
		}
		message, _, _ = strings.Cut(message, "\n")
		return Preprocess{}, fmt.Errorf("preprocess line %d: %s", line, message)
	}
	if err := p.check(); err != nil {
		return Preprocess{}, err
	}
	return p, nil
}

// UnmarshalYAML accepts the name of a preset in place of a mapping.
func (p *Preprocess) UnmarshalYAML(unmarshal func(any) error) error {
	var name string
	if unmarshal(&name) == nil {
		*p = Preprocess{Preset: name}
		return nil
	}
	type fields Preprocess
	return unmarshal((*fields)(p))
}
