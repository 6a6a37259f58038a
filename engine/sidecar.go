package engine

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/goccy/go-yaml"
)

// maxSidecar bounds the file beside a model, in bytes. A parser of YAML takes memory by the square of what is nested.
const maxSidecar = 8 << 10

// PreprocessFile is where the description of a model's images lies, if there is one: yolox.preprocess.yaml beside yolox.onnx.
func PreprocessFile(model string) string {
	return strings.TrimSuffix(model, filepath.Ext(model)) + ".preprocess.yaml"
}

// ReadPreprocess reads the file beside a model. Without a file it returns the zero value.
func ReadPreprocess(model string) (Preprocess, error) {
	path := PreprocessFile(model)
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return Preprocess{}, nil
	}
	if err != nil {
		return Preprocess{}, fmt.Errorf("preprocess: %w", err)
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, maxSidecar+1))
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
		if recover() != nil { // the parser's, on tags in odd places
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

// UnmarshalYAML takes the name of a preset for a description with nothing else.
func (p *Preprocess) UnmarshalYAML(unmarshal func(any) error) error {
	var name string
	if unmarshal(&name) == nil {
		*p = Preprocess{Preset: name}
		return nil
	}
	type fields Preprocess
	return unmarshal((*fields)(p))
}
