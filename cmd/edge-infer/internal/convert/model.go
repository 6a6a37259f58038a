package convert

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// source is a model to convert.
type source struct {
	engine.Options
	model *onnx.Model // set by parse
}

// read reads a model, the demo model where none is named, and its labels where a file has them.
func read(model, labels string) (*source, error) {
	options := predict.Options{Model: model, LabelsFile: labels, Find: catalogue.Find}
	if err := options.Load(); err != nil {
		return nil, err
	}
	if tensorrt.IsPlan(options.Bytes) {
		return nil, fmt.Errorf("model %s is an engine plan already (name the ONNX file that it came from)", options.Path)
	}
	return &source{Options: options.Options}, nil
}

// parse makes the model of the bytes, which hold also the tensors that it keeps in other files from then on, its labels, and how pictures
// become its inputs: what is measured and made of it then sees pictures as service does, and says so itself.
func (s *source) parse() (err error) {
	if s.model, err = onnx.Parse(s.Path, s.Bytes); err != nil {
		return err
	}
	changed, err := s.model.SetPreprocess(s.Metadata.Preprocess)
	if err != nil {
		return err
	}
	labelled, err := s.label()
	if err != nil || !changed && !labelled && len(s.model.ExternalFiles()) == 0 {
		return err
	}
	if err := s.model.Embed(filepath.Dir(s.Path)); err != nil {
		return err
	}
	s.Bytes, err = s.model.Bytes()
	return err
}

// label writes labels into the model that came from a file beside it.
func (s *source) label() (changed bool, err error) {
	known, err := engine.ParseMetadata(s.model.Metadata())
	if len(s.Metadata.Labels) == 0 || err == nil && slices.Equal(known.Labels, s.Metadata.Labels) {
		return false, nil
	}
	names, err := json.Marshal(s.Metadata.Labels)
	if err != nil {
		return false, err
	}
	s.model.SetMetadata("names", string(names))
	return true, nil
}

// checkOutput finds out before the work whether its result can be written, and that it does not replace the model.
func checkOutput(output, model string) error {
	if info, err := os.Stat(output); err == nil {
		if info.IsDir() {
			return fmt.Errorf("%s is a directory (name the file to write with -o)", output)
		}
		if source, err := os.Stat(model); err == nil && os.SameFile(info, source) {
			return fmt.Errorf("%s would replace the model itself (give -o another name)", output)
		}
	}
	return atomicfile.Check(output)
}

var errNoPictures = errors.New("int8 needs calibration pictures " +
	"(give --calibration DIR, or a model with Q/DQ nodes as edge-infer quantize writes it)")
