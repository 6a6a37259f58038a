package accuracy

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/head"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Limits are the requirements of the gate.
type Limits struct {
	MatchRate float64 // without labels; 0 disables the gate
	MaxLoss   float64 // of mAP50-95, with labels

	given *pflag.FlagSet
}

// Flags adds the flags of the limits; rate is the default match rate.
func (l *Limits) Flags(flags *pflag.FlagSet, rate float64) {
	l.given = flags
	flags.Float64Var(&l.MatchRate, "gate", rate,
		"least match rate with the FP32 reference on images without labels, 0 to go without the gate")
	flags.Float64Var(&l.MaxLoss, "max-loss", quantize.DefaultMaxLoss,
		"largest accepted loss of mAP50-95; the upper end of its 95 % interval may be twice that")
}

// wanted enables the gate if only a loss is given.
func (l *Limits) wanted() {
	if l.given != nil && l.given.Changed("max-loss") && !l.given.Changed("gate") {
		l.MatchRate = quantize.DefaultMatchRate
	}
}

// Off reports whether the gate is disabled.
func (l *Limits) Off() bool { return l.MatchRate == 0 }

// Check validates the limits.
func (l *Limits) Check() error {
	switch {
	case !(l.MatchRate >= 0 && l.MatchRate <= 1):
		return config.Usagef("--gate %v must be a match rate from 0 to 1; 0 disables the gate", l.MatchRate)
	case !(l.MaxLoss > 0 && l.MaxLoss <= 1):
		return config.Usagef("--max-loss %v must be over 0 and at most 1", l.MaxLoss)
	}
	return nil
}

// Gate compares a converted model with the original, which runs in FP32 on ONNX Runtime's CPU provider and gives the same results on every
// machine. It must be closed.
type Gate struct {
	// Layout sets the output layout of both models; empty: recognise it.
	Layout head.Layout

	limits   Limits
	comparer Comparer
	images   quantize.Images
	reader   media.Reader
	progress progress.Reporter
}

// NewGate returns a gate for a set of images.
func NewGate(files []string, limits Limits, reporter progress.Reporter) *Gate {
	g := &Gate{limits: limits, images: quantize.Images{Files: files}, progress: reporter}
	g.images.Decode = g.reader.Read
	return g
}

// OnCPU opens a model on ONNX Runtime's CPU provider with a maximum batch.
func OnCPU(name string, model []byte, batch int) (engine.Engine, error) {
	return onnxruntime.Open(engine.Options{Path: name, Bytes: model, Provider: engine.CPU, Slots: 1, MaxBatch: batch})
}

// Refer runs the original over the images. The dataset may be nil.
func (g *Gate) Refer(ctx context.Context, options engine.Options, dataset *evaluate.Dataset) error {
	e, err := onnxruntime.Open(engine.Options{
		Path: options.Path, Bytes: options.Bytes, Metadata: options.Metadata, Provider: engine.CPU, Slots: 1, MaxBatch: 1,
	})
	if err != nil {
		return err
	}
	reference, err := g.wrap(e)
	if err != nil {
		return fmt.Errorf("%w (the gate compares detectors; --gate 0 disables it)", err)
	}
	defer reference.Close()
	switch task := reference.Model().Recognised.Task; {
	case task.Maps():
		return fmt.Errorf("the gate compares detections, this network is for %s (--gate 0 disables it)", task)
	case task == engine.Classify:
		g.comparer.Reported = postprocess.EvaluationMinScore // the best class counts whatever its score
	}
	if dataset != nil {
		if err := dataset.Relabel(reference.Model().Metadata.Labels, nil); err != nil {
			return err
		}
		for i := range dataset.Images {
			g.comparer.Truths = append(g.comparer.Truths, dataset.Images[i].Truths)
		}
	}
	_, err = g.run(ctx, Reference, reference, "held-out images in FP32")
	return err
}

// wrap adds decoding by the published convention to an engine; on an error it closes the engine.
func (g *Gate) wrap(e engine.Engine) (*predict.Network, error) {
	decoding := predict.Decoding{Layout: g.Layout}
	convention := published()
	convention.decode(&decoding)
	n, err := predict.Wrap(e, decoding)
	if err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return n, nil
}

// Judge compares a candidate and closes it.
func (g *Gate) Judge(ctx context.Context, candidate engine.Engine) (*quantize.Verdict, error) {
	judged, err := g.wrap(candidate)
	if err != nil {
		return nil, err
	}
	defer judged.Close()
	skipped, err := g.run(ctx, Candidate, judged, "held-out images judged")
	if err != nil {
		return nil, err
	}
	return quantize.NewVerdict(g.comparer.Compare(), g.limits.MatchRate, g.limits.MaxLoss, &g.images, skipped)
}

// NetworkTime returns the median inference time per image of the last candidate in milliseconds, 0 if unknown.
func (g *Gate) NetworkTime() float64 { return milliseconds(median(g.comparer.times)) }

// run runs one side over the images; what describes it in the progress.
func (g *Gate) run(ctx context.Context, side Side, p predict.Predictor, what string) (skipped []string, err error) {
	step := g.progress.Begin(what)
	defer step.Close()
	skipped, err = g.comparer.Run(ctx, side, p, &g.images, step.Count)
	if err != nil {
		return nil, fmt.Errorf("gate: %s: %w", what, err)
	}
	return skipped, nil
}

// Close frees the images' memory.
func (g *Gate) Close() { g.reader.Close() }

// ReadHeldOut lists the images of a directory or of a label file, with their labels if there are any. It logs what is left out of them.
func ReadHeldOut(dir string, logger *slog.Logger) (files []string, dataset *evaluate.Dataset, err error) {
	dataset, err = evaluate.ReadDataset(dir, "")
	if errors.Is(err, evaluate.ErrNoLabels) {
		files, err = quantize.ChooseImages(dir, 0, 0)
		return files, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	logIgnored(dataset, logger)
	for i := range dataset.Images {
		files = append(files, dataset.Images[i].Path)
	}
	return files, dataset, nil
}

// logIgnored logs what a dataset leaves out because it cannot be used.
func logIgnored(dataset *evaluate.Dataset, logger *slog.Logger) {
	for _, text := range dataset.Ignored {
		logger.Warn("part of the dataset cannot be used and is left out", "ignored", text)
	}
}
