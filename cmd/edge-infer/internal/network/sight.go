package network

import (
	"context"
	"errors"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"

	"github.com/edge-infer/edge-infer/postprocess/predict"
	"github.com/edge-infer/edge-infer/postprocess/predict/ensemble"
	"github.com/edge-infer/edge-infer/postprocess/predict/tile"
)

// PredictorBuilder opens the network, ensemble and secondary networks of a configuration.
type PredictorBuilder struct {
	config.Inference
	// OpenNetwork opens each network; predict.Open when nil.
	OpenNetwork func(context.Context, predict.Options) (predict.Predictor, error)
}

// AsPredictor returns a network as a Predictor; nil if opening it failed.
func AsPredictor(n *predict.Network, err error) (predict.Predictor, error) {
	if err != nil {
		return nil, err
	}
	return n, nil
}

// Open opens it, with those options for each network.
func (s *PredictorBuilder) Open(ctx context.Context, options predict.Options) (predict.Predictor, error) {
	if s.OpenNetwork == nil {
		s.OpenNetwork = func(ctx context.Context, options predict.Options) (predict.Predictor, error) {
			return AsPredictor(predict.Open(ctx, options))
		}
	}
	asked := options.Decoding
	for range 2 { // each level asks the one below for weaker detections
		if len(s.Ensemble) > 0 || len(s.Augment) > 0 {
			options.Decoding = ensemble.MemberDecoding(options.Decoding)
		}
	}
	p, err := s.networks(ctx, options, asked)
	if err != nil {
		return nil, err
	}
	if len(s.Augment) > 0 {
		looks, err := s.Views()
		fuser := s.Fuser()
		fuser.Weights = nil // of the networks
		augmented := &ensemble.Augmented{Predictor: p, Views: looks, Fuser: fuser, Decoding: asked}
		if err == nil {
			err = augmented.Open()
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p = augmented
	}
	if s.Tile == 0 {
		return p, nil
	}
	tiled := &tile.Tiled{
		Predictor: p, Tile: s.Tile, Overlap: s.Overlap, Merge: ensemble.Method(s.TileMerge), WholeImage: true,
	}
	if err := tiled.Open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return tiled, nil
}

// networks opens the model, and the ensemble where there is one.
func (s *PredictorBuilder) networks(ctx context.Context, options predict.Options, asked predict.Decoding) (predict.Predictor, error) {
	first, err := s.OpenNetwork(ctx, options)
	if err != nil {
		return nil, err
	}
	if len(s.Ensemble) == 0 {
		return first, nil
	}
	e := &ensemble.Ensemble{Predictors: []predict.Predictor{first}, Fuser: s.Fuser(), Decoding: asked}
	if len(s.Augment) > 0 {
		e.Decoding = ensemble.MemberDecoding(asked)
	}
	for _, other := range s.others(&options) {
		p, err := s.OpenNetwork(ctx, other)
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

// others returns the options of the ensemble's other networks.
func (s *PredictorBuilder) others(options *predict.Options) (all []predict.Options) {
	for _, path := range s.Ensemble {
		all = append(all, options.ForModel(path))
	}
	return all
}

// NeedsPlan reports whether TensorRT could run a network if only it had a plan.
func (s *PredictorBuilder) NeedsPlan(options *predict.Options) bool {
	if options.NeedsPlan() {
		return true
	}
	for _, other := range s.others(options) {
		if other.Load() == nil && other.NeedsPlan() {
			return true
		}
	}
	return false
}
