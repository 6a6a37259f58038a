package predict

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// Description describes a model: inputs, preprocessing, outputs and how they are decoded.
type Description struct {
	Model          string           `json:"model"`
	Backend        string           `json:"backend"`
	BackendVersion string           `json:"backend_version"`
	Device         string           `json:"device"`
	Precision      engine.Precision `json:"precision"`
	Reason         string           `json:"reason"` // of the choice of the backend
	Inputs         []Port           `json:"inputs"`
	Outputs        []Port           `json:"outputs"`
	// Preprocessing describes the preprocessing of an image as engine.Preprocess does; empty for a model without image input.
	Preprocessing string `json:"preprocessing,omitempty"`
	MaxBatch      int    `json:"max_batch"`
	// Task and Labels are those of the file or the settings; absent where neither specifies them.
	Task   engine.Task `json:"task,omitempty"`
	Labels []string    `json:"labels,omitempty"`
	// Head is the recognised head, and why; nil if the outputs were not recognised, with the Problem.
	Head    *head.Recognition `json:"head,omitempty"`
	Problem string            `json:"problem,omitempty"`
	// KeypointNamesAssumed is set if the file has no keypoint names and COCO's are used because the number fits.
	KeypointNamesAssumed bool `json:"keypoint_names_presumed,omitempty"`
	// FilteredOnDevice is set if only boxes above the minimum score are copied from the device.
	FilteredOnDevice bool `json:"on_device"`
}

// Port is an input or output of a model. A size that may vary is -1.
type Port struct {
	Name  string  `json:"name"`
	Type  string  `json:"type"`
	Shape []int64 `json:"shape"`
}

func ports(tensors []engine.TensorInfo) []Port {
	all := make([]Port, len(tensors))
	for i, t := range tensors {
		all[i] = Port{t.Name, t.Type.String(), append([]int64{}, t.Shape...)}
	}
	return all
}

// Describe describes the model of an open predictor.
func Describe(m Model) Description {
	d := describe(&m.Model)
	d.recognise(&m.Recognised)
	return d
}

func describe(m *engine.Model) Description {
	d := Description{
		Model: m.Path, Backend: m.Backend, BackendVersion: m.BackendVersion, Device: m.Device, Precision: m.Precision, Reason: m.Reason,
		Inputs: ports(m.Inputs), Outputs: ports(m.Outputs), MaxBatch: m.MaxBatch, Task: m.Metadata.Task, Labels: m.Metadata.Labels,
		FilteredOnDevice: m.Filter != nil, KeypointNamesAssumed: m.Metadata.KeypointNames == nil,
	}
	if p := m.Image; p != nil {
		d.Preprocessing = fmt.Sprintf("%dx%d: %s", p.Width, p.Height, p.Preprocess)
		if m.Metadata.Presumed != "" {
			d.Preprocessing += fmt.Sprintf(" (that of %s: neither the file nor a setting specifies it)", m.Metadata.Presumed)
		}
		if in := m.Inputs[p.Index]; sizeOpen(in) {
			d.Preprocessing += " (the model leaves the size open: run, infer and validate choose it by their images, --imgsz sets it)"
		}
		if p.Assumed {
			d.Preprocessing += " (assumed: neither the file nor a setting specifies it)"
		}
	}
	return d
}

// Inspect opens a model as Open does and describes it. A model whose outputs are not recognised is described with the Problem; the error is
// that of opening it.
func Inspect(ctx context.Context, o Options) (d Description, err error) {
	if err := o.Load(); err != nil {
		return d, err
	}
	o.Filter = o.Decoding.Filter
	e, err := o.open(ctx)
	if err != nil {
		return d, err
	}
	if e, err = o.reopenPreset(ctx, e); err != nil {
		return d, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	model := e.Model()
	if err := o.checkSize(model); err != nil {
		return d, err
	}
	d = describe(&model)
	decoder, refusal := o.Decoding.open(&model)
	if refusal != nil {
		d.Problem = strings.TrimPrefix(refusal.Error(), "model "+model.Path+": ")
		return d, nil
	}
	r := decoder.Recognised()
	d.recognise(&r)
	return d, nil
}

// recognise sets the recognised head.
func (d *Description) recognise(r *head.Recognition) {
	d.Head = r
	if r.Task != engine.Read {
		d.Labels = distinctLabels(d.Labels)
	}
	d.KeypointNamesAssumed = d.KeypointNamesAssumed && r.Keypoints != nil && r.Task == engine.Pose // faces are named by their layout
}

// String formats the description as text.
func (d Description) String() string {
	var text strings.Builder
	line := func(name, format string, arguments ...any) {
		fmt.Fprintf(&text, "%-14s%s\n", name, fmt.Sprintf(format, arguments...))
	}
	line("model", "%s in %s, batches of up to %d", d.Model, d.Precision, d.MaxBatch)
	line("backend", "%s %s on %s", d.Backend, d.BackendVersion, d.Device)
	line("because", "%s", d.Reason)
	for _, p := range d.Inputs {
		line("input", "%s %s %v", p.Name, p.Type, p.Shape)
	}
	if d.Preprocessing != "" {
		line("image", "%s", d.Preprocessing)
	}
	for _, p := range d.Outputs {
		line("output", "%s %s %v", p.Name, p.Type, p.Shape)
	}
	if d.Head != nil {
		line("head", "%s, %s: %s", d.Head.Layout, d.Head.Form, d.Head.Networks)
		line("evidence", "%s", d.Head.Evidence)
		line("gives", "%s", d.Head.Gives)
	} else {
		line("problem", "%s", d.Problem)
	}
	switch {
	case len(d.Labels) > 0:
		line("labels", "%d: %s", len(d.Labels), shorten(strings.Join(d.Labels, ", "), 400))
	default:
		line("labels", "none: classes are numbers (give their names with --labels FILE)")
	}
	if d.Head != nil {
		for class, names := range d.Head.Keypoints {
			of := ""
			if len(d.Head.Keypoints) > 1 {
				of = " of " + postprocess.Label(d.Labels, class)
			}
			if names != nil {
				line("keypoints", "%d%s: %s", d.Head.KeypointCount, of, shorten(strings.Join(names, ", "), 400)+d.keypointSource())
			}
		}
		if d.Head.KeypointCount > 0 && d.Head.Keypoints == nil {
			line("keypoints", "%d without names: the file has none", d.Head.KeypointCount)
		}
	}
	if d.FilteredOnDevice {
		line("filtered", "on the device: only boxes over the threshold reach the host")
	}
	return text.String()
}

// keypointSource is a note on keypoint names that are not the file's.
func (d Description) keypointSource() string {
	if d.KeypointNamesAssumed {
		return " (COCO's: the file has none)"
	}
	return ""
}

// shorten cuts a long text between two characters.
func shorten(text string, most int) string {
	for i := range text {
		if i > most {
			return text[:i] + " ..."
		}
	}
	return text
}
