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
	"slices"
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
	"github.com/edge-infer/edge-infer/engine/tensorrt"
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
	flags.StringVar(&v.reference, "reference", "", "engine to compare with, for instance onnxruntime, in fp32")
	flags.StringVar(&v.referenceModel, "reference-model", "", "ONNX file that the reference runs as it is, demo for the embedded one, instead of the same model")
	flags.StringVar(&v.plot, "plot", "", "SVG file of precision over recall, and of one engine's scores over the other's")
	v.gate.flags(flags, 0)
	config.InferenceFlags(config.Default(), flags)
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
	Version int `json:"v"`
	measured
	Pictures  int                       `json:"pictures"`
	Classes   []classResult             `json:"classes,omitempty"`
	Reference *measured                 `json:"reference,omitempty"`
	Agreement *evaluate.AgreementReport `json:"agreement,omitempty"`
	Verdict   *quantize.Verdict         `json:"verdict,omitempty"` // of --gate
	Seconds   float64                   `json:"seconds"`
}

// measured is one engine on the pictures.
type measured struct {
	Model          string           `json:"model"`
	Backend        string           `json:"backend"`
	BackendVersion string           `json:"backend_version"`
	Device         string           `json:"device"`
	Precision      engine.Precision `json:"precision"`
	Bytes          int              `json:"model_bytes"`
	Request        float64          `json:"request_p50_ms"`             // from the decoded picture to the outputs
	Inference      float64          `json:"inference_p50_ms,omitempty"` // of the network alone, where the backend measures it
	MAP50          *float64         `json:"map50,omitempty"`            // absent without labels
	MAP            *float64         `json:"map50_95,omitempty"`
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
	var referenceConfig config.Config
	if v.reference != "" { // what is wrong with it is said before the work
		if referenceConfig, err = v.referenceConfig(); err != nil {
			return nil, err
		}
	}
	started := time.Now()
	candidate, seen, labels, err := v.detect(ctx, *v.config, paths)
	if err != nil {
		return nil, err
	}
	result := &validated{Version: 1, measured: *candidate, Pictures: len(paths)}
	if dataset != nil {
		if err := dataset.Relabel(labels); err != nil {
			return nil, err
		}
		for _, class := range result.score(dataset, seen) {
			result.Classes = append(result.Classes, classResult{report.Label(labels, class.Class), class.Truths, class.AP50, class.AP})
		}
	}
	if v.reference != "" {
		reference, known, _, err := v.detect(ctx, referenceConfig, paths)
		if err != nil {
			return nil, fmt.Errorf("reference: %w", err)
		}
		result.Reference = reference
		if dataset != nil {
			reference.score(dataset, known)
		}
		if err := v.compare(result, dataset, paths, known, seen); err != nil {
			return nil, err
		}
	}
	result.Seconds = time.Since(started).Seconds()
	return result, nil
}

// referenceConfig is what the reference engine runs: the same model in FP32, or the one that is named. An engine plan stands for the model that it
// was built from.
func (v *validation) referenceConfig() (config.Config, error) {
	c := *v.config
	c.Engine.Precision = string(engine.FP32)
	if c.Engine.Backend != v.reference {
		c.Engine.Backend, c.Engine.Library = v.reference, "" // the library is another backend's
	}
	source := v.referenceModel
	if source != "" && v.reference != tensorrt.Name {
		c.Engine.Precision = string(engine.Auto) // that of the file, whose choice was deliberate
	}
	if source == "" && c.Model.Path != "" && v.reference != tensorrt.Name {
		file, err := os.ReadFile(c.Model.Path)
		if err != nil {
			return c, fmt.Errorf("model: %w", err)
		}
		if tensorrt.IsPlan(file) {
			facts, _, err := tensorrt.ReadPlan(file)
			if err != nil {
				return c, fmt.Errorf("model %s: %w", c.Model.Path, err)
			}
			source = facts.Model
			if _, err := os.Stat(source); err != nil && source != demoName {
				return c, fmt.Errorf("the model %q, from which the plan %s was built, is not here (name it with --reference-model)", source, c.Model.Path)
			}
		}
	}
	switch source {
	case "":
	case demoName:
		c.Model.Path = ""
	default:
		c.Model.Path = source
	}
	return c, nil
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
	agreement := comparer.Agreement()
	result.Agreement = &agreement
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
func (v *validation) detect(ctx context.Context, c config.Config, paths []string) (*measured, [][]postprocess.Detection, []string, error) {
	options, err := modelOptions(&c, 1, lowestScore)
	if err != nil {
		return nil, nil, nil, err
	}
	opened, err := openEngine(ctx, &c, options, v.logger, v.stderr)
	if err != nil {
		return nil, nil, nil, err
	}
	e := &stopwatch{Engine: opened}
	defer e.Close()
	model := e.Model()
	detector, err := openDetector(&c, model, lowestScore)
	if err != nil {
		return nil, nil, nil, err
	}
	bar := report.NewProgress(v.stderr, "pictures on "+model.Backend)
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
		return nil, nil, nil, err
	}
	return &measured{
		Model: model.Path, Backend: model.Backend, BackendVersion: model.BackendVersion, Device: model.Device, Precision: model.Precision,
		Bytes: len(options.Bytes), Request: milliseconds(median(e.requests)), Inference: milliseconds(median(e.networks)),
	}, seen, model.Metadata.Labels, nil
}

// stopwatch is an engine whose requests are timed.
type stopwatch struct {
	engine.Engine
	requests, networks []time.Duration
}

// Wait implements engine.Engine.
func (s *stopwatch) Wait(slot int) (*engine.Result, error) {
	result, err := s.Engine.Wait(slot)
	if err == nil {
		s.requests = append(s.requests, time.Duration(result.Timing.Done-result.Timing.Submitted))
		s.networks = append(s.networks, time.Duration(result.Timing.Inference))
	}
	return result, err
}

// median is 0 of nothing.
func median(durations []time.Duration) time.Duration {
	if len(durations) == 0 {
		return 0
	}
	slices.Sort(durations)
	return durations[len(durations)/2]
}

// score fills the mean average precisions and gives those of the classes.
func (m *measured) score(dataset *evaluate.Dataset, seen [][]postprocess.Detection) []evaluate.ClassAccuracy {
	var accuracy evaluate.Accuracy
	for i := range dataset.Pictures {
		accuracy.Add(dataset.Pictures[i].Truths, seen[i])
	}
	score := accuracy.Result()
	m.MAP50, m.MAP = &score.MAP50, &score.MAP
	return score.Classes
}

// String says what ran and how large and fast it is.
func (m *measured) String() string {
	text := fmt.Sprintf("%s on %s %s: %d bytes, p50 of a request %.3f ms", m.Model, m.Backend, m.Precision, m.Bytes, m.Request)
	if m.Inference > 0 {
		text += fmt.Sprintf(", of the network %.3f ms", m.Inference)
	}
	if m.MAP != nil {
		text += fmt.Sprintf(", mAP50 %.4f, mAP50-95 %.4f", *m.MAP50, *m.MAP)
	}
	return text
}

func (r *validated) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(table, "%d pictures in %.1f s\nmodel %s\n", r.Pictures, r.Seconds, r.measured.String())
	if r.MAP != nil {
		fmt.Fprintf(table, "class\tobjects\tAP50\tAP50-95\n")
		for _, class := range r.Classes {
			fmt.Fprintf(table, "%s\t%d\t%.4f\t%.4f\n", class.Label, class.Count, class.AP50, class.AP)
		}
	}
	if r.Reference != nil {
		fmt.Fprintf(table, "reference %s\n", r.Reference)
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
