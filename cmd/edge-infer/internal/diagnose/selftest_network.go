package diagnose

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

const (
	imageCount   = 20
	frameStep    = 31   // frames between two images
	minMatchRate = 0.95 // share of boxes that must match
	minOverlap   = 0.8  // intersection over union of matching boxes
)

// demoImages renders images of the demo scene, the same on every machine.
func demoImages() ([]engine.Image, error) {
	s := scene.Scene{Width: 960, Height: 540, Seed: 1}
	if err := s.Open(); err != nil {
		return nil, err
	}
	images := make([]engine.Image, imageCount)
	for i := range images {
		im := engine.Image{Width: s.Width, Height: s.Height, Stride: 3 * s.Width, Format: engine.BGR}
		im.Data = make([]byte, im.Stride*im.Height)
		if _, err := s.Draw(i*frameStep, im.Data, im.Stride, nil); err != nil {
			return nil, err
		}
		images[i] = im
	}
	return images, nil
}

// options returns the options of the model on a backend.
func (r *request) options(backend, precision string) predict.Options {
	c := config.Default()
	c.Model = r.Model
	c.Engine = r.Engine
	c.Detect = r.Detect
	c.Engine.Backend = backend
	c.Engine.Precision = precision
	c.Engine.Batch = 1
	if backend != tensorrt.Name {
		c.Engine.Library, c.Engine.Plugins = "", nil
	}
	return network.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
}

// detectAll returns the detections of each image, and the time per image.
func detectAll(n predict.Predictor, images []engine.Image) (seen [][]postprocess.Detection, each time.Duration, err error) {
	begun := time.Now()
	found, err := predict.Run(n, images...)
	if err != nil {
		return nil, 0, err
	}
	for i := range found {
		if found[i].Err != nil {
			return nil, 0, found[i].Err
		}
		seen = append(seen, found[i].Detections)
	}
	return seen, time.Since(begun) / time.Duration(len(images)), nil
}

// compare compares the detections with those of ONNX Runtime on the CPU.
func (r *request) compare(ctx context.Context, n predict.Predictor) (detail string, err error) {
	images, err := demoImages()
	if err != nil {
		return "", err
	}
	if _, _, err := detectAll(n, images[:1]); err != nil { // warms up
		return "", err
	}
	seen, took, err := detectAll(n, images)
	if err != nil {
		return "", err
	}
	r.note("reference on the CPU")
	plain := *r
	if r.Reference != nil {
		plain.Model = *r.Reference
	}
	reference, err := predict.Open(ctx, plain.options("onnxruntime=cpu", "fp32"))
	if errors.Is(err, engine.ErrUnavailable) {
		return fmt.Sprintf("%.1f ms per image; not compared because ONNX Runtime is not installed", milliseconds(took)), nil
	}
	if err != nil {
		return "", fmt.Errorf("reference on the CPU: %w", err)
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	expected, _, err := detectAll(reference, images)
	if err != nil {
		return "", fmt.Errorf("reference on the CPU: %w", err)
	}
	boxes, matches := 0, 0
	for i := range expected {
		boxes += len(expected[i])
		matches += matched(expected[i], seen[i])
	}
	switch {
	case boxes == 0:
		return "", fmt.Errorf("the model detects nothing in the images of the demo: omit --model")
	case float64(matches) < minMatchRate*float64(boxes):
		return "", fmt.Errorf("only %d of the %d boxes of ONNX Runtime on the CPU found", matches, boxes)
	}
	return fmt.Sprintf("%d of %d boxes of ONNX Runtime on the CPU found, %.1f ms per image", matches, boxes, milliseconds(took)), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// matched returns the number of expected boxes with a matching one.
func matched(expected, seen []postprocess.Detection) (count int) {
	taken := make([]bool, len(seen))
	for _, want := range expected {
		for i, got := range seen {
			if !taken[i] && got.Class == want.Class && got.IoU(want.Box) >= minOverlap {
				taken[i] = true
				count++
				break
			}
		}
	}
	return count
}

// network builds an engine plan in r.Precision, runs it and compares the detections.
func (r *request) network(ctx context.Context) (detail string, err error) {
	o := r.options(tensorrt.Name, r.Precision)
	o.Build = network.PlanBuilder{Progress: r.steps()}.Build
	n, err := predict.Open(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	m := n.Model()
	detail, err = r.compare(ctx, n)
	return fmt.Sprintf("TensorRT %s on %s, %s: %s", m.BackendVersion, m.Device, m.Precision, detail), err
}

// accelerator builds an engine plan for a DLA core, counts the layers on it, runs it and compares the detections.
func (r *request) accelerator(ctx context.Context) (detail string, err error) {
	dir, err := os.MkdirTemp("", "edge-infer-selftest-")
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	o := r.options(tensorrt.Name, r.Precision)
	if err := o.Load(); err != nil {
		return "", err
	}
	build := o.Plan()
	build.DLA = &r.Core
	file := filepath.Join(dir, "dla.plan")
	if _, err := (network.PlanBuilder{Progress: r.steps()}).BuildTo(ctx, build, file, tensorrt.Cache{}); err != nil {
		return "", err
	}
	o = r.options(tensorrt.Name, r.Precision)
	o.Model = file
	n, err := predict.Open(ctx, o)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, n.Close()) }()
	placed, onDLA := 0, 0
	var others []string
	if e, isTensorRT := n.Engine().(*tensorrt.Engine); isTensorRT {
		layers, err := e.Placement()
		if err != nil {
			return "", err
		}
		for _, layer := range layers {
			placed++
			if layer.Device == "DLA" {
				onDLA++
			} else {
				others = append(others, layer.Name)
			}
		}
	}
	if onDLA == 0 {
		return "", fmt.Errorf("none of the %d layers runs on the DLA", placed)
	}
	detail, err = r.compare(ctx, n)
	return fmt.Sprintf("%d of %d layers on the DLA: %s; %s", onDLA, placed, detail, onGPU(others)), err
}

// onGPU describes the layers that the DLA does not execute.
func onGPU(layers []string) string {
	const most = 10
	switch {
	case len(layers) == 0:
		return "none on the GPU"
	case len(layers) > most:
		return fmt.Sprintf("on the GPU %s and %d more", strings.Join(layers[:most], ", "), len(layers)-most)
	}
	return "on the GPU " + strings.Join(layers, ", ")
}
