package predict

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

// SlotGroup is a group of a network's slots with their own decoding, used by a goroutine of its own, so that several users share the
// network's weights. It is a Predictor whose slots are numbered from 0; closing the last group closes the network.
type SlotGroup struct {
	*shared
	first, count int
	once         sync.Once
	closed       error
}

// shared is a network with the number of its open groups.
type shared struct {
	*Network
	mu   sync.Mutex
	open int
}

// SplitSlots splits the slots of a network into equal groups, which own the network afterwards.
func SplitSlots(n *Network, groups int) ([]*SlotGroup, error) {
	if groups < 1 || len(n.slots)%groups != 0 {
		return nil, n.refuse("divide", engine.ErrShape, "%d slots cannot be divided by %d", len(n.slots), groups)
	}
	of := &shared{Network: n, open: groups}
	all := make([]*SlotGroup, groups)
	for i := range all {
		count := len(n.slots) / groups
		all[i] = &SlotGroup{shared: of, first: i * count, count: count}
	}
	return all, nil
}

var _ Predictor = (*SlotGroup)(nil)

// Slots implements Predictor.
func (p *SlotGroup) Slots() int { return p.count }

// Submit implements Predictor.
func (p *SlotGroup) Submit(slot int, images []engine.Image) error {
	if slot < 0 || slot >= p.count {
		return p.refuse("submit", engine.ErrShape, "slot %d, there are slots 0 to %d", slot, p.count-1)
	}
	return p.Network.Submit(p.first+slot, images)
}

// Wait implements Predictor.
func (p *SlotGroup) Wait(slot int) (*BatchResult, error) {
	if slot < 0 || slot >= p.count {
		return nil, p.refuse("wait", engine.ErrShape, "slot %d, there are slots 0 to %d", slot, p.count-1)
	}
	return p.Network.Wait(p.first + slot)
}

// Tune implements Predictor. It does not affect other groups.
func (p *SlotGroup) Tune(d Decoding) error { return p.tune(d, p.first, p.count) }

// Unwrap returns the network.
func (p *SlotGroup) Unwrap() []Predictor { return []Predictor{p.Network} }

// Close implements Predictor.
func (p *SlotGroup) Close() error {
	p.once.Do(func() {
		p.mu.Lock()
		p.open--
		last := p.open == 0
		p.mu.Unlock()
		if last {
			p.closed = p.Network.Close()
		}
	})
	return p.closed
}
