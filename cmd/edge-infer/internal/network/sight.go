package network

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/augment"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/fuse"
)

// Sight is how a picture is looked at. The zero value is one network that sees it whole.
type Sight struct {
	Tiles Tiles
	// Ensemble are networks that look beside the model that the configuration names, Weights those of all of them, that one first.
	Ensemble []string
	Weights  []float64
	// Augment are further looks of each network: flip, scale=S, or both joined by +.
	Augment []string
	// Fusion is the fuse.Method, FusionIoU its overlap.
	Fusion    string
	FusionIoU float64
}

// Flags are the sight's place on a command line.
func (s *Sight) Flags(flags *pflag.FlagSet) {
	s.Tiles.Flags(flags)
	flags.StringSliceVar(&s.Ensemble, "ensemble", nil, "networks that look too, beside --model: A.onnx,B.onnx; what all find is fused")
	flags.Float64SliceVar(&s.Weights, "weights", nil, "what each network counts in the ensemble, --model first; by default all the same")
	flags.StringSliceVar(&s.Augment, "augment", nil,
		"show each picture in other ways too and fuse what is found: flip (left to right), scale=0.83 (smaller), flip+scale=0.83")
	flags.StringVar(&s.Fusion, "fusion", string(fuse.Boxes), "how findings become one: wbf (weighted box fusion: the mean of the boxes, "+
		"and lower scores for what not all have seen), vote (what more than half of the weight has seen), nms (the best box)")
	flags.Float64Var(&s.FusionIoU, "fusion-iou", fuse.DefaultIoU, "overlap over which two findings of a class are one object to --fusion")
}

// Check finds what is wrong with the flags before any work.
func (s *Sight) Check() error {
	if len(s.Weights) > 0 && len(s.Ensemble) == 0 {
		return config.Usagef("--weights are those of the networks of --ensemble")
	}
	fuser := s.fuser()
	for _, w := range s.Weights {
		fuser.Weights = append(fuser.Weights, float32(w))
	}
	if err := fuser.Open(1 + len(s.Ensemble)); err != nil {
		return config.Usagef("--ensemble: %v", err)
	}
	if _, err := s.looks(); err != nil {
		return config.Usagef("--augment: %v", err)
	}
	return s.Tiles.Check()
}

// Plain reports whether a picture is seen once, whole, by one network.
func (s *Sight) Plain() bool { return s.Tiles.Side == 0 && len(s.Ensemble) == 0 && len(s.Augment) == 0 }

func (s *Sight) fuser() fuse.Fuser {
	return fuse.Fuser{Method: fuse.Method(s.Fusion), IoU: float32(s.FusionIoU)}
}

// looks reads Augment.
func (s *Sight) looks() ([]augment.Look, error) {
	var looks []augment.Look
	for _, text := range s.Augment {
		var look augment.Look
		for part := range strings.SplitSeq(text, "+") {
			scale, scaled := strings.CutPrefix(part, "scale=")
			switch {
			case part == "flip" && !look.Flip:
				look.Flip = true
			case scaled && look.Scale == 0:
				var err error
				if look.Scale, err = strconv.ParseFloat(scale, 64); err != nil || look.Scale == 0 {
					return nil, fmt.Errorf("scale %q is no number from %v to 1", scale, augment.LeastScale)
				}
			default:
				return nil, fmt.Errorf("%q must be flip, scale=0.83 or flip+scale=0.83", text)
			}
		}
		if err := look.Check(); err != nil {
			return nil, err
		}
		looks = append(looks, look)
	}
	return looks, nil
}

// Open opens what looks at pictures that way, with those options for each network.
func (s *Sight) Open(ctx context.Context, options predict.Options) (predict.Predictor, error) {
	asked := options.Decoding
	for range 2 { // each level asks the one below for weaker findings
		if len(s.Ensemble) > 0 || len(s.Augment) > 0 {
			options.Decoding = ensemble.Below(options.Decoding)
		}
	}
	p, err := s.networks(ctx, options, asked)
	if err != nil {
		return nil, err
	}
	if len(s.Augment) > 0 {
		looks, err := s.looks()
		augmented := &augment.Augmented{Predictor: p, Looks: looks, Fuser: s.fuser(), Decoding: asked}
		if err == nil {
			err = augmented.Open()
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p = augmented
	}
	tiled, err := s.Tiles.Over(p, asked)
	if err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return tiled, nil
}

// networks opens the model, and the ensemble where there is one.
func (s *Sight) networks(ctx context.Context, options predict.Options, asked predict.Decoding) (predict.Predictor, error) {
	first, err := predict.Open(ctx, options)
	if err != nil || len(s.Ensemble) == 0 {
		return first, err
	}
	e := &ensemble.Ensemble{Predictors: []predict.Predictor{first}, Fuser: s.fuser(), Decoding: asked}
	if len(s.Augment) > 0 {
		e.Decoding = ensemble.Below(asked)
	}
	for _, w := range s.Weights {
		e.Fuser.Weights = append(e.Fuser.Weights, float32(w))
	}
	for _, path := range s.Ensemble {
		other := options.Another(path)
		p, err := predict.Open(ctx, other)
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.Predictors = append(e.Predictors, p)
	}
	if err := e.Open(); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}
