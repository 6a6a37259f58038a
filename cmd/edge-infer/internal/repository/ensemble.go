package repository

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/kserve"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// preprocessor is the Python model that converts images on the server. The Python backend is part of every build of the server.
//
//go:embed preprocess.py
var preprocessor []byte

// wireTypes maps image encodings to the server's element types.
var wireTypes = map[string]string{"fp16": "TYPE_FP16", "uint8": "TYPE_UINT8", "jpeg": "TYPE_STRING"}

// numbers configures the preprocessor: level x scale + bias per channel, in the network's order.
type numbers struct {
	Wire   string             `json:"wire"`
	Layout engine.InputLayout `json:"layout"`
	Colour engine.Colour      `json:"colour"`
	Width  int                `json:"width"`
	Height int                `json:"height"`
	Scale  []float32          `json:"scale"`
	Bias   []float32          `json:"bias"`
}

// ensemble is a model NAME_WIRE that takes images in the encoding wire and converts them with NAME_WIRE_input for NAME.
type ensemble struct {
	*description
	wire string
}

func (e *ensemble) whole() string { return e.name + "_" + e.wire }
func (e *ensemble) input() string { return e.whole() + "_input" }

// write adds both models to the repository. Existing configurations are kept.
func (e *ensemble) write(repository string) error {
	p := e.model.Image
	if p == nil {
		return fmt.Errorf("--wire %s: the model takes no images: %w", e.wire, e.model.NoImage)
	}
	if strings.EqualFold(kserve.Datatype(p.Type), e.wire) {
		return fmt.Errorf("--wire %s: the model takes that itself (omit it)", e.wire)
	}
	if e.wire == "fp16" && p.Type == engine.Uint8 {
		return errors.New("--wire fp16: the model takes uint8, which is half of that (leave it away)")
	}
	whole, err := e.wholeConfig()
	if err != nil {
		return err
	}
	input, err := e.inputConfig()
	if err != nil {
		return err
	}
	// The ensemble is written last, so that a polling server finds its parts.
	for _, m := range []struct {
		name, config string
		file         []byte
	}{{e.input(), input, preprocessor}, {e.whole(), whole, nil}} {
		dir := filepath.Join(repository, m.name)
		config := filepath.Join(dir, "config.pbtxt")
		if _, err := os.Stat(config); err == nil {
			continue
		} else if !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("repository: %w", err)
		}
		if err := os.MkdirAll(filepath.Join(dir, "1"), 0o755); err != nil {
			return fmt.Errorf("repository: %w", err)
		}
		if m.file != nil {
			if err := atomicfile.Write(filepath.Join(dir, "1", "model.py"), m.file, 0o644); err != nil {
				return err
			}
		}
		if err := atomicfile.Write(config, []byte(m.config), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// wireDims returns the dimensions of the encoded input.
func (e *ensemble) wireDims() string {
	p, batch := e.model.Image, e.batch()
	switch {
	case e.wire != "jpeg":
		return dims(p.Shape(p.Batch), batch)
	case batch > 0:
		return "1"
	}
	return join([]int{max(p.Batch, 1)})
}

// wholeConfig returns the configuration of the ensemble: the network's with another input.
func (e *ensemble) wholeConfig() (string, error) {
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	name, batch := e.model.Inputs[0].Name, e.batch()
	line("name: %s\nplatform: \"ensemble\"\nmax_batch_size: %d", text(e.whole()), batch)
	line("input { name: %s data_type: %s dims: [%s] }", text(name), wireTypes[e.wire], e.wireDims())
	e.tensors(line, "output", e.model.Outputs, batch, false)
	line("ensemble_scheduling {")
	line("  step { model_name: %s model_version: -1 input_map { key: %s value: %s } output_map { key: \"numbers\" value: \"numbers\" } }",
		text(e.input()), text(name), text(name))
	line("  step { model_name: %s model_version: -1 input_map { key: %s value: \"numbers\" }", text(e.name), text(name))
	for _, out := range e.model.Outputs {
		line("    output_map { key: %s value: %s }", text(out.Name), text(out.Name))
	}
	line("  }\n}")
	meaning := e.model.Metadata
	meaning.Width, meaning.Height = e.model.Width, e.model.Height
	if e.wire != "fp16" { // the server does the scaling
		meaning.Preprocess.Range, meaning.Preprocess.Mean, meaning.Preprocess.Deviation = nil, nil, nil
	}
	properties, err := meaning.Properties()
	if err != nil {
		return "", err
	}
	parameters(line, properties)
	return b.String(), nil
}

// inputConfig returns the configuration of the preprocessor.
func (e *ensemble) inputConfig() (string, error) {
	p, batch := e.model.Image, e.batch()
	how := numbers{
		Wire: e.wire, Layout: p.Preprocess.Layout, Colour: p.Preprocess.Colour, Width: p.Width, Height: p.Height,
	}
	scale, bias := p.Affine()
	if e.wire == "fp16" {
		scale, bias = [3]float32{1, 1, 1}, [3]float32{}
	}
	how.Scale, how.Bias = scale[:p.Channels], bias[:p.Channels]
	encoded, err := json.Marshal(&how)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	line := func(format string, arguments ...any) { fmt.Fprintf(&b, format+"\n", arguments...) }
	line("name: %s\nbackend: \"python\"\nmax_batch_size: %d", text(e.input()), batch)
	line("input { name: %s data_type: %s dims: [%s] }", text(e.model.Inputs[0].Name), wireTypes[e.wire], e.wireDims())
	line("output { name: \"numbers\" data_type: %s dims: [%s] }", kserve.ConfigType(kserve.Datatype(p.Type)), dims(p.Shape(p.Batch), batch))
	line("instance_group { count: %d kind: KIND_CPU }", e.export.Instances)
	parameters(line, map[string]string{"numbers": string(encoded)})
	return b.String(), nil
}
