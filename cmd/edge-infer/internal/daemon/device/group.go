package device

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// opener opens a network.
type opener func(context.Context, predict.Options) (*predict.Network, error)

// sharedEngines is the camera groups whose networks differ in nothing but their tiles. Each network is opened once, with slots for each
// group.
type sharedEngines struct {
	groups []*prepared
	common predict.Options // the largest batch and the lowest score of all groups

	quick atomic.Bool // a network was opened with a plan of low optimization level

	mu   sync.Mutex
	left map[opening][]*predict.SlotGroup // slots that were opened for groups that have not taken them yet
}

// opening identifies a network that was opened.
type opening struct {
	path  string
	quick bool // with a plan of low optimization level
}

// slotsOfOne is how many requests a frame loop has in flight.
const slotsOfOne = 2

// join adds a group to those that it can share engines with, or alone.
func join(all []*sharedEngines, p *prepared) []*sharedEngines {
	for _, e := range all {
		first := e.groups[0]
		same := first.group.Network.SharesEngines(&p.group.Network) && e.common.Device == p.each[0].Device
		if !same || !first.shares() || !p.shares() {
			continue
		}
		e.groups = append(e.groups, p)
		e.common.MaxBatch = max(e.common.MaxBatch, p.each[0].MaxBatch)
		e.common.Frugal = e.common.Frugal && p.each[0].Frugal
		e.common.Decoding.MinScore = min(e.common.Decoding.MinScore, p.each[0].Decoding.MinScore)
		return all
	}
	return append(all, &sharedEngines{groups: []*prepared{p}, common: p.each[0]})
}

// shares reports whether the group can share engines: it has one device, and the input size does not follow from the images.
func (p *prepared) shares() bool {
	return len(p.each) == 1 && p.options.Sources == nil && !p.options.IsRemote()
}

// options returns the options of a device with what all groups have in common.
func (e *sharedEngines) options(own predict.Options) predict.Options {
	if len(e.groups) > 1 {
		own.MaxBatch = e.common.MaxBatch
		own.Frugal = e.common.Frugal
		own.Decoding.MinScore = e.common.Decoding.MinScore
	}
	return own
}

// each opens every network for the first group that needs it, and hands the other groups their slots of it.
func (e *sharedEngines) each(open opener) func(context.Context, predict.Options) (predict.Predictor, error) {
	return func(ctx context.Context, options predict.Options) (predict.Predictor, error) {
		if len(e.groups) == 1 {
			return network.AsPredictor(open(ctx, options))
		}
		e.mu.Lock()
		defer e.mu.Unlock()
		key := opening{options.Path, options.Level != nil}
		if parts := e.left[key]; len(parts) > 0 {
			e.left[key] = parts[1:]
			return parts[0], nil
		}
		options.Slots = slotsOfOne * len(e.groups)
		n, err := open(ctx, options)
		if err != nil {
			return nil, err
		}
		parts, err := predict.SplitSlots(n, len(e.groups))
		if err != nil {
			return nil, errors.Join(err, n.Close())
		}
		if e.left == nil {
			e.left = map[opening][]*predict.SlotGroup{}
		}
		e.left[key] = parts[1:]
		return parts[0], nil
	}
}

// Close closes the slots that no group has taken.
func (e *sharedEngines) Close() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	var errs []error
	for _, parts := range e.left {
		for _, p := range parts {
			errs = append(errs, p.Close())
		}
	}
	e.left = nil
	return errors.Join(errs...)
}
