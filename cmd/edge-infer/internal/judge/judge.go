// Package judge compares a new model with the one that runs, on images of the device's own cameras. Both run in a process of their own, so
// that a model that crashes, hangs or takes too much memory does no harm.
package judge

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Command is the hidden command of the process; Serve is its body.
const Command = "judge-model"

// Model names the files of a model.
type Model struct {
	Path   string `json:"path"`
	Labels string `json:"labels,omitempty"` // empty for those in the model, or configured ones
}

// Request describes a comparison.
type Request struct {
	// Group has the settings of the network; its model is replaced by Running and by Candidate. Its cameras are not used.
	Group     site.Group `json:"group"`
	Running   Model      `json:"running"`
	Candidate Model      `json:"candidate"`
	// Confidence is the score from which boxes are compared.
	Confidence float32 `json:"confidence"`

	// How the running model was opened: the same backend and options show whether the candidate fits, and make the plan that it needs.
	Backend  string        `json:"backend"`
	Device   int           `json:"device"`
	Threads  int           `json:"threads"`
	MaxBatch int           `json:"max_batch"`
	Frugal   bool          `json:"frugal"`
	Sources  []engine.Size `json:"sources,omitempty"` // sizes of the cameras' images

	// Labelled is the file of labelled images in the candidate's bundle, empty for none; see package labelled.
	Labelled string `json:"labelled,omitempty"`

	Images []int `json:"images"` // bytes of each JPEG; set by Judge.Run
}

// Report is the result of a comparison.
type Report struct {
	Agreement evaluate.AgreementReport `json:"agreement"`
	// Running and Candidate are the shortest durations of a request with one image: other work on the machine lengthens them.
	Running   time.Duration `json:"running"`
	Candidate time.Duration `json:"candidate"`
	// Labelled is how both do on the labelled images of the bundle, nil without.
	Labelled *Labelled `json:"labelled,omitempty"`
	// Unsuitable is why the candidate cannot take the place of the running model, whatever it finds; empty if it can.
	Unsuitable string `json:"unsuitable,omitempty"`
}

// Labelled is the accuracy of both models on labelled images: mAP50-95 over the boxes that are reported.
type Labelled struct {
	Images    int     `json:"images"`
	Running   float64 `json:"running"`
	Candidate float64 `json:"candidate"`
}

// Judge runs comparisons.
type Judge struct {
	Program []string // this program with Command; nil for the one that runs
	// Timeout bounds a comparison, in which a plan may be built.
	Timeout time.Duration
}

// answer is a message of the process: its progress, and at the end a Report or why there is none.
type answer struct {
	Note   string  `json:"note,omitempty"`
	Report *Report `json:"report,omitempty"`
	Error  string  `json:"error,omitempty"`
}

// Run compares the models on JPEGs. note receives the progress.
func (j *Judge) Run(ctx context.Context, r Request, images [][]byte, note func(string)) (*Report, error) {
	r.Group.Cameras = nil // their addresses may contain passwords
	for _, image := range images {
		r.Images = append(r.Images, len(image))
	}
	var report *Report
	var failure error
	process := isolate.Process{Program: j.Program, Timeout: j.Timeout}
	if process.Program == nil {
		program, err := os.Executable()
		if err != nil {
			return nil, err
		}
		process.Program = []string{program, Command}
	}
	err := process.Run(ctx, &r, slices.Concat(images...), func(line json.RawMessage) {
		var a answer
		if json.Unmarshal(line, &a) != nil {
			return
		}
		switch {
		case a.Error != "":
			failure = errors.New(a.Error)
		case a.Report != nil:
			report = a.Report
		default:
			note(a.Note)
		}
	})
	var death *isolate.Death
	switch {
	case errors.As(err, &death):
		return nil, fmt.Errorf("the process that judges it %w", err)
	case err != nil:
		return nil, err
	case failure != nil:
		return nil, failure
	case report == nil:
		return nil, errors.New("the process that judges it has given no answer")
	}
	return report, nil
}

// Unsuitable returns why a model cannot take the place of another one while cameras run: zones, filters, counts and entities refer to the
// classes and keypoints of a model. It is empty if it can.
func Unsuitable(running, candidate *predict.Model) string {
	one, other := running.Recognised, candidate.Recognised
	switch {
	case one.Task != other.Task:
		return fmt.Sprintf("it is a network for %s, not for %s", other.Task, one.Task)
	case !slices.Equal(running.Metadata.Labels, candidate.Metadata.Labels):
		return "it has other class names, " + difference(running.Metadata.Labels, candidate.Metadata.Labels)
	case !slices.Equal(one.KeypointNames(), other.KeypointNames()):
		return "it has other keypoints"
	}
	return ""
}

// difference names the first class that differs.
func difference(running, candidate []string) string {
	for i := range running {
		if i < len(candidate) && running[i] != candidate[i] {
			return fmt.Sprintf("%q in the place of %q", candidate[i], running[i])
		}
	}
	return fmt.Sprintf("%d instead of %d", len(candidate), len(running))
}
