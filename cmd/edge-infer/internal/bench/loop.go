package bench

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/mqtt"
	embedded "github.com/edge-infer/edge-infer/mqtt/broker"
)

// Values of Bench.MQTT other than an address.
const (
	embeddedBroker = "embedded"
	noBroker       = "off"
)

// cameras returns the number of cameras for a batch: a request has at most one image of each, so at least as many as the batch. Paced runs
// use b.Cameras.
func (b *Bench) cameras(drive Drive, batch int) int {
	if drive == Paced {
		return b.Cameras
	}
	return max(b.Cameras, batch)
}

// loop measures the frame loop.
func (s *subject) loop(ctx context.Context, r *Result) error {
	var sinks []pipeline.Sink
	clocks := stage.New()
	if s.MQTT != noBroker {
		client, closeClient, err := s.publish(ctx, clocks)
		if err != nil {
			return err
		}
		defer closeClient()
		sinks = append(sinks, &sink.Publisher{Client: client})
	}
	q := &requests{Predictor: s.network, batch: s.batch, closed: r.Drive == Closed}
	l, err := newLoop(s.Bench, s.contender, q, r.Drive, s.pixels, sinks, clocks)
	if err != nil {
		return err
	}
	return l.measure(ctx, s.Bench, s.meter, r, s.held)
}

// publish opens a client for b.MQTT, or for an embedded broker. Acknowledgements are recorded in clocks.
func (b *Bench) publish(ctx context.Context, clocks *stage.Times) (client *mqtt.Client, end func(), err error) {
	var closers []func()
	end = func() {
		for i := len(closers) - 1; i >= 0; i-- {
			closers[i]()
		}
	}
	defer func() {
		if err != nil {
			end()
		}
	}()
	address := b.MQTT
	if address == embeddedBroker {
		broker := &embedded.Broker{Address: "127.0.0.1:0", Logger: b.Logger}
		if err := broker.Open(); err != nil {
			return nil, end, err
		}
		closers = append(closers, func() { _ = broker.Close() })
		address = broker.URL()
	}
	client = &mqtt.Client{
		Device: "bench", Link: mqtt.Link{Access: mqtt.Access{Brokers: []string{address}}, Logger: slog.New(slog.DiscardHandler)},
	}
	client.Acknowledged = func(took time.Duration) { clocks.Record(stage.Acknowledgement, took) }
	if err := client.Open(); err != nil {
		return nil, end, err
	}
	running, stop := context.WithCancel(ctx)
	closers = append(closers, func() { _ = client.Close() }, stop)
	go func() { _ = client.Run(running) }()
	return client, end, nil
}

// frameLoop is the frame loop under test.
type frameLoop struct {
	*pipeline.Pipeline
	notify   *capture.Wakeup
	threads  *process.ThreadScheduling
	sources  []*memoryCamera
	stages   *stages
	requests *requests
}

// newLoop makes a frame loop with cameras in memory.
func newLoop(
	b *Bench, c Contender, n *requests, drive Drive, images [][]byte, sinks []pipeline.Sink, clocks *stage.Times,
) (*frameLoop, error) {
	l := &frameLoop{notify: new(capture.Wakeup), threads: b.threads, stages: newStages(), requests: n}
	reported, labels := c.Detect.Confidence, n.Model().Metadata.Labels
	l.Pipeline = &pipeline.Pipeline{
		Predictor: n, Wakeup: l.notify, SetupThread: b.threads.SetupLoopThread, Sinks: append(sinks, l.stages),
		Confidence: float32(reported), MinScore: float32(pipeline.MinScore(reported)), Logger: b.Logger, Stages: clocks,
	}
	cameras := b.cameras(drive, n.batch)
	for i := range cameras {
		source := &memoryCamera{images: images, width: b.Width, height: b.Height, next: uint64(i)}
		if drive == Paced {
			source.interval = time.Duration(float64(time.Second) / b.Rate)
			source.start = capture.Monotonic() + int64(i)*int64(source.interval)/int64(cameras)
		}
		l.sources = append(l.sources, source)
		follower := &pipeline.Tracker{Labels: labels, Confidence: l.Confidence}
		if err := follower.Open(); err != nil {
			return nil, err
		}
		l.Cameras = append(l.Cameras, pipeline.Camera{
			Name: fmt.Sprintf("cam%d", i), Source: source, Lossless: drive != Paced, Tracker: follower,
		})
	}
	return l, l.Open()
}

// longestFrame is the time without a result after which a measurement ends.
const longestFrame = 30 * time.Second

// measure runs and measures the loop.
func (l *frameLoop) measure(ctx context.Context, b *Bench, m *meter, r *Result, held int64) error {
	run, stop := context.WithCancel(ctx)
	defer stop()
	if r.Drive == Paced {
		go pace(run, l.threads, l.notify, l.sources)
	}
	done := make(chan error, 1)
	go func() { done <- l.Run(run, nil) }()
	if err := l.wait(ctx, b.Warmup, done); err != nil {
		return err
	}
	first, late := l.Stats(), l.dropped()
	requestsBefore, imagesBefore := l.requests.counts()
	m.begin()
	l.Stages.Recent() // discards earlier values
	l.stages.on.Store(true)
	err := l.wait(ctx, b.Duration, done)
	for begun := time.Now(); err == nil && l.stages.frames.Load() == 0 && time.Since(begun) < longestFrame; {
		err = l.wait(ctx, extent{time: 50 * time.Millisecond}, done) // a busy machine may need longer for one frame
	}
	l.stages.on.Store(false)
	r.Frames, r.Clocks = l.stages.frames.Load(), clocked(l.Stages.Recent())
	if err != nil {
		return err
	}
	m.end(r, held)
	last := l.Stats()
	r.Skipped = l.dropped() - late
	requests, images := l.requests.counts()
	stop()
	if err := <-done; err != nil {
		return err
	}
	r.Cameras, r.Reason = len(l.sources), l.requests.failed
	r.Filled = float64(images-imagesBefore) / float64(max(requests-requestsBefore, 1))
	r.Latency, r.Stages = l.stages.total.Latency(), l.stages.medians()
	least, most := ^uint64(0), uint64(0)
	for i := range last {
		frames := last[i].Inferred - first[i].Inferred
		least, most = min(least, frames), max(most, frames)
	}
	fairness := float64(least) / float64(max(most, 1))
	r.Fairness = &fairness
	for _, camera := range l.Totals() {
		r.Lost += camera.DroppedError
	}
	return nil
}

// dropped returns the number of frames replaced by newer ones.
func (l *frameLoop) dropped() (sum uint64) {
	for _, source := range l.sources {
		sum += source.dropped.Load()
	}
	return sum
}

// wait waits for the extent, or returns the error that ended the loop.
func (l *frameLoop) wait(ctx context.Context, e extent, done <-chan error) error {
	var enough <-chan time.Time
	var reached <-chan struct{}
	if e.frames > 0 {
		reached = l.stages.after(e.frames)
	} else {
		enough = time.After(e.time)
	}
	select {
	case <-enough:
		return nil
	case <-reached:
		return nil
	case err := <-done:
		return cmp.Or(err, context.Cause(ctx))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
