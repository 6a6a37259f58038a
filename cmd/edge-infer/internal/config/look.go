package config

import (
	"cmp"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

func inferenceSettings(l *look.Inference) []setting {
	return []setting{
		{
			"look.tile", "tile", whole(&l.Tile), l.ValidateTile,
			"look at large images in tiles of so many pixels, and whole, for small objects; 0: whole only",
		},
		{
			"look.overlap", "overlap", number(&l.Overlap), l.ValidateOverlap,
			"share of a tile that its neighbour sees too: the largest objects that must come out whole",
		},
		{
			"look.merge", "tile-merge", text(&l.TileMerge), oneOf(&l.TileMerge, string(ensemble.NMS), string(ensemble.WeightedBoxes)),
			"box of an object that several tiles saw whole: nms (of the tile that saw it best) or wbf (weighted box fusion: the mean of all)",
		},
		{"look.ensemble", "ensemble", list(&l.Ensemble), nil, "networks that look too, beside --model: A.onnx,B.onnx; what all find is fused"},
		{
			"look.weights", "weights", numbers(&l.Weights), l.ValidateWeights,
			"what each network counts in the ensemble, --model first; empty: all the same",
		},
		{
			"look.augment", "augment", list(&l.Augment), l.ValidateAugment,
			"show each image in other ways too and fuse what is found: flip (left to right), scale=0.83 (smaller), flip+scale=0.83",
		},
		{
			"look.fusion", "fusion", text(&l.Fusion), oneOf(&l.Fusion, string(ensemble.WeightedBoxes), string(ensemble.MajorityVote), string(ensemble.NMS)),
			"how detections become one: wbf (weighted box fusion: the mean of the boxes, and lower scores for what not all have seen), " +
				"vote (what more than half of the weight has seen), nms (the best box)",
		},
		{
			"look.fusion_iou", "fusion-iou", number(&l.FusionIoU), openShare(&l.FusionIoU),
			"overlap over which two detections of a class are one object to --fusion",
		},
	}
}

// checkView finds what is wrong with what a camera says of its network.
func (c *Camera) checkView(e *element) {
	if c.Tile != nil {
		e.add("tile", (&look.Inference{Tile: *c.Tile}).ValidateTile())
	}
	if c.Overlap != nil {
		e.add("overlap", (&look.Inference{Overlap: *c.Overlap}).ValidateOverlap())
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
	m.Layout, m.Activation = cmp.Or(m.Layout, Auto), cmp.Or(m.Activation, Auto)
	for _, s := range m.settings() {
		if s.check != nil {
			e.add(s.key, s.check())
		}
	}
}
