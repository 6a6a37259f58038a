package bench

import (
	"context"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// target processes requests without cameras and messages. All requests have the same number of images.
type target interface {
	slots() int
	submit(slot int) error
	// wait waits for the slot's request and returns the number of lost images with the reason.
	wait(slot int) (timing engine.Timing, lost int, err error)
}

// imageRequests feeds a predictor with images in memory.
type imageRequests struct {
	predict.Predictor
	images []engine.Image // followed by the first batch again, so that each batch is a slice
	batch  int
	next   int
}

func newImageRequests(p predict.Predictor, images []engine.Image, batch int) *imageRequests {
	around := append([]engine.Image{}, images...)
	for len(around) < len(images)+batch {
		around = append(around, images...)
	}
	return &imageRequests{Predictor: p, images: around[:len(images)+batch], batch: batch}
}

func (p *imageRequests) slots() int { return p.Slots() }

func (p *imageRequests) submit(slot int) error {
	first := p.next
	p.next = (p.next + p.batch) % (len(p.images) - p.batch)
	return p.Submit(slot, p.images[first:first+p.batch])
}

func (p *imageRequests) wait(slot int) (engine.Timing, int, error) {
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

// driver sends requests with one drive and records their latencies.
type driver struct {
	target
	batch    int
	drive    Drive
	interval time.Duration // between paced requests
	network  bool          // latency is the inference time on the device

	latencies *Histogram
	busy      time.Duration // of the network, summed
	requests  uint64
	lost      uint64
	failed    error
	started   []int64 // by slot, CLOCK_MONOTONIC
}

// run sends requests for the extent and waits for those in flight. It resets the latencies.
func (d *driver) run(ctx context.Context, e extent) error {
	d.latencies = NewHistogram()
	d.busy = 0
	d.requests = 0
	slots := d.slots()
	if d.drive != FlatOut {
		slots = 1
	}
	d.started = make([]int64, slots)
	begun := capture.Monotonic()
	oldest, busy := 0, 0
	for number := int64(0); ctx.Err() == nil && !e.reached(d.requests*uint64(d.batch), time.Duration(capture.Monotonic()-begun)); {
		if busy == slots {
			d.finish(oldest)
			oldest, busy = (oldest+1)%slots, busy-1
			continue
		}
		slot := (oldest + busy) % slots
		d.started[slot] = capture.Monotonic()
		if d.drive == Paced {
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

// sleepUntil sleeps in the kernel, because Go's timers may be a millisecond late, which would count as latency.
func sleepUntil(moment int64) {
	due := unix.NsecToTimespec(moment)
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // for the current thread; the default slack is 50 microseconds
	for unix.ClockNanosleep(unix.CLOCK_MONOTONIC, unix.TIMER_ABSTIME, &due, nil) == unix.EINTR {
	}
}

// measure warms up and measures one run.
func (d *driver) measure(ctx context.Context, b *Bench, m *meter, r *Result, held int64) error {
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
		r.FPS = float64(r.Frames) / d.busy.Seconds() // without waiting between requests
	}
	return nil
}
