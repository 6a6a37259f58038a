package accuracy

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/media"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/evaluate"
	"github.com/edge-infer/edge-infer/postprocess/evaluate/dense"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// metres is the unit of depths that have a scale.
const metres = "m"

// noMapLabels is what a network for maps lacks.
const noMapLabels = "labels of a network for %s are a PNG or NPY file for each picture, of its name: images/ with masks/, labels/ or depth/ beside it"

// maps measures a network that says something of every place, against labels that do.
func (v *Validate) maps(ctx context.Context, labelled []evaluate.Labelled) (*Report, error) {
	if v.Reference != "" || v.Predictions != "" || v.Plot != "" {
		return nil, config.Usagef("--reference, --predictions and --plot are for networks that find objects; %s has labels of maps", v.Data)
	}
	if v.Limit > 0 {
		labelled = labelled[:min(v.Limit, len(labelled))]
	}
	started := time.Now()
	options := network.Options(v.Config, postprocess.Floor, v.Logger)
	options.Build = network.Builder{Progress: v.Progress}.Build
	if err := options.Load(); err != nil {
		return nil, err
	}
	sight := network.Sight{Look: v.Config.Look}
	predictor, err := sight.Open(ctx, options)
	if err != nil {
		return nil, err
	}
	defer predictor.Close()
	model := predictor.Model()
	if !model.Recognised.Task.Maps() {
		return nil, fmt.Errorf("%s has labels of maps, and model %s is for %s", v.Data, model.Path, model.Recognised.Task)
	}
	places, depths := v.measures(&model)
	report := &Report{Version: 1, Convention: v.counted, Pictures: len(labelled), Measurement: newMeasurement(&model, len(options.Bytes))}
	step := v.Progress.Begin("pictures on " + model.Backend)
	defer step.Close()
	var paths []string
	for i := range labelled {
		paths = append(paths, labelled[i].Picture)
	}
	var times clocks
	seen := 0
	files := &media.Run{Predictors: []predict.Predictor{predictor}, Each: func(_ string, number int, frame *capture.Frame,
		picture *predict.Picture, timing engine.Timing,
	) error {
		if number > 0 {
			return errors.New("is not a single picture")
		}
		labels, err := dense.ReadLabelMap(labelled[seen].Labels)
		if err != nil {
			return err
		}
		if places != nil {
			places.Add(picture.Map, frame.Width, frame.Height, labels)
		} else {
			depths.Add(picture.Map, frame.Width, frame.Height, labels)
		}
		seen++
		times.add(timing)
		step.Count(seen, len(paths))
		return nil
	}}
	if err := files.Files(ctx, paths); err != nil {
		return nil, err
	}
	report.Request, report.Inference = times.medians()
	if places != nil {
		report.places(places, model.Metadata.Labels)
	} else {
		report.depths(depths)
	}
	report.Seconds = time.Since(started).Seconds()
	return report, nil
}

// measures are what the network's maps are measured by: one of both.
func (v *Validate) measures(model *predict.Model) (*dense.Places, *dense.Depths) {
	if model.Recognised.Task == engine.Depth {
		return nil, &dense.Depths{Scale: v.DepthScale, Most: v.MaxDepth, Align: v.Config.Detect.DepthUnit != metres}
	}
	classes := max(model.Recognised.Classes, len(model.Metadata.Labels))
	if classes == 0 {
		classes = postprocess.NoClass
	}
	return &dense.Places{Classes: classes, First: v.FirstClass}, nil
}

// places fills in how well classes fit.
func (r *Report) places(measured *dense.Places, labels []string) {
	result := measured.Result()
	r.Measure = "classes of pixels"
	r.MeanIoU, r.PixelAccuracy = &result.MeanIoU, &result.Accuracy
	for _, c := range result.Classes {
		r.Places = append(r.Places, ClassPlaces{postprocess.Label(labels, c.Class), c.Pixels, c.IoU, c.Accuracy})
	}
}

// depths fills in how well depths fit.
func (r *Report) depths(measured *dense.Depths) {
	result := measured.Result()
	r.Measure = "depths in metres"
	if measured.Align {
		r.Measure = "depths whose median is made that of the labels"
	}
	r.Depth = &DepthAccuracy{result.Pictures, result.AbsRel, result.RMSE, result.Delta125}
}

// ClassPlaces is how well the places of one class are told.
type ClassPlaces struct {
	Label    string  `json:"label"`
	Pixels   int64   `json:"pixels"`
	IoU      float64 `json:"iou"`
	Accuracy float64 `json:"accuracy"`
}

// DepthAccuracy is how well depths fit.
type DepthAccuracy struct {
	Pictures int     `json:"pictures"` // that have enough labelled pixels
	AbsRel   float64 `json:"abs_rel"`
	RMSE     float64 `json:"rmse"`
	Delta125 float64 `json:"delta_1_25"`
}
