package config

import (
	"cmp"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/look"
	"github.com/edge-infer/edge-infer/postprocess/predict/fuse"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

func lookSettings(l *look.Look) []setting {
	return []setting{
		{
			"look.tile", "tile", whole(&l.Tile), l.CheckTile,
			"look at large pictures in tiles of so many pixels, and whole, for small objects; 0: whole only",
		},
		{
			"look.overlap", "overlap", number(&l.Overlap), l.CheckOverlap,
			"share of a tile that its neighbour sees too: the largest objects that must come out whole",
		},
		{
			"look.merge", "tile-merge", text(&l.Merge), oneOf(&l.Merge, string(fuse.Best), string(fuse.Boxes)),
			"box of an object that several tiles saw whole: nms (of the tile that saw it best) or wbf (weighted box fusion: the mean of all)",
		},
		{"look.ensemble", "ensemble", list(&l.Ensemble), nil, "networks that look too, beside --model: A.onnx,B.onnx; what all find is fused"},
		{
			"look.weights", "weights", numbers(&l.Weights), l.CheckWeights,
			"what each network counts in the ensemble, --model first; empty: all the same",
		},
		{
			"look.augment", "augment", list(&l.Augment), l.CheckAugment,
			"show each picture in other ways too and fuse what is found: flip (left to right), scale=0.83 (smaller), flip+scale=0.83",
		},
		{
			"look.fusion", "fusion", text(&l.Fusion), oneOf(&l.Fusion, string(fuse.Boxes), string(fuse.Vote), string(fuse.Best)),
			"how findings become one: wbf (weighted box fusion: the mean of the boxes, and lower scores for what not all have seen), " +
				"vote (what more than half of the weight has seen), nms (the best box)",
		},
		{
			"look.fusion_iou", "fusion-iou", number(&l.FusionIoU), openShare(&l.FusionIoU),
			"overlap over which two findings of a class are one object to --fusion",
		},
	}
}

// viewMistake is the first one of what a camera says of its network, with the name of its setting.
func (c *Camera) viewMistake() (name string, err error) {
	own := look.Look{}
	if c.Tile != nil {
		own.Tile = *c.Tile
	}
	if c.Overlap != nil {
		own.Overlap = *c.Overlap
	}
	profile := oneOf(&c.Profile, track.Profiles()...)
	switch {
	case own.CheckTile() != nil:
		return "tile", own.CheckTile()
	case own.CheckOverlap() != nil:
		return "overlap", own.CheckOverlap()
	case !(c.Confidence >= 0 && c.Confidence < 1):
		return "confidence", must(c.Confidence, "must be 0 or more and under 1")
	case c.Profile != "" && profile() != nil:
		return "profile", profile()
	case c.Model == nil:
		return "", nil
	case c.Model.Path == "":
		return "model.path", must("", "must be an ONNX file, a TensorRT engine or demo")
	}
	m := *c.Model
	m.Layout, m.Activation = cmp.Or(m.Layout, Auto), cmp.Or(m.Activation, Auto)
	for _, s := range m.settings() {
		if s.check != nil && s.check() != nil {
			return s.key, s.check()
		}
	}
	return "", nil
}
