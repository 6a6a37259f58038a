package device

import (
	"context"
	"errors"
	"sync"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// opener opens a network.
type opener func(context.Context, predict.Options) (*predict.Network, error)

// group is the devices whose views differ in nothing but their tiles. Each network that they look with is opened once, with slots for each
// of them. Which of them computes their turns decide, as they do for networks that differ.
type group struct {
	views   []*prepared
	options predict.Options // of all: the largest batch and the lowest threshold
	quick   bool            // they began with a plan of little effort

	mu   sync.Mutex
	left map[opening][]*predict.SlotGroup // of networks that some have opened for the others
}

// opening is what a network was opened for.
type opening struct {
	path  string
	quick bool // with a plan of little effort
}

// slotsOfOne is how many requests a frame loop has in flight.
const slotsOfOne = 2

// join puts a view with those that share its networks, or alone.
func join(groups []*group, p *prepared) []*group {
	for _, g := range groups {
		if !network.Alike(g.views[0].view, p.view) || !g.views[0].shares() || !p.shares() || g.options.Device != p.each[0].Device {
			continue
		}
		g.views = append(g.views, p)
		g.options.MaxBatch = max(g.options.MaxBatch, p.each[0].MaxBatch)
		g.options.Frugal = g.options.Frugal && p.each[0].Frugal
		g.options.Decoding.MinScore = min(g.options.Decoding.MinScore, p.each[0].Decoding.MinScore)
		return groups
	}
	return append(groups, &group{views: []*prepared{p}, options: p.each[0]})
}

// shares reports whether the view may have its networks in common with another one: it is on one device, and its networks' size does not
// depend on what is seen.
func (p *prepared) shares() bool {
	return len(p.each) == 1 && p.options.Sources == nil && !p.options.IsRemote()
}

// of are the options of a device of the group.
func (g *group) of(own predict.Options) predict.Options {
	if len(g.views) > 1 {
		own.MaxBatch, own.Frugal, own.Decoding.MinScore = g.options.MaxBatch, g.options.Frugal, g.options.Decoding.MinScore
	}
	return own
}

// each has every network opened by the first device that wants it, and gives the others their parts of it.
func (g *group) each(open opener) func(context.Context, predict.Options) (predict.Predictor, error) {
	return func(ctx context.Context, options predict.Options) (predict.Predictor, error) {
		if len(g.views) == 1 {
			return network.AsPredictor(open(ctx, options))
		}
		g.mu.Lock()
		defer g.mu.Unlock()
		key := opening{options.Path, options.Level != nil}
		if parts := g.left[key]; len(parts) > 0 {
			g.left[key] = parts[1:]
			return parts[0], nil
		}
		options.Slots = slotsOfOne * len(g.views)
		n, err := open(ctx, options)
		if err != nil {
			return nil, err
		}
		parts, err := predict.SplitSlots(n, len(g.views))
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		if g.left == nil {
			g.left = map[opening][]*predict.SlotGroup{}
		}
		g.left[key] = parts[1:]
		return parts[0], nil
	}
}

// Close closes what no device has taken.
func (g *group) Close() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	var errs []error
	for _, parts := range g.left {
		for _, p := range parts {
			errs = append(errs, p.Close())
		}
	}
	g.left = nil
	return errors.Join(errs...)
}
