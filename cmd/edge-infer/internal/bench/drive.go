package bench

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// served is whatever answers requests, without cameras and messages around it. A request holds the same number of images every time.
type served interface {
	slots() int
	submit(slot int) error
	// wait ends the slot's request and says how many of its images were lost, and why.
	wait(slot int) (timing engine.Timing, lost int, err error)
}

// pictured gives a predictor images that lie in memory.
type pictured struct {
	predict.Predictor
	images []engine.Image // twice over, so that each batch is a piece of it
	batch  int
	next   int
}

func newPictured(p predict.Predictor, images []engine.Image, batch int) *pictured {
	around := append([]engine.Image{}, images...)
	for len(around) < len(images)+batch {
		around = append(around, images...)
	}
	return &pictured{Predictor: p, images: around[:len(images)+batch], batch: batch}
}

func (p *pictured) slots() int { return p.Slots() }

func (p *pictured) submit(slot int) error {
	first := p.next
	p.next = (p.next + p.batch) % (len(p.images) - p.batch)
	return p.Submit(slot, p.images[first:first+p.batch])
}

func (p *pictured) wait(slot int) (engine.Timing, int, error) {
	r, err := p.Wait(slot)
	if err != nil {
		return engine.Timing{}, p.batch, err
	}
	lost := 0
	for i := range r.Results {
		if r.Results[i].Err != nil {
			lost, err = lost+1, r.Results[i].Err
		}
	}
	return r.Timing, lost, err
}

// driver sends requests one way and notes how long each took.
type driver struct {
	served
	batch    int
	drive    result.Drive
	interval time.Duration // between the moments at which paced requests are due
	network  bool          // a request took what the network on its device took

	latencies *result.Histogram
	busy      time.Duration // of the network, summed
	requests  uint64
	lost      uint64
	failed    error
	started   []int64 // by slot, CLOCK_MONOTONIC
}

// run goes on for the extent and ends what is in flight. Latencies are those of this run.
func (d *driver) run(ctx context.Context, e extent) error {
	d.latencies, d.busy, d.requests = result.NewHistogram(), 0, 0
	slots := d.slots()
	if d.drive != result.FlatOut {
		slots = 1
	}
	d.started = make([]int64, slots)
	begun := capture.Monotonic()
	oldest, busy := 0, 0
	for number := int64(0); ctx.Err() == nil && !e.over(d.requests*uint64(d.batch), time.Duration(capture.Monotonic()-begun)); {
		if busy == slots {
			d.finish(oldest)
			oldest, busy = (oldest+1)%slots, busy-1
			continue
		}
		slot := (oldest + busy) % slots
		d.started[slot] = capture.Monotonic()
		if d.drive == result.Paced {
			d.started[slot] = begun + number*int64(d.interval)
			number++
			sleepUntil(d.started[slot])
		}
		if err := d.submit(slot); err != nil {
			d.failed, d.lost = err, d.lost+uint64(d.batch)
			d.requests++
			continue
		}
		busy++
	}
	for ; busy > 0; busy-- {
		d.finish(oldest)
		oldest = (oldest + 1) % slots
	}
	return ctx.Err()
}

func (d *driver) finish(slot int) {
	timing, lost, err := d.wait(slot)
	d.requests++
	if err != nil {
		d.failed, d.lost = err, d.lost+uint64(lost)
	}
	if lost == d.batch {
		return
	}
	network := time.Duration(timing.Inference)
	d.busy += network
	if d.network {
		d.latencies.Add(network)
		return
	}
	d.latencies.Add(time.Duration(capture.Monotonic() - d.started[slot]))
}

// sleepUntil sleeps in the kernel: Go's timers may be a millisecond late, which would be measured as latency.
func sleepUntil(moment int64) {
	due := unix.NsecToTimespec(moment)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // of whatever thread this runs on; else it may be late by 50 microseconds
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) == unix.EINTR {
	}
}

// measure warms up and measures.
func (d *driver) measure(ctx context.Context, b *Bench, m *meter, r *result.Result, held int64) error {
	if err := d.run(ctx, b.Warmup); err != nil {
		return context.Cause(ctx)
	}
	m.begin()
	if err := d.run(ctx, b.Duration); err != nil {
		return context.Cause(ctx)
	}
	r.Frames = uint64(d.latencies.Count()) * uint64(d.batch)
	m.end(r, held)
	r.Lost, r.Reason, r.Filled = d.lost, d.failed, float64(d.batch)
	r.Latency = d.latencies.Latency()
	if d.network && d.busy > 0 {
		r.FPS = float64(r.Frames) / d.busy.Seconds() // what the network would do if nothing kept it waiting
	}
	return nil
}
