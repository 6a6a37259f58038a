package device

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/internal/backoff"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Set is all devices. A camera stays on one of them as long as it captures.
type Set struct {
	Devices      // set by Open, before the first camera
	open    bool // the frame loops may run
	// Stages are the times of all frame loops, set by Open.
	Stages *stage.Times
	// ProbeSizes returns the sizes of the cameras' images, for a network that leaves its input size open; nil if they are not known.
	ProbeSizes func([]site.Camera) []engine.Size
	// SetupThread is as in pipeline.Pipeline.
	SetupThread func() (review func())

	// Secondary is as in pipeline.Pipeline.
	Secondary *pipeline.SecondaryStage
	// SecondaryStuck returns why secondary networks need a new process, nil while they do not; it may be nil.
	SecondaryStuck func() error
	// Restart asks for a new process: so many calls into predictors have not returned, or so much of the GPU is lost, that opening more of
	// them is no remedy. Restarts is how many there were: the pause before the next one grows with them, and cameras wait less for networks
	// that are being opened.
	Restart  func()
	Restarts int
	// Swap makes a device go on with another predictor, which is closed when that fails.
	Swap func(ctx context.Context, d *Device, next predict.Predictor) error

	engines   []*sharedEngines // set by Open
	logger    *slog.Logger     // set by Open
	building  sync.Mutex       // held while a plan is built
	reopening backoff.Exponential
	reopen    func(context.Context, *Device) (predict.Predictor, error) // opens the predictor of a device again; changed by tests only

	mu      sync.Mutex
	places  map[pipeline.Source]*Device
	started time.Time // of Run; only Run changes it
}

// Choose returns the device for a new camera with a network, which has been opened: the one with the fewest cameras.
func (s *Set) Choose(n *site.Network) *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[*Device]int{}
	for _, d := range s.places {
		counts[d]++
	}
	suitable := slices.DeleteFunc(slices.Clone(s.All), func(d *Device) bool { return !d.group.Network.Equal(n) })
	return slices.MinFunc(suitable, func(a, b *Device) int { return counts[a] - counts[b] })
}

// At returns the device that a source of frames belongs to, nil for none.
func (s *Set) At(source pipeline.Source) *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[source]
}

// Put assigns a source of frames to a device.
func (s *Set) Put(source pipeline.Source, d *Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = map[pipeline.Source]*Device{}
	}
	s.places[source] = d
}

// cut returns the cameras of each device, and forgets the sources that are not among them.
func (s *Set) cut(cameras []pipeline.Camera) map[*Device][]pipeline.Camera {
	s.mu.Lock()
	defer s.mu.Unlock()
	parts, places := map[*Device][]pipeline.Camera{}, map[pipeline.Source]*Device{}
	for _, camera := range cameras {
		d := s.places[camera.Source]
		places[camera.Source] = d
		parts[d] = append(parts[d], camera)
	}
	s.places = places
	return parts
}

// Ready prepares every frame loop for its cameras. Sinks get one frame at a time, whichever device it comes from.
func (s *Set) Ready(cameras []pipeline.Camera, sinks []pipeline.Sink) error {
	if len(s.All) > 1 {
		sinks = []pipeline.Sink{&sink.Serial{Next: sinks}}
	}
	parts := s.cut(cameras)
	for _, d := range s.All {
		d.Cameras = parts[d]
		d.Sinks = sinks
		d.Secondary = s.Secondary
		if err := d.Pipeline.Open(); err != nil {
			return err
		}
	}
	s.open = true
	return nil
}

// Run runs every frame loop and returns when all have ended. A network that fails is opened again while the others go on. The run ends with
// an error when no network is expected to recover.
func (s *Set) Run(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	s.started = time.Now()
	s.mu.Unlock()
	var exhausted atomic.Bool
	errs := make(chan error, len(s.All))
	var supervisors sync.WaitGroup
	supervisors.Go(func() { s.restartForSecondary(ctx) })
	for _, d := range s.All {
		go func() { errs <- d.Pipeline.Run(ctx, ended) }()
		supervisors.Go(func() {
			s.supervise(ctx, d, func() {
				exhausted.Store(true)
				cancel()
			})
		})
	}
	var all []error
	for range s.All {
		all = append(all, <-errs)
	}
	cancel()
	supervisors.Wait()
	err := errors.Join(all...)
	if exhausted.Load() && err == nil {
		for _, d := range s.All {
			err = errors.Join(err, d.fault.err)
		}
	}
	return err
}

// Tune makes every device decode as the site next specifies. On an error they decode as before, for the site old.
func (s *Set) Tune(next, old *site.Site) error {
	for i, d := range s.All {
		if err := d.Running().Tune(d.Decoding(next)); err != nil {
			for _, tuned := range s.All[:i] {
				err = errors.Join(err, tuned.Running().Tune(tuned.Decoding(old)))
			}
			return err
		}
	}
	return nil
}

// Arrange passes each frame loop its cameras.
func (s *Set) Arrange(ctx context.Context, cameras []pipeline.Camera) error {
	parts := s.cut(cameras)
	for _, d := range s.All {
		if err := d.Pipeline.Arrange(ctx, parts[d]); err != nil {
			return err
		}
	}
	return nil
}

// Opened reports whether the frame loops may run.
func (s *Set) Opened() bool { return s.open }

// Close closes the predictors. The cameras must be closed before.
func (s *Set) Close() error {
	var errs []error
	for _, d := range s.All {
		errs = append(errs, d.Memory.Close())
	}
	for _, e := range s.engines {
		errs = append(errs, e.Close())
	}
	return errors.Join(errs...)
}
