package device

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/stage"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// Set is the devices of a run. A camera belongs to one of them from its beginning to its end.
type Set struct {
	All  []*Device // set by Open, before the first camera
	open bool      // the frame loops may run
	// Clocks are those of all frame loops, set by Open.
	Clocks *stage.Times
	// Look finds out how large the images of the cameras are, for a network that leaves its size open.
	Look func(view *config.Config) []engine.Size

	// Thread gives the calling thread the scheduling of a frame loop, see pipeline.Pipeline; nil for none.
	Thread func() (review func())

	groups []*group // set by Open

	mu     sync.Mutex
	places map[pipeline.Source]*Device
}

// Decoded is the decoded threshold: less than the reported one when objects are tracked.
func Decoded(c *config.Config) float64 {
	if c.Detect.Track {
		return pipeline.MinScore(c.Detect.Confidence)
	}
	return c.Detect.Confidence
}

// Open opens the networks of every view of the cameras on its devices. A backend that was chosen automatically need not be the last one:
// upgrade follows. One that is named builds the plan that it lacks first, of which steps hears.
func (s *Set) Open(ctx context.Context, c *config.Config, steps progress.Reporter, logger *slog.Logger) error {
	s.Clocks = stage.New()
	begun := 0 // devices, as the views before spread over them
	for _, view := range network.Views(c) {
		p, err := s.prepare(view, begun, steps, logger)
		if err != nil {
			return err
		}
		s.groups, begun = join(s.groups, p), begun+len(p.each)
	}
	for _, g := range s.groups {
		for _, p := range g.views {
			if err := s.openView(ctx, g, p, steps, logger); err != nil {
				return err
			}
		}
	}
	s.share()
	return nil
}

// prepared is a view whose model has been read.
type prepared struct {
	view    *config.Config
	options predict.Options
	each    []predict.Options // by device
	fitted  bool
}

// prepare reads the model of a view.
func (s *Set) prepare(c *config.Config, first int, steps progress.Reporter, logger *slog.Logger) (*prepared, error) {
	p := &prepared{view: c}
	options := network.Options(c, Decoded(c), logger)
	options.Build, options.ReserveCPU = network.PlanBuilder{Progress: steps}.Build, c.Engine.Backend == config.Auto
	options.ProbeSizes = func() []engine.Size {
		if side := c.Inference.Tile; side > 0 {
			return []engine.Size{{Width: side, Height: side}}
		}
		sizes := s.Look(c)
		p.fitted = sizes != nil
		return sizes
	}
	options.PerImageErrors = true // what servers do not do in time is gone: a newer frame is there
	if c.Remote.Fallback == config.Local {
		options.Standby = config.Auto
	}
	if err := options.Load(); err != nil {
		return nil, err
	}
	var err error
	p.options = options
	p.each, err = spread(options, c, first, logger)
	return p, err
}

// openView opens what looks at some cameras.
func (s *Set) openView(ctx context.Context, g *group, view *prepared, steps progress.Reporter, logger *slog.Logger) error {
	c := view.view
	for _, own := range view.each {
		d := &Device{view: c, group: g, options: g.of(own), Notify: new(capture.Wakeup)}
		sight := network.PredictorBuilder{Inference: c.Inference, OpenNetwork: g.each(func(ctx context.Context, options predict.Options) (*predict.Network, error) {
			n, quick, err := openFirst(ctx, options, steps, logger)
			g.quick = g.quick || quick
			return n, err
		})}
		p, err := sight.Open(ctx, d.options)
		if err != nil {
			return err
		}
		if err := p.Tune(own.Decoding); err != nil { // the group's threshold is the lowest of its views
			return errors.Join(err, p.Close())
		}
		d.Use(p)
		d.fitted, d.quick = view.fitted, g.quick
		d.Pipeline = &pipeline.Pipeline{
			Predictor: p, Labels: p.Model().Metadata.Labels, Wakeup: d.Notify, SetupThread: s.Thread, Logger: logger, Stages: s.Clocks,
			Confidence: float32(c.Detect.Confidence), MinScore: float32(Decoded(c)),
		}
		s.All = append(s.All, d)
	}
	return nil
}

// share has frame loops of one piece of hardware take turns.
func (s *Set) share() {
	loops := map[int][]*Device{}
	for _, d := range s.All {
		loops[d.options.Device] = append(loops[d.options.Device], d)
	}
	for _, all := range loops {
		if len(all) < 2 {
			continue
		}
		turns := new(pipeline.SharedDevice)
		for _, d := range all {
			d.DeviceShare = turns.Join()
		}
	}
}

// Choose gives the device of a new camera of a view: the one with the fewest. Every view has been opened.
func (s *Set) Choose(view *config.Config) *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	counts := map[*Device]int{}
	for _, d := range s.places {
		counts[d]++
	}
	able := slices.DeleteFunc(slices.Clone(s.All), func(d *Device) bool { return !network.Same(d.view, view) })
	return slices.MinFunc(able, func(a, b *Device) int { return counts[a] - counts[b] })
}

// At is where a camera's images go, nil for one that has no place.
func (s *Set) At(source pipeline.Source) *Device {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.places[source]
}

// Put says that a camera belongs to a device.
func (s *Set) Put(source pipeline.Source, d *Device) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.places == nil {
		s.places = map[pipeline.Source]*Device{}
	}
	s.places[source] = d
}

// cut gives each device its part of the cameras, and forgets those that are not among them.
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

// Of is the device that has the camera, nil for none.
func (s *Set) Of(camera string) *Device {
	for _, d := range s.All {
		if _, found := d.Settings(camera); found {
			return d
		}
	}
	return nil
}

// Ready makes every frame loop ready to run on its cameras. Sinks take one frame at a time, whichever device it comes from.
func (s *Set) Ready(cameras []pipeline.Camera, sinks []pipeline.Sink) error {
	if len(s.All) > 1 {
		sinks = []pipeline.Sink{&sink.Serial{Next: sinks}}
	}
	parts := s.cut(cameras)
	for _, d := range s.All {
		d.Cameras, d.Sinks = parts[d], sinks
		if err := d.Pipeline.Open(); err != nil {
			return err
		}
	}
	s.open = true
	return nil
}

// Run runs every frame loop and returns when all have ended. The first one to fail ends the others.
func (s *Set) Run(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(s.All))
	for _, d := range s.All {
		go func() {
			err := d.Pipeline.Run(ctx, ended)
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var all []error
	for range s.All {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// Tune has every device decode as a configuration says. An error changes nothing.
func (s *Set) Tune(next, was *config.Config) error {
	for i, d := range s.All {
		if err := d.Running().Tune(d.Decoding(next)); err != nil {
			for _, tuned := range s.All[:i] {
				err = errors.Join(err, tuned.Running().Tune(tuned.Decoding(was)))
			}
			return err
		}
	}
	return nil
}

// Arrange tells every frame loop its part of an arrangement.
func (s *Set) Arrange(ctx context.Context, a pipeline.Arrangement) error {
	parts := s.cut(a.Cameras)
	for _, d := range s.All {
		if err := d.Pipeline.Arrange(ctx, pipeline.Arrangement{Cameras: parts[d], Confidence: a.Confidence}); err != nil {
			return err
		}
	}
	return nil
}

// Change gives a camera new settings.
func (s *Set) Change(camera string, change func(*pipeline.Settings)) error {
	if d := s.Of(camera); d != nil {
		return d.Change(camera, change)
	}
	return fmt.Errorf("no camera %q", camera)
}

// Left ends what a camera showed.
func (s *Set) Left(camera string) {
	if d := s.Of(camera); d != nil {
		d.EndObjects(camera)
	}
}

// Settings are those of a camera; false for one that is not there.
func (s *Set) Settings(camera string) (pipeline.Settings, bool) {
	if d := s.Of(camera); d != nil {
		return d.Settings(camera)
	}
	return pipeline.Settings{}, false
}

// Slow multiplies the interval of every camera.
func (s *Set) Slow(factor int) {
	for _, d := range s.All {
		d.SetSlowdown(factor)
	}
}

// Slowdown multiplies the time between two frames of a camera now; 1 for full speed.
func (s *Set) Slowdown(camera string) int {
	if d := s.Of(camera); d != nil {
		return d.Slowdown(camera)
	}
	return 1
}

// Stats is what each camera came to since the previous call.
func (s *Set) Stats() (all []pipeline.CameraStats) {
	for _, d := range s.All {
		all = append(all, d.Stats()...)
	}
	return all
}

// Totals is what each camera came to since it was there.
func (s *Set) Totals() (all []pipeline.CameraStats) {
	for _, d := range s.All {
		all = append(all, d.Totals()...)
	}
	return all
}

// Model is what runs on the first device now, with the names of all devices.
func (s *Set) Model() predict.Model {
	model := s.All[0].Running().Model()
	var names []string
	for _, d := range s.All {
		if name := s.name(d); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	model.Device = strings.Join(names, "; ")
	return model
}

// Views are the first devices of each way in which cameras are looked at.
func (s *Set) Views() (firsts []*Device) {
	for _, d := range s.All {
		if !slices.ContainsFunc(firsts, func(other *Device) bool { return other.view == d.view }) {
			firsts = append(firsts, d)
		}
	}
	return firsts
}

// Sees says what looks at a camera; empty where the same looks at all.
func (s *Set) Sees(camera string) string {
	if d := s.Of(camera); d != nil && len(s.Views()) > 1 {
		return d.Sees()
	}
	return ""
}

// Looking is the model that looks at a view; nil where none does.
func (s *Set) Looking(view *config.Config) *predict.Model {
	for _, d := range s.All {
		if network.Same(d.view, view) {
			m := d.Running().Model()
			return &m
		}
	}
	return nil
}

// Hardware is what a camera's frames are computed on; empty for one that is not there.
func (s *Set) Hardware(camera string) string {
	if d := s.Of(camera); d != nil {
		return s.name(d)
	}
	return ""
}

// name tells GPUs of one name apart by their numbers.
func (s *Set) name(d *Device) string {
	model := d.Running().Model()
	if len(s.All) > 1 && model.Backend == tensorrt.Name {
		return fmt.Sprintf("GPU %d, %s", d.options.Device, model.Device)
	}
	return model.Device
}

// InferenceTime is that of the slowest device.
func (s *Set) InferenceTime() time.Duration {
	longest := time.Duration(0)
	for _, d := range s.All {
		longest = max(longest, d.InferenceTime())
	}
	return longest
}

// FirstFrame is when the first device inferred a frame, 0 before.
func (s *Set) FirstFrame() time.Duration {
	first := time.Duration(0)
	for _, d := range s.All {
		if t := d.FirstFrame(); t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

// FrameMemory is how many bytes of the devices' memory the cameras hold.
func (s *Set) FrameMemory() (bytes int64) {
	for _, d := range s.All {
		bytes += d.Memory.Lent()
	}
	return bytes
}

// Upgradable reports whether TensorRT could take over somewhere if its plan were built.
func (s *Set) Upgradable() bool {
	return slices.ContainsFunc(s.All, func(d *Device) bool {
		sight := network.PredictorBuilder{Inference: d.view.Inference}
		return d.quick || !d.onTensorRT() && sight.NeedsPlan(&d.options)
	})
}

// Opened reports whether the frame loops may run.
func (s *Set) Opened() bool { return s.open }

// Close closes the predictors. The cameras must be closed before.
func (s *Set) Close() error {
	var errs []error
	for _, d := range s.All {
		errs = append(errs, d.Memory.Close())
	}
	for _, g := range s.groups {
		errs = append(errs, g.Close())
	}
	return errors.Join(errs...)
}
