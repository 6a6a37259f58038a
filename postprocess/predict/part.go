package predict

import (
	"sync"

	"github.com/edge-infer/edge-infer/engine"
)

// SlotGroup is some of the slots of a network that several look with, each in a goroutine of its own and with its own way of decoding: the
// network's weights are there once. It is a Predictor whose slots are numbered from 0; Close of the last part closes the network.
type SlotGroup struct {
	*shared
	first, count int
	once         sync.Once
	closed       error
}

// shared is a network with how many of its parts are open.
type shared struct {
	*Network
	mu   sync.Mutex
	open int
}

// SplitSlots makes parts of a network, whose slots must be a multiple of them. The network belongs to the parts then.
func SplitSlots(n *Network, parts int) ([]*SlotGroup, error) {
	if parts < 1 || len(n.slots)%parts != 0 {
		return nil, n.refuse("divide", engine.ErrShape, "%d slots cannot be divided by %d", len(n.slots), parts)
	}
	of, all := &shared{Network: n, open: parts}, make([]*SlotGroup, parts)
	for i := range all {
		count := len(n.slots) / parts
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

// Tune implements Predictor. The other parts go on as they are.
func (p *SlotGroup) Tune(d Decoding) error { return p.tune(d, p.first, p.count) }

// Unwrap gives the network.
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
