package predict

import (
	"errors"
	"fmt"
	"slices"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

// ErrSetting is what errors.Is finds in an error that another setting mends: a layout or a label that the model does not have, a threshold
// that cannot be.
var ErrSetting = errors.New("setting does not fit the model")

// settingError is ErrSetting with the words of its own alone.
type settingError struct{ error }

func (settingError) Is(target error) bool { return target == ErrSetting }
func (e settingError) Unwrap() error      { return e.error }

// Decoding is how the outputs of a network become detections. The zero value asks for the defaults of package postprocess.
type Decoding struct {
	// Layout names the meaning of the outputs where they are not to be recognised.
	Layout head.Layout
	// MinScore is the decoded threshold: the lowest score of a detection that comes out.
	MinScore float32
	// IoU is the overlap above which the lower-scored of two boxes of a class is dropped.
	IoU float32
	// Limit is how many detections an image has at most.
	Limit int
	// Classes are the labels that come out; nil for all.
	Classes []string
	// Top is how many classes of a classifier whose images are of one class come out, 0 for five; Always has them come out whatever they
	// score.
	TopK      int
	TopAlways bool
	// MultiLabel gives a box once for every class over the threshold instead of once for its best.
	MultiLabel bool
}

// open makes a decoder of the settings for a model.
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
			return nil, settingError{fmt.Errorf("label %q is not one of the model's: %.400q", label, model.Metadata.Labels)}
		}
		options.Classes = append(options.Classes, class)
	}
	decoder, err := head.NewDecoder(model, options)
	if err != nil {
		return nil, fmt.Errorf("model %s: %w", model.Path, err)
	}
	return decoder, nil
}

// Filter is an engine.Options.Filter: what an engine may list on its device for these settings. It is nil for a model that they do not fit,
// of which Wrap says what is wrong.
func (d *Decoding) Filter(model engine.Model) *engine.Filter {
	decoder, err := d.open(&model)
	if err != nil {
		return nil
	}
	return decoder.Filter()
}
