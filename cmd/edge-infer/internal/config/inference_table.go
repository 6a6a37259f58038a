package config

import (
	"cmp"

	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

func inferenceSettings(l *Inference) []setting {
	return []setting{
		{
			"inference.tile", "tile", whole(&l.Tile), l.ValidateTile,
			"run the network on tiles of this side in pixels and on the whole image, for small objects; 0: whole image only",
		},
		{
			"inference.overlap", "overlap", number(&l.Overlap), l.ValidateOverlap,
			"overlap of neighbouring tiles as a share of their side; larger objects may be cut",
		},
		{
			"inference.tile_merge", "tile-merge", text(&l.TileMerge), oneOf(&l.TileMerge, string(ensemble.NMS), string(ensemble.WeightedBoxes)),
			"box of an object that several tiles contain: nms (the best tile's) or wbf (weighted mean)",
		},
		{"inference.ensemble", "ensemble", list(&l.Ensemble), nil, "additional models; detections of all models are fused (see --fusion)"},
		{
			"inference.weights", "weights", numbers(&l.Weights), l.ValidateWeights,
			"weight of each model in the ensemble, --model first; empty: equal",
		},
		{
			"inference.augment", "augment", list(&l.Augment), l.ValidateAugment,
			"test-time augmentation: additional views such as flip, scale=0.83, flip+scale=0.83, separated by commas",
		},
		{
			"inference.fusion", "fusion", text(&l.Fusion), oneOf(&l.Fusion, string(ensemble.WeightedBoxes), string(ensemble.MajorityVote),
				string(ensemble.NMS)),
			"fusion of detections: wbf (weighted box fusion), vote (majority by weight) or nms (best box)",
		},
		{
			"inference.fusion_iou", "", number(&l.FusionIoU), openShare(&l.FusionIoU),
			"IoU from which two detections of one class are fused",
		},
	}
}

// checkView validates the camera's own tiles, confidence, tracker profile and model.
func (c *Camera) checkView(e *element) {
	if c.Tile != nil {
		e.add("tile", (&Inference{Tile: *c.Tile}).ValidateTile())
	}
	if c.Overlap != nil {
		e.add("overlap", (&Inference{Overlap: *c.Overlap}).ValidateOverlap())
	}
	e.must(c.Confidence >= 0 && c.Confidence < 1, "confidence", c.Confidence, "must be 0 or more and under 1")
	if c.Profile != "" {
		e.add("profile", oneOf(&c.Profile, track.Profiles()...)())
	}
	if c.Model == nil {
		return
	}
	e.must(c.Model.Path != "", "model.path", "", "must be an ONNX file, a TensorRT engine or demo")
	m := *c.Model
	m.Activation = cmp.Or(m.Activation, Auto)
	for _, s := range m.settings() {
		if s.check != nil {
			e.add(s.key, s.check())
		}
	}
}
