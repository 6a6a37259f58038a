package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"time"

	"gocv.io/x/gocv"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/labelled"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/internal/boundedfile"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// margin is the distance from the confidence within which a box may be missing on one side: scores of two trainings differ more than those
// of two precisions.
const margin = 0.1

// Serve is the process: it reads a Request with its images, runs both models one after the other, and writes the Report, or why
// there is none.
func Serve(ctx context.Context, in io.Reader, out io.Writer) error {
	var r Request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, payload []byte, send func(any)) error {
		report, err := r.compare(ctx, payload, func(text string) { send(answer{Note: text}) })
		if err != nil {
			send(answer{Error: err.Error()})
		} else {
			send(answer{Report: report})
		}
		return nil
	})
}

// side is what one model has found.
type side struct {
	model predict.Model
	found [][]postprocess.Detection // by image
	sizes []engine.Size             // by image
	took  []time.Duration
}

func (r *Request) compare(ctx context.Context, payload []byte, note func(string)) (*Report, error) {
	images, err := r.split(payload)
	if err != nil {
		return nil, err
	}
	set, err := r.labelled()
	if err != nil {
		return nil, err
	}
	own := len(images)
	for i := range set.Images {
		images = append(images, set.Images[i].Data)
	}
	running, err := r.run(ctx, "running model", r.Running, images, note)
	if err != nil {
		return nil, err
	}
	candidate, err := r.run(ctx, "new model", r.Candidate, images, note)
	if err != nil {
		return nil, err
	}
	report := &Report{
		Running: shortest(running.took), Candidate: shortest(candidate.took), Unsuitable: Unsuitable(&running.model, &candidate.model),
	}
	agreement := evaluate.Agreement{Threshold: r.Confidence, Margin: margin}
	for i := range own {
		agreement.Add(r.reported(running, i), r.reported(candidate, i))
	}
	report.Agreement = agreement.Report()
	if len(set.Images) > 0 && report.Unsuitable == "" {
		report.Labelled, err = measure(set, running, candidate, own)
	}
	return report, err
}

// labelled reads the labelled images of the bundle.
func (r *Request) labelled() (*labelled.Set, error) {
	if r.Labelled == "" {
		return &labelled.Set{}, nil
	}
	data, err := boundedfile.Read(r.Labelled, 2*labelled.MaxBytes)
	if err != nil {
		return nil, fmt.Errorf("labelled images: %w", err)
	}
	set, err := labelled.Parse(data)
	if err != nil {
		return nil, fmt.Errorf("labelled images: %w", err)
	}
	return set, nil
}

// measure measures both models on labelled images, which are those from first on.
func measure(set *labelled.Set, running, candidate *side, first int) (*Labelled, error) {
	if task := running.model.Recognised.Task; task != engine.Detect {
		return nil, fmt.Errorf("labelled images measure detectors, this is a network for %s", task)
	}
	truths, err := set.Truths(running.model.Metadata.Labels)
	if err != nil {
		return nil, fmt.Errorf("labelled images: %w", err)
	}
	var before, after evaluate.Accuracy
	for i := range truths {
		stated, seen := &set.Images[i], running.sizes[first+i]
		if seen.Width != stated.Width || seen.Height != stated.Height {
			return nil, fmt.Errorf("labelled image %d has %dx%d pixels, its labels are for %dx%d", i+1, seen.Width, seen.Height, stated.Width,
				stated.Height)
		}
		before.Add(truths[i], running.found[first+i])
		after.Add(truths[i], candidate.found[first+i])
	}
	return &Labelled{Images: len(truths), Running: before.Result().MAP, Candidate: after.Result().MAP}, nil
}

// split returns the images in the payload.
func (r *Request) split(payload []byte) (images [][]byte, err error) {
	for _, size := range r.Images {
		if size < 1 || size > len(payload) {
			return nil, fmt.Errorf("an image of %d bytes, %d are left", size, len(payload))
		}
		images = append(images, payload[:size])
		payload = payload[size:]
	}
	return images, nil
}

// run opens a model and runs it over the images.
func (r *Request) run(ctx context.Context, what string, files Model, images [][]byte, note func(string)) (*side, error) {
	note("opening the " + what)
	predictor, err := r.open(ctx, files, what, note)
	if err != nil {
		return nil, fmt.Errorf("the %s cannot be opened: %w", what, err)
	}
	s := &side{model: predictor.Model()}
	if s.model.Recognised.Task.Maps() {
		err = fmt.Errorf("networks for %s are not compared by images (bundle.agreement: 0 goes without)", s.model.Recognised.Task)
	}
	for i := 0; err == nil && i < len(images); i++ {
		note(fmt.Sprintf("%s: image %d of %d", what, i+1, len(images)))
		err = s.infer(predictor, images[i])
	}
	return s, errors.Join(err, predictor.Close())
}

// open opens a model as the running one was opened.
func (r *Request) open(ctx context.Context, files Model, what string, note func(string)) (predict.Predictor, error) {
	options := network.GroupOptions(&r.Group, slog.New(slog.DiscardHandler))
	options.Model = files.Path
	if files.Labels != "" {
		options.LabelsFile = files.Labels
	}
	options.Backend = r.Backend
	options.Device, options.Threads = r.Device, r.Threads
	options.MaxBatch, options.Frugal = r.MaxBatch, r.Frugal
	options.ProbeSizes = func() []engine.Size { return r.Sources }
	steps := func(string) progress.Step { return noted{note} }
	options.Build = network.PlanBuilder{Task: "building the engine plan of the " + what, Progress: steps}.Build
	builder := network.PredictorBuilder{Inference: r.Group.Network.Inference}
	return builder.Open(ctx, options)
}

// noted passes the progress of a build on.
type noted struct{ note func(string) }

func (noted) Count(int, int)     {}
func (n noted) Note(text string) { n.note(text) }
func (noted) Close()             {}

// infer runs the model on one image.
func (s *side) infer(p predict.Predictor, jpeg []byte) error {
	decoded, err := gocv.IMDecode(jpeg, gocv.IMReadColor)
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	defer decoded.Close()
	pixels, err := decoded.DataPtrUint8()
	if err != nil {
		return fmt.Errorf("image: %w", err)
	}
	image := engine.Image{Data: pixels, Width: decoded.Cols(), Height: decoded.Rows(), Stride: decoded.Step(), Format: engine.BGR}
	err = p.Submit(0, []engine.Image{image})
	if err != nil {
		return err
	}
	result, err := p.Wait(0)
	if err == nil {
		err = result.Results[0].Err
	}
	if err == nil && result.Contradiction != nil {
		err = result.Contradiction
	}
	if err != nil {
		return err
	}
	s.sizes = append(s.sizes, engine.Size{Width: image.Width, Height: image.Height})
	s.found = append(s.found, slices.Clone(result.Results[0].Detections))
	s.took = append(s.took, time.Duration(result.Timing.Inference))
	return nil
}

// reported returns what is compared of an image: boxes from the confidence on, or the best class of a network for whole images.
func (r *Request) reported(s *side, image int) (shown []postprocess.Detection) {
	all := s.found[image]
	if s.model.Recognised.Task == engine.Classify {
		return all[:min(1, len(all))]
	}
	for i := range all {
		if all[i].Score >= r.Confidence {
			shown = append(shown, all[i])
		}
	}
	return shown
}

func shortest(times []time.Duration) time.Duration {
	if len(times) == 0 {
		return 0
	}
	return slices.Min(times)
}
