package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
)

// lowestScore is where average precision begins to count: the curve needs the weak detections too.
const lowestScore = 0.001

func newValidate(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	v := &validation{}
	command := &cobra.Command{
		Use: "validate --data DIR", Short: "Measure a model's accuracy on labelled pictures, and against a reference engine", Args: noArguments,
		Long: `Runs the model on a directory of labelled pictures (COCO annotations.json or YOLO labels/) and prints the mean average precision as the COCO
protocol defines it. With --reference it also compares every box with what a second engine sees, which needs no labels, draws how far they
agree with --plot, and fails with --gate when that is too little. The gate counts as that of quantize and build does.

  edge-infer dataset --out /tmp/parts --count 1000 --seed 99 && edge-infer validate --data /tmp/parts
  edge-infer validate --model yolo11n.onnx --engine tensorrt --precision int8 --data pictures/ --reference onnxruntime
  edge-infer validate --model demo-int8.onnx --data /tmp/parts --reference onnxruntime --reference-model demo --gate 0.98 --plot int8.svg`,
		RunE: func(command *cobra.Command, _ []string) error {
			if v.data == "" {
				return usagef("validate needs --data DIR")
			}
			if err := v.check(); err != nil {
				return err
			}
			f.cameras = []string{v.data}
			c, err := f.configuration(command.Flags())
			if err != nil {
				return err
			}
			v.config, v.logger, v.stderr = c, newLogger(stderr, c.Log), stderr
			result, err := v.run(command.Context())
			if err != nil {
				return err
			}
			if f.json {
				err = json.NewEncoder(stdout).Encode(result)
			} else {
				err = result.print(stdout)
			}
			return errors.Join(err, result.refusal())
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&v.data, "data", "", "directory of pictures with labels")
	flags.StringVar(&v.reference, "reference", "", "engine to compare with, for instance onnxruntime; always fp32")
	flags.StringVar(&v.referenceModel, "reference-model", "", "ONNX file that the reference runs, demo for the embedded one, instead of the same model")
	flags.StringVar(&v.plot, "plot", "", "SVG file of precision over recall, and of one engine's scores over the other's")
	v.gate.flags(flags, 0)
	config.Flags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.BoolVar(&f.json, "json", false, "print one JSON document")
	return command
}

// validation measures one model on one directory.
type validation struct {
	data, reference, referenceModel, plot string
	gate                                  gateLimits
	config                                *config.Config
	logger                                *slog.Logger
	stderr                                io.Writer
}

// check finds what is wrong with the command line alone.
func (v *validation) check() error {
	if v.reference == "" && (v.referenceModel != "" || v.plot != "" || !v.gate.off()) {
		return usagef("--reference-model, --plot and --gate compare with --reference ENGINE")
	}
	if v.plot != "" {
		if err := checkOutput(v.plot, ""); err != nil {
			return err
		}
	}
	return v.gate.check()
}

// validated is what validate prints.
type validated struct {
	Version   int                       `json:"v"`
	Model     string                    `json:"model"`
	Backend   string                    `json:"backend"`
	Precision engine.Precision          `json:"precision"`
	Pictures  int                       `json:"pictures"`
	MAP50     *float64                  `json:"map50,omitempty"` // absent without labels
	MAP       *float64                  `json:"map50_95,omitempty"`
	Classes   []classResult             `json:"classes,omitempty"`
	Agreement *evaluate.AgreementReport `json:"agreement,omitempty"`
	Verdict   *quantize.Verdict         `json:"verdict,omitempty"` // of --gate
	Seconds   float64                   `json:"seconds"`
}

type classResult struct {
	Label string  `json:"label"`
	Count int     `json:"objects"`
	AP50  float64 `json:"ap50"`
	AP    float64 `json:"ap50_95"`
}

func (v *validation) run(ctx context.Context) (*validated, error) {
	dataset, err := evaluate.ReadDataset(v.data)
	var paths []string
	switch {
	case errors.Is(err, evaluate.ErrNoLabels) && v.reference != "":
		if paths, err = expand(v.data); err != nil {
			return nil, err
		}
		dataset = nil
	case err != nil:
		return nil, err
	default:
		for i := range dataset.Pictures {
			paths = append(paths, dataset.Pictures[i].Path)
		}
	}
	started := time.Now()
	seen, model, err := v.detect(ctx, *v.config, paths)
	if err != nil {
		return nil, err
	}
	result := &validated{Version: 1, Model: model.Path, Backend: model.Backend, Precision: model.Precision, Pictures: len(paths)}
	if dataset != nil {
		if err := dataset.Relabel(model.Metadata.Labels); err != nil {
			return nil, err
		}
		result.score(dataset, seen, model.Metadata.Labels)
	}
	if v.reference != "" {
		c := *v.config
		c.Engine.Backend, c.Engine.Precision = v.reference, string(engine.FP32)
		switch v.referenceModel {
		case "":
		case demoName:
			c.Model.Path = ""
		default:
			c.Model.Path = v.referenceModel
		}
		reference, _, err := v.detect(ctx, c, paths)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		confidence := float32(v.config.Detect.Confidence)
		agreement := evaluate.Agreement{Threshold: confidence, Margin: 0.01}
		for i := range paths {
			agreement.Add(above(confidence, reference[i]), above(confidence, seen[i]))
		}
		report := agreement.Report()
		result.Agreement = &report
		if err := v.compare(result, dataset, paths, reference, seen); err != nil {
			return nil, err
		}
	}
	result.Seconds = time.Since(started).Seconds()
	return result, nil
}

// compare judges and draws both engines. The dataset may be nil.
func (v *validation) compare(result *validated, dataset *evaluate.Dataset, paths []string, reference, seen [][]postprocess.Detection) error {
	comparer := &accuracy.Comparer{Confidence: float32(v.config.Detect.Confidence)}
	if dataset != nil {
		for i := range dataset.Pictures {
			comparer.Truths = append(comparer.Truths, dataset.Pictures[i].Truths)
		}
	}
	for i := range paths {
		comparer.Add(quantize.Reference, i, reference[i])
		comparer.Add(quantize.Candidate, i, seen[i])
	}
	if !v.gate.off() {
		gate := quantize.Gate{
			MatchRate: v.gate.matchRate, MaxLoss: v.gate.maxLoss, Samples: &quantize.Pictures{Files: paths}, Comparer: comparer,
		}
		var err error
		if result.Verdict, err = gate.Decide(nil); err != nil {
			return err
		}
	}
	if v.plot == "" {
		return nil
	}
	var drawing bytes.Buffer
	title := fmt.Sprintf("%s %s against %s", result.Backend, result.Precision, v.reference)
	if err := quantize.WritePlot(&drawing, title, comparer.Curves(), comparer.Scores()); err != nil {
		return err
	}
	if err := os.WriteFile(v.plot, drawing.Bytes(), 0o644); err != nil {
		return fmt.Errorf("plot: %w", err)
	}
	return nil
}

// refusal is the gate's no.
func (r *validated) refusal() error {
	if r.Verdict == nil || r.Verdict.Passed {
		return nil
	}
	return fmt.Errorf("the gate refused model %s: %s", r.Model, strings.Join(r.Verdict.Reasons, ", "))
}

// detect runs one engine over the pictures and keeps every detection from lowestScore on, by picture.
func (v *validation) detect(ctx context.Context, c config.Config, paths []string) ([][]postprocess.Detection, engine.Model, error) {
	options, err := modelOptions(&c, 1, lowestScore)
	if err != nil {
		return nil, engine.Model{}, err
	}
	e, err := openEngine(ctx, &c, options, v.logger, v.stderr)
	if err != nil {
		return nil, engine.Model{}, err
	}
	defer e.Close()
	detector, err := openDetector(&c, e.Model(), lowestScore)
	if err != nil {
		return nil, engine.Model{}, err
	}
	bar := report.NewProgress(v.stderr, "pictures on "+e.Model().Backend)
	defer bar.Close()
	seen := make([][]postprocess.Detection, 0, len(paths))
	in := &inference{engine: e, detector: detector, each: func(_ string, number int, _ *capture.Frame, detections []postprocess.Detection) error {
		if number > 0 {
			return errors.New("is not a single picture")
		}
		seen = append(seen, append([]postprocess.Detection(nil), detections...))
		bar.Update(len(seen), len(paths))
		return nil
	}}
	if err := in.run(ctx, paths); err != nil {
		return nil, engine.Model{}, err
	}
	return seen, e.Model(), nil
}

func (r *validated) score(dataset *evaluate.Dataset, seen [][]postprocess.Detection, labels []string) {
	var accuracy evaluate.Accuracy
	for i := range dataset.Pictures {
		accuracy.Add(dataset.Pictures[i].Truths, seen[i])
	}
	score := accuracy.Result()
	r.MAP50, r.MAP = &score.MAP50, &score.MAP
	for _, class := range score.Classes {
		r.Classes = append(r.Classes, classResult{report.Label(labels, class.Class), class.Truths, class.AP50, class.AP})
	}
}

func above(threshold float32, all []postprocess.Detection) []postprocess.Detection {
	kept := all[:0:0]
	for _, d := range all {
		if d.Score >= threshold {
			kept = append(kept, d)
		}
	}
	return kept
}

func (r *validated) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "model %s on %s %s, %d pictures in %.1f s\n", r.Model, r.Backend, r.Precision, r.Pictures, r.Seconds)
	if r.MAP != nil {
		fmt.Fprintf(table, "class\tobjects\tAP50\tAP50-95\n")
		for _, class := range r.Classes {
			fmt.Fprintf(table, "%s\t%d\t%.4f\t%.4f\n", class.Label, class.Count, class.AP50, class.AP)
		}
		fmt.Fprintf(table, "all\t\t%.4f\t%.4f\n", *r.MAP50, *r.MAP)
	}
	if a := r.Agreement; a != nil {
		fmt.Fprintf(table, "against the reference: match rate %.4f, %d matched, %d flipped class, %d missing, %d extra, score drift mean %.4f max %.4f\n",
			a.MatchRate, a.Matched, a.Flipped, a.Missing, a.Extra, a.MeanDrift, a.MaxDrift)
	}
	if r.Verdict != nil {
		fmt.Fprintf(table, "gate %s\n", verdictText(r.Verdict))
	}
	return table.Flush()
}
