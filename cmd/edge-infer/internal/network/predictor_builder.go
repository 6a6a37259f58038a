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

// Open opens them; each network gets the options.
func (b *PredictorBuilder) Open(ctx context.Context, options predict.Options) (predict.Predictor, error) {
	if b.OpenNetwork == nil {
		b.OpenNetwork = func(ctx context.Context, options predict.Options) (predict.Predictor, error) {
			return AsPredictor(predict.Open(ctx, options))
		}
	}
	asked := options.Decoding
	for range 2 { // each level asks the one below for weaker detections
		if len(b.Ensemble) > 0 || len(b.Augment) > 0 {
			options.Decoding = ensemble.MemberDecoding(options.Decoding)
		}
	}
	p, err := b.networks(ctx, options, asked)
	if err != nil {
		return nil, err
	}
	if len(b.Augment) > 0 {
		views, err := b.Views()
		fuser := b.Fuser()
		fuser.Weights = nil // of the networks
		augmented := &ensemble.Augmented{Predictor: p, Views: views, Fuser: fuser, Decoding: asked}
		if err == nil {
			err = augmented.Open()
		}
		if err != nil {
			return nil, errors.Join(err, p.Close())
		}
		p = augmented
	}
	if b.Tile == 0 {
		return p, nil
	}
	tiled := &tile.Tiled{
		Predictor: p, Tile: b.Tile, Overlap: b.Overlap, Merge: ensemble.Method(b.TileMerge), WholeImage: true,
	}
	if err := tiled.Open(); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return tiled, nil
}

// networks opens the model, and the ensemble if there is one.
func (b *PredictorBuilder) networks(ctx context.Context, options predict.Options, asked predict.Decoding) (predict.Predictor, error) {
	first, err := b.OpenNetwork(ctx, options)
	if err != nil {
		return nil, err
	}
	if len(b.Ensemble) == 0 {
		return first, nil
	}
	e := &ensemble.Ensemble{Predictors: []predict.Predictor{first}, Fuser: b.Fuser(), Decoding: asked}
	if len(b.Augment) > 0 {
		e.Decoding = ensemble.MemberDecoding(asked)
	}
	for _, other := range b.others(&options) {
		p, err := b.OpenNetwork(ctx, other)
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
func (b *PredictorBuilder) others(options *predict.Options) (all []predict.Options) {
	for _, path := range b.Ensemble {
		all = append(all, options.ForModel(path))
	}
	return all
}

// NeedsPlan reports whether TensorRT could run a network if only it had a plan.
func (b *PredictorBuilder) NeedsPlan(options *predict.Options) bool {
	if options.NeedsPlan() {
		return true
	}
	for _, other := range b.others(options) {
		if other.Load() == nil && other.NeedsPlan() {
			return true
		}
	}
	return false
}
