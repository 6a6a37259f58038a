package convert

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// source is a model to convert.
type source struct {
	engine.Options
	activation engine.Activation // of a classifier, if given by option
	model      *onnx.Model       // set by parse
}

// ModelOptions describe a model where its file does not. They have the names of the configuration.
type ModelOptions struct {
	Labels     string // file of class names (lines, YAML or JSON), or coco; empty: the model's own
	Layout     string // output layout for the gate, if it cannot be recognised
	Preprocess string // preprocessing; empty: the model's own
	Size       string // SIDE or HEIGHTxWIDTH, for a model with dynamic height and width
	Activation string // last activation of a classifier: auto, softmax or sigmoid
}

func (m *ModelOptions) flags(flags *pflag.FlagSet) {
	flags.StringVar(&m.Labels, "labels", "", "file of class names (lines, YAML or JSON), or coco; empty: the model's own")
	flags.StringVar(&m.Layout, "layout", head.Layouts()[0], "output layout for the gate if it cannot be recognised, such as yolov8")
	flags.StringVar(&m.Preprocess, "preprocess", "", "preprocessing if the model does not describe it: "+
		strings.Join(engine.Presets(), ", ")+", or YAML")
	flags.StringVar(&m.Size, "imgsz", "", "input size of a model with open height and width: SIDE or HEIGHTxWIDTH in pixels")
	flags.StringVar(&m.Activation, "activation", config.Auto, "last activation of a classifier: softmax, sigmoid, or auto: from the model")
}

// options returns the engine options without the labels.
func (m *ModelOptions) options() (options engine.Options, err error) {
	_, err = head.ParseLayout(m.Layout)
	if err != nil {
		return options, config.Usagef("--layout: %v", err)
	}
	settings := config.Model{Preprocess: config.Preprocess(m.Preprocess), Size: m.Size, Activation: cmp.Or(m.Activation, config.Auto)}
	options.Metadata.Preprocess, err = settings.Images()
	if err != nil {
		return options, config.Usagef("--preprocess: %v", err)
	}
	options.Height, options.Width, err = settings.Sides()
	if err != nil {
		return options, config.Usagef("--imgsz %v", err)
	}
	if !slices.Contains([]string{config.Auto, string(engine.Softmax), string(engine.Sigmoid)}, settings.Activation) {
		return options, config.Usagef("--activation %q must be auto, softmax or sigmoid", m.Activation)
	}
	options.Metadata.Activation = settings.LastActivation()
	return options, nil
}

// read reads a model, or the demo model if the name is empty, with the given options.
func read(model string, meaning *ModelOptions) (*source, error) {
	modelOptions, err := meaning.options()
	if err != nil {
		return nil, err
	}
	options := predict.Options{Model: model, LabelsFile: meaning.Labels, ResolveModel: catalogue.Resolve, Options: modelOptions}
	options.Decoding.Layout = head.Layout(meaning.Layout)
	if err := options.Load(); err != nil {
		return nil, err
	}
	if tensorrt.IsPlan(options.Bytes) {
		return nil, fmt.Errorf("model %s is an engine plan already (name the ONNX file that it came from)", options.Path)
	}
	return &source{Options: options.Options, activation: modelOptions.Metadata.Activation}, nil
}

// parse parses the ONNX file, reads its external tensors, and writes labels, preprocessing, input size and activation into its metadata.
// Calibration then uses the same preprocessing as inference, and the converted model describes itself.
func (s *source) parse() (err error) {
	s.model, err = onnx.Parse(s.Path, s.Bytes)
	if err != nil {
		return err
	}
	changed, err := s.model.SetPreprocess(s.Metadata.Preprocess)
	if err != nil {
		return err
	}
	if s.Width > 0 {
		if err := s.size(); err != nil {
			return err
		}
		changed = true
	}
	if s.activation != "" && s.model.Metadata()[engine.ActivationProperty] != string(s.activation) {
		s.model.SetMetadata(engine.ActivationProperty, string(s.activation))
		changed = true
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

// size sets the input height and width of a model that leaves them dynamic.
func (s *source) size() error {
	inputs, err := s.model.Inputs()
	if err != nil {
		return err
	}
	sides := s.Metadata
	sides.Width, sides.Height = s.Width, s.Height
	img, err := engine.FindImageInput(inputs, sides)
	if err != nil {
		return fmt.Errorf("model %s: %w", s.Path, err)
	}
	if img.Width != s.Width || img.Height != s.Height {
		return config.Usagef("model %s takes images of %dx%d only, not %dx%d (omit --imgsz)", s.Path, img.Height, img.Width,
			s.Height, s.Width)
	}
	s.model.SetMetadata("imgsz", fmt.Sprintf("[%d, %d]", s.Height, s.Width))
	return nil
}

// label writes labels of a separate file into the model.
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

// checkOutput checks before the work starts that the output can be written and does not replace the model.
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

var errNoImages = errors.New("int8 needs calibration images " +
	"(give --images DIR, or a model with Q/DQ nodes as edge-infer quantize writes it)")
