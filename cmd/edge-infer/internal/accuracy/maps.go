package accuracy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// metres is the unit of metric depths.
const metres = "m"

// noMapLabels is the error of a dataset without map labels.
const noMapLabels = "labels of a network for %s are a PNG or NPY file for each image, of its name: images/ with masks/, labels/ or depth/ beside it"

// mapsError returns the error for a map network with labels of another kind.
type mapsError engine.Task

func (e mapsError) Error() string { return fmt.Sprintf(noMapLabels, engine.Task(e)) }

// mapNetwork is a segmentation or depth network with its accuracy.
type mapNetwork struct {
	*opened
	times        clocks
	segmentation *evaluate.Segmentation // one of the two is set
	depths       *evaluate.Depth
}

// ofMaps prepares a network for measuring maps.
func (v *Validate) ofMaps(o *opened) *mapNetwork {
	m := &mapNetwork{opened: o}
	m.segmentation, m.depths = v.measures(&o.model)
	return m
}

// add adds the map of an image. Labels may be nil.
func (m *mapNetwork) add(seen *postprocess.DenseMap, timing engine.Timing, frame *capture.Frame, labels *evaluate.LabelMap) {
	m.times.add(timing)
	switch {
	case labels == nil:
	case m.segmentation != nil:
		m.segmentation.Add(seen, frame.Width, frame.Height, labels)
	default:
		m.depths.Add(seen, frame.Width, frame.Height, labels)
	}
}

// infer runs the network on an image.
func (m *mapNetwork) predict(frame *capture.Frame) (*predict.BatchResult, error) {
	if err := m.predictor.Submit(0, []engine.Image{frame.Image()}); err != nil {
		return nil, err
	}
	result, err := m.predictor.Wait(0)
	if err == nil {
		err = result.Results[0].Err
	}
	return result, err
}

// maps measures a segmentation or depth network against labels, if there are any, and against a reference. The network may be nil and is
// opened then; otherwise the caller owns it.
func (v *Validate) maps(ctx context.Context, labelled []evaluate.LabelledImage, o *opened) (*Report, error) {
	switch {
	case v.Predictions != "":
		return nil, config.Usagef("--predictions is for networks that detect objects; %s holds labels of maps", v.Data)
	case !v.Limits.Off():
		return nil, config.Usagef(
			"the gate is for networks that detect objects; %s holds labels of maps, for which the agreement is printed",
			v.Data,
		)
	case v.Limit > 0:
		labelled = labelled[:min(v.Limit, len(labelled))]
	}
	started := time.Now()
	var paths []string
	for i := range labelled {
		paths = append(paths, labelled[i].Image)
	}
	if o == nil {
		var err error
		if o, err = v.open(ctx, *v.Config, paths, nil); err != nil {
			return nil, err
		}
		defer o.predictor.Close()
	}
	candidate := v.ofMaps(o)
	model := &candidate.model
	if !model.Recognised.Task.Maps() {
		return nil, fmt.Errorf("%s holds labels of maps, but model %s is for %s", v.Data, model.Path, model.Recognised.Task)
	}
	report := &Report{Version: 1, Convention: v.counted, Images: len(labelled)}
	reference, err := v.mapReference(ctx, candidate, paths)
	if err != nil {
		return nil, fmt.Errorf("reference: %w", err)
	}
	agreement := evaluate.MapAgreement{}
	if reference != nil {
		defer reference.predictor.Close()
		if candidate.segmentation != nil {
			agreement.Classes = max(candidate.segmentation.Classes, reference.segmentation.Classes)
		}
	}
	if err := v.eachMap(ctx, labelled, paths, candidate, reference, &agreement); err != nil {
		return nil, err
	}
	hasLabels := len(labelled) > 0 && labelled[0].LabelMap != ""
	candidate.finish(hasLabels)
	report.Measurement = candidate.measured
	if hasLabels && candidate.segmentation != nil {
		report.addSegmentation(candidate.segmentation, model.Metadata.Labels)
	}
	if reference != nil {
		reference.finish(hasLabels)
		result := agreement.Result()
		report.Reference, report.Maps = &reference.measured, &result
	}
	report.Seconds = time.Since(started).Seconds()
	return report, nil
}

// unlabelled returns images without labels, for a comparison with a reference.
func unlabelled(paths []string) []evaluate.LabelledImage {
	images := make([]evaluate.LabelledImage, len(paths))
	for i := range paths {
		images[i].Image = paths[i]
	}
	return images
}

// mapReference opens the reference; it returns nil if there is none.
func (v *Validate) mapReference(ctx context.Context, candidate *mapNetwork, paths []string) (*mapNetwork, error) {
	if v.Reference == "" {
		return nil, nil
	}
	c, err := v.ReferenceConfig()
	if err != nil {
		return nil, err
	}
	reference, err := v.open(ctx, c, paths, &candidate.measured)
	if err != nil {
		return nil, err
	}
	if theirs, ours := reference.model.Recognised.Task, candidate.model.Recognised.Task; theirs != ours {
		return nil, errors.Join(fmt.Errorf("model %s is for %s, not %s", reference.model.Path, theirs, ours), reference.predictor.Close())
	}
	return v.ofMaps(reference), nil
}

// eachMap runs both networks on every image; the reference may be nil.
func (v *Validate) eachMap(
	ctx context.Context, labelled []evaluate.LabelledImage, paths []string, candidate, reference *mapNetwork, agreement *evaluate.MapAgreement,
) error {
	step := v.Progress.Begin("images on " + candidate.model.Backend)
	defer step.Close()
	seen := 0
	files := &media.Run{Predictors: []predict.Predictor{candidate.predictor}, Each: func(_ string, number int, frame *capture.Frame,
		img *predict.Result, timing engine.Timing,
	) (err error) {
		if number > 0 {
			return errors.New("is not a single image")
		}
		var labels *evaluate.LabelMap
		if path := labelled[seen].LabelMap; path != "" {
			if labels, err = evaluate.ReadLabelMap(path); err != nil {
				return err
			}
		}
		candidate.add(img.Map, timing, frame, labels)
		if reference != nil {
			other, err := reference.predict(frame)
			if err != nil {
				return fmt.Errorf("reference: %w", err)
			}
			reference.add(other.Results[0].Map, other.Timing, frame, labels)
			agreement.Add(img.Map, other.Results[0].Map, frame.Width, frame.Height)
		}
		seen++
		step.Count(seen, len(paths))
		return nil
	}}
	return files.Files(ctx, paths)
}

// measures holds the measure of a network's maps: one of the two.
func (v *Validate) measures(model *predict.Model) (*evaluate.Segmentation, *evaluate.Depth) {
	if model.Recognised.Task == engine.Depth {
		return nil, &evaluate.Depth{Scale: v.DepthScale, MaxDepth: v.MaxDepth, Align: v.Config.Detect.DepthUnit != metres}
	}
	classes := max(model.Recognised.Classes, len(model.Metadata.Labels))
	if classes == 0 {
		classes = postprocess.NoClass
	}
	return &evaluate.Segmentation{Classes: classes, FirstClass: v.FirstClass}, nil
}

// finish fills in the results over all images.
func (m *mapNetwork) finish(labelled bool) {
	r := &m.measured
	r.Request, r.Inference = m.times.medians()
	switch {
	case !labelled:
	case m.segmentation != nil:
		result := m.segmentation.Result()
		r.Measure = "classes of pixels"
		r.MeanIoU, r.PixelAccuracy = &result.MeanIoU, &result.Accuracy
	default:
		result := m.depths.Result()
		r.Measure = "depths in metres"
		if m.depths.Align {
			r.Measure = "depths whose median is made that of the labels"
		}
		r.Depth = &DepthAccuracy{result.Images, result.AbsRel, result.RMSE, result.Delta125}
	}
}

// addSegmentation adds the accuracy of each class.
func (r *Report) addSegmentation(measured *evaluate.Segmentation, labels []string) {
	for _, c := range measured.Result().Classes {
		r.Segmentation = append(r.Segmentation, ClassSegmentation{postprocess.Label(labels, c.Class), c.Pixels, c.IoU, c.Accuracy})
	}
}

// ClassSegmentation is the segmentation accuracy of one class.
type ClassSegmentation struct {
	Label    string  `json:"label"`
	Pixels   int64   `json:"pixels"`
	IoU      float64 `json:"iou"`
	Accuracy float64 `json:"accuracy"`
}

// DepthAccuracy is the accuracy of depths.
type DepthAccuracy struct {
	Images   int     `json:"images"` // with enough labelled pixels
	AbsRel   float64 `json:"abs_rel"`
	RMSE     float64 `json:"rmse"`
	Delta125 float64 `json:"delta_1_25"`
}
