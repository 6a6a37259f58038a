package predict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// ErrSetting matches errors that another setting would fix: a layout or label that the model does not have, an invalid threshold.
var ErrSetting = errors.New("setting does not fit the model")

// settingError is an ErrSetting with a text of its own.
type settingError struct{ error }

func (settingError) Is(target error) bool { return target == ErrSetting }
func (e settingError) Unwrap() error      { return e.error }

// Decoding configures how outputs become detections. Zero values select the defaults of head.Options.
type Decoding struct {
	// Layout selects the head of the outputs instead of recognising it.
	Layout head.Layout
	// MinScore is the lowest score of a detection.
	MinScore float32
	// IoU is the overlap above which the lower-scored of two boxes of a class is suppressed.
	IoU float32
	// Limit is the maximum number of detections of an image.
	Limit int
	// Classes are the labels of the classes to detect; nil for all.
	Classes []string
	// TopK is how many classes of a classifier with exclusive classes are returned, 0 for five. TopAlways returns them whatever their
	// scores.
	TopK      int
	TopAlways bool
	// MultiLabel returns a box once for every class at or above MinScore instead of once for its best class.
	MultiLabel bool
}

// open returns a decoder for a model.
func (d *Decoding) open(model *engine.Model) (*head.Decoder, error) {
	layout, err := head.ParseLayout(string(d.Layout))
	if err != nil {
		return nil, settingError{err}
	}
	options := head.Options{
		Layout: layout, MinScore: d.MinScore, IoU: d.IoU, Limit: d.Limit, MultiLabel: d.MultiLabel, TopK: d.TopK, TopAlways: d.TopAlways,
	}
	for _, label := range d.Classes {
		class := slices.Index(model.Metadata.Labels, label)
		switch {
		case len(model.Metadata.Labels) == 0:
			return nil, settingError{fmt.Errorf("label %q: the model names none (give its labels with --labels FILE)", label)}
		case class < 0:
			return nil, settingError{postprocess.UnknownLabelError(label, model.Metadata.Labels)}
		}
		options.Classes = append(options.Classes, class)
	}
	decoder, err := head.NewDecoder(model, options)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", model.Path, err)
	}
	return decoder, nil
}

// Filter returns the candidate filter of an engine for these settings, as engine.Options.Filter. It is nil for a model that they do not
// fit, for which Wrap returns the error.
func (d *Decoding) Filter(model engine.Model) *engine.Filter {
	decoder, err := d.open(&model)
	if err != nil {
		return nil
	}
	return decoder.Filter()
}
