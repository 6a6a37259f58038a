package selftest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
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
	apart        = 31   // frames between two of the images
	leastShare   = 0.95 // of the boxes that must be found again
	leastOverlap = 0.8  // intersection over union of a box that is found again
)

// belt draws images of the demo's conveyor belt, the same on every machine.
func belt() ([]engine.Image, error) {
	s := scene.Scene{Width: 960, Height: 540, Seed: 1}
	if err := s.Open(); err != nil {
		return nil, err
	}
	images := make([]engine.Image, imageCount)
	for i := range images {
		im := engine.Image{Width: s.Width, Height: s.Height, Stride: 3 * s.Width, Format: engine.BGR}
		im.Data = make([]byte, im.Stride*im.Height)
		if _, err := s.Draw(i*apart, im.Data, im.Stride, nil); err != nil {
			return nil, err
		}
		images[i] = im
	}
	return images, nil
}

// options are those of the model on a backend.
func (r *request) options(backend, precision string) predict.Options {
	c := config.Default()
	c.Model, c.Engine, c.Detect = r.Model, r.Engine, r.Detect
	c.Engine.Backend, c.Engine.Precision, c.Engine.Batch = backend, precision, 1
	if backend != tensorrt.Name {
		c.Engine.Library, c.Engine.Plugins = "", nil
	}
	return network.Options(c, c.Detect.Confidence, slog.New(slog.DiscardHandler))
}

// look is what a network sees on images.
func look(n predict.Predictor, images []engine.Image) (seen [][]postprocess.Detection, each time.Duration, err error) {
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

// compare says how many of the boxes that ONNX Runtime finds on the CPU the network finds too.
func (r *request) compare(ctx context.Context, n predict.Predictor) (detail string, err error) {
	images, err := belt()
	if err != nil {
		return "", err
	}
	if _, _, err := look(n, images[:1]); err != nil { // warms up
		return "", err
	}
	seen, took, err := look(n, images)
	if err != nil {
		return "", err
	}
	r.note("the same on the CPU")
	reference, err := predict.Open(ctx, r.options("onnxruntime=cpu", "fp32"))
	if errors.Is(err, engine.ErrUnavailable) {
		return fmt.Sprintf("%.1f ms an image; not compared, as ONNX Runtime is not installed", milliseconds(took)), nil
	}
	if err != nil {
		return "", fmt.Errorf("the CPU's: %w", err)
	}
	defer func() { err = errors.Join(err, reference.Close()) }()
	expected, _, err := look(reference, images)
	if err != nil {
		return "", fmt.Errorf("the CPU's: %w", err)
	}
	boxes, again := 0, 0
	for i := range expected {
		boxes += len(expected[i])
		again += matched(expected[i], seen[i])
	}
	switch {
	case boxes == 0:
		return "", fmt.Errorf("the model finds nothing on the images of the demo belt: leave --model away")
	case float64(again) < leastShare*float64(boxes):
		return "", fmt.Errorf("finds %d of the %d boxes that ONNX Runtime finds on the CPU", again, boxes)
	}
	return fmt.Sprintf("%d of %d boxes as ONNX Runtime on the CPU finds them, %.1f ms an image", again, boxes, milliseconds(took)), nil
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// matched counts the boxes of an image that are found again, each once.
func matched(expected, seen []postprocess.Detection) (count int) {
	taken := make([]bool, len(seen))
	for _, want := range expected {
		for i, got := range seen {
			if !taken[i] && got.Class == want.Class && got.IoU(want.Box) >= leastOverlap {
				taken[i] = true
				count++
				break
			}
		}
	}
	return count
}

// network builds the model's plan in a precision, runs it and compares.
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

// accelerator builds the model's plan for a DLA core, tells how many layers are on it, runs it and compares.
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
	if e, isTensorRT := n.Engine().(*tensorrt.Engine); isTensorRT {
		layers, err := e.Placement()
		if err != nil {
			return "", err
		}
		for _, layer := range layers {
			placed++
			if layer.Device == "DLA" {
				onDLA++
			}
		}
	}
	if onDLA == 0 {
		return "", fmt.Errorf("none of the plan's %d layers is on the DLA", placed)
	}
	detail, err = r.compare(ctx, n)
	return fmt.Sprintf("%d of %d layers on it: %s", onDLA, placed, detail), err
}
