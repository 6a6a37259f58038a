package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// verdictSuffix is what the gate's verdict on a file is called beside it.
const verdictSuffix = ".verdict.json"

// gateLimits are what a model must keep of its original to pass.
type gateLimits struct {
	matchRate, maxLoss float64
}

// flags are the limits' place on a command line; rate is the match rate where none is given.
func (l *gateLimits) flags(flags *pflag.FlagSet, rate float64) {
	flags.Float64Var(&l.matchRate, "gate", rate, "least match rate with the FP32 reference, 0 to go without the gate")
	flags.Float64Var(&l.maxLoss, "max-loss", quantize.DefaultMaxLoss, "largest loss of mAP50-95 that the gate lets pass, where there are labels")
}

// off reports that nothing is judged.
func (l *gateLimits) off() bool { return l.matchRate == 0 }

func (l *gateLimits) check() error {
	switch {
	case !(l.matchRate >= 0 && l.matchRate <= 1):
		return usagef("--gate %v must be a match rate from 0 to 1; 0 goes without the gate", l.matchRate)
	case !(l.maxLoss > 0 && l.maxLoss <= 1):
		return usagef("--max-loss %v must be over 0 and at most 1", l.maxLoss)
	}
	return nil
}

// gatekeeper compares what was made of a model with the model itself, which runs in FP32 on ONNX Runtime's CPU provider: the same numbers on
// every machine.
type gatekeeper struct {
	quantize.Gate
	comparer accuracy.Comparer
	pictures quantize.Pictures
	reader   accuracy.Reader
	stderr   io.Writer
}

// openOnCPU opens a model of that name for up to batch pictures at a time.
func openOnCPU(name string, model []byte, batch int) (engine.Engine, error) {
	return onnxruntime.Open(engine.Options{Path: name, Bytes: model, Provider: engine.CPU, Slots: 1, MaxBatch: batch})
}

// newGatekeeper judges on those pictures.
func newGatekeeper(files []string, limits gateLimits, stderr io.Writer) *gatekeeper {
	g := &gatekeeper{pictures: quantize.Pictures{Files: files}, stderr: stderr}
	g.pictures.Decode = g.reader.Read
	g.Gate = quantize.Gate{MatchRate: limits.matchRate, MaxLoss: limits.maxLoss, Samples: &g.pictures, Comparer: &g.comparer}
	return g
}

// readHeldOut lists the pictures of a directory, with their labels where it has some.
func readHeldOut(dir string) (files []string, dataset *evaluate.Dataset, err error) {
	dataset, err = evaluate.ReadDataset(dir)
	if errors.Is(err, evaluate.ErrNoLabels) {
		files, err = quantize.ChoosePictures(dir, 0, 0)
		return files, nil, err
	}
	if err != nil {
		return nil, nil, err
	}
	for i := range dataset.Pictures {
		files = append(files, dataset.Pictures[i].Path)
	}
	return files, dataset, nil
}

// refer runs the model itself over the pictures. The dataset may be nil.
func (g *gatekeeper) refer(ctx context.Context, options engine.Options, dataset *evaluate.Dataset) error {
	e, err := openOnCPU(options.Path, options.Bytes, 1)
	if err != nil {
		return err
	}
	defer e.Close()
	model := e.Model()
	model.Metadata = model.Metadata.Override(options.Metadata)
	if err := g.comparer.Open(model); err != nil {
		return fmt.Errorf("model %s: %w (the gate compares detectors; --gate 0 goes without it)", options.Path, err)
	}
	if dataset != nil {
		if err := dataset.Relabel(model.Metadata.Labels); err != nil {
			return err
		}
		for i := range dataset.Pictures {
			g.comparer.Truths = append(g.comparer.Truths, dataset.Pictures[i].Truths)
		}
	}
	defer g.show("held-out pictures in FP32")()
	return g.Refer(ctx, e)
}

// judge closes the candidate.
func (g *gatekeeper) judge(ctx context.Context, candidate engine.Engine) (*quantize.Verdict, error) {
	defer candidate.Close()
	defer g.show("held-out pictures judged")()
	return g.Judge(ctx, candidate)
}

// show counts the gate's pictures on standard error until the answer is called.
func (g *gatekeeper) show(what string) (done func()) {
	bar := report.NewProgress(g.stderr, what)
	g.Progress = bar.Update
	return bar.Close
}

// Close frees the pictures' memory.
func (g *gatekeeper) Close() { g.reader.Close() }

// saveVerdict keeps a verdict beside the file that it is about; without one it removes that of an earlier file of the same name.
func saveVerdict(v *quantize.Verdict, file string) error {
	if v != nil {
		return v.Save(file + verdictSuffix)
	}
	if err := os.Remove(file + verdictSuffix); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("remove the verdict on an earlier file: %w", err)
	}
	return nil
}

// verdictText says in one line what the gate found.
func verdictText(v *quantize.Verdict) string {
	c := &v.Comparison
	text := "passed"
	if !v.Passed {
		text = "refused: " + strings.Join(v.Reasons, ", ")
	}
	text += fmt.Sprintf("; match rate %.4f of %d boxes in %d pictures, %d flipped class, score drift mean %.4f max %.4f",
		c.MatchRate, c.Reference, c.Pictures, c.Flipped, c.MeanDrift, c.MaxDrift)
	if c.ReferenceAccuracy != nil && c.CandidateAccuracy != nil {
		text += fmt.Sprintf("; mAP50 %.4f of %.4f, mAP50-95 %.4f of %.4f",
			c.CandidateAccuracy.MAP50, c.ReferenceAccuracy.MAP50, c.CandidateAccuracy.MAP, c.ReferenceAccuracy.MAP)
	}
	return text
}
