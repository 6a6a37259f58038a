package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess"
)

// demoName stands for the embedded model in messages and status.
const demoName = "demo"

// modelOptions reads the model and labels that c names into what a backend needs. Batch is the batch when c leaves it open, lowest the score
// that is let through.
func modelOptions(c *config.Config, batch int, lowest float64) (engine.Options, error) {
	options := engine.Options{
		Path: demoName, Precision: engine.Precision(c.Engine.Precision), Device: c.Engine.FirstDevice(), Threads: c.Engine.Threads,
		MaxBatch: batch, Confidence: float32(lowest), Library: c.Engine.Library,
	}
	if c.Engine.Batch > 0 {
		options.MaxBatch = c.Engine.Batch
	}
	if c.Model.Path == "" {
		options.Bytes = demo.Model()
	} else {
		data, err := os.ReadFile(c.Model.Path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return options, fmt.Errorf("model %s: no such file (name an ONNX file, or none for the demo model)", c.Model.Path)
		case err != nil:
			return options, fmt.Errorf("model: %w", err)
		}
		options.Path, options.Bytes = c.Model.Path, data
	}
	if c.Model.Labels != "" {
		file, err := os.Open(c.Model.Labels)
		if err != nil {
			return options, fmt.Errorf("labels: %w", err)
		}
		defer file.Close()
		if options.Metadata.Labels, err = engine.ReadLabels(file); err != nil {
			return options, fmt.Errorf("labels %s: %w", c.Model.Labels, err)
		}
	}
	options.Metadata = described(options).Override(options.Metadata)
	return options, nil
}

// described is what an ONNX file says of itself: TensorRT does not read it, so it goes into the plan. What is wrong with the file the backend
// says better.
func described(options engine.Options) engine.Metadata {
	if tensorrt.IsPlan(options.Bytes) {
		return engine.Metadata{}
	}
	model, err := onnx.Parse(options.Path, options.Bytes)
	if err != nil {
		return engine.Metadata{}
	}
	metadata, _ := engine.ParseMetadata(model.Metadata())
	return metadata
}

// openDetector fits a decoder with c's thresholds to a model; lowest is the score that it lets through.
func openDetector(c *config.Config, model engine.Model, lowest float64) (*pipeline.Detector, error) {
	layout, err := postprocess.ParseLayout(c.Model.Layout)
	if err != nil {
		return nil, usageError{err}
	}
	decoder := &postprocess.Decoder{Layout: layout, Confidence: float32(lowest), IoU: float32(c.Detect.IoU), MaxDetections: c.Detect.Max}
	for _, wanted := range c.Detect.Labels {
		class, err := classOf(model.Metadata.Labels, wanted)
		if err != nil {
			return nil, err
		}
		decoder.Classes = append(decoder.Classes, class)
	}
	detector, err := pipeline.OpenDetector(model, decoder)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", model.Path, err)
	}
	return detector, nil
}

func classOf(labels []string, wanted string) (int, error) {
	for class, label := range labels {
		if label == wanted {
			return class, nil
		}
	}
	return 0, usagef("label %q is not one of the model's: %.400q", wanted, labels)
}
