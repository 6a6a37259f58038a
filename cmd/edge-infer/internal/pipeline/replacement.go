package pipeline

import (
	"context"
	"fmt"
	"time"
)

// giveUp is how long every request may fail before the predictor is at fault.
const giveUp = 10 * time.Second

// replacement is a predictor that waits to take over.
type replacement struct {
	predictor Predictor
	done      chan<- struct{}
}

// Replace makes the frame loop continue with another predictor as soon as the requests in flight are done; no frame is lost. It returns
// when the old predictor is no longer used, or when ctx ends. Buffers of the old one stay in use until the cameras release them.
func (p *Pipeline) Replace(ctx context.Context, next Predictor) error {
	done := make(chan struct{})
	p.replacement.Store(&replacement{next, done})
	return p.await(ctx, done)
}

// await wakes the loop and waits until it has put a change in place, or until ctx ends.
func (p *Pipeline) await(ctx context.Context, done <-chan struct{}) error {
	p.Wakeup.Signal()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// Start ends the Fault that the loop was opened with: it goes on with a predictor, perhaps with other classes, and with cameras for it. It
// returns as Arrange does. A predictor that was replaced before is not one for Start.
func (p *Pipeline) Start(ctx context.Context, next Predictor, cameras []Camera) error {
	model := next.Model()
	streams, err := p.newStreams(*p.streams.Load(), cameras, model.Metadata.Labels)
	if err != nil {
		return err
	}
	p.arrangement.Store(&arrangement{streams, make(chan struct{})}) // before the predictor, which must not infer for the cameras of before
	return p.Replace(ctx, next)
}

// takeOver puts the replacement in place. Nothing is in flight.
func (p *Pipeline) takeOver(r *replacement) {
	p.Predictor = r.predictor
	p.contradiction, p.fault = nil, nil
	p.failures.clear()
	p.inference.Store(0)
	p.prepare()
	p.lockThread()
	close(r.done)
}

// change stops using a predictor that is at fault, and puts another predictor and other cameras in place. The error ends Run.
func (p *Pipeline) change() error {
	if p.fault == nil {
		p.fault = p.newFault()
		if p.fault != nil {
			if p.OnFault == nil {
				return p.fault
			}
			p.finishAll()
			p.DeviceShare.release()
			p.OnFault(p.fault)
		}
	}
	if next := p.replacement.Load(); next != nil {
		p.finishAll()
		p.takeOver(next)
		p.replacement.CompareAndSwap(next, nil)
		p.oldest = 0
	}
	if change := p.arrangement.Load(); change != nil {
		p.finishAll()
		p.setStreams(change)
		p.arrangement.CompareAndSwap(change, nil)
	}
	return nil
}

// newFault returns why the predictor can no longer be used, nil while it can.
func (p *Pipeline) newFault() error {
	switch {
	case p.contradiction != nil:
		return p.contradiction
	case p.failures.exceeded(giveUp):
		return fmt.Errorf("engine failed for %v: %w", giveUp, p.failures.last)
	}
	return nil
}

// dropWaiting releases the frames of every camera while the predictor is at fault, and counts them as lost.
func (p *Pipeline) dropWaiting() {
	for _, camera := range *p.streams.Load() {
		frame, ok := camera.Source.Take()
		if !ok {
			p.finishStopped(camera)
			continue
		}
		frame.Release()
		camera.meter.fail(p.fault)
	}
}
