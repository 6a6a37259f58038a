package daemon

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon/lending"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/sink"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

// device is a GPU or the CPU: its predictor, the frame loop that keeps it busy, and the memory that it lends cameras.
type device struct {
	*pipeline.Pipeline
	options predict.Options
	running atomic.Pointer[predict.Network] // that the frame loop goes on with; upgrade may replace it
	memory  lending.Memory
	notify  chan struct{}
	quick   bool // it began with a plan of little effort
	refined bool // it runs the plan of full effort; upgrade goroutine only
}

// network is what runs on the device now.
func (d *device) network() *predict.Network { return d.running.Load() }

// run puts a predictor in place.
func (d *device) use(n *predict.Network) {
	d.running.Store(n)
	d.memory.Lend(n)
}

// devices are those of a run. A camera belongs to one of them from its beginning to its end.
type devices struct {
	all   []*device // set before the first camera
	ready bool      // the frame loops may run

	mu     sync.Mutex
	places map[pipeline.Source]*device
}

// decoded is the decoded threshold: less than the reported one when objects are tracked.
func decoded(c *config.Config) float64 {
	if c.Detect.Track {
		return pipeline.Decoded(c.Detect.Confidence)
	}
	return c.Detect.Confidence
}

// Open opens the network on every device. A backend that was chosen automatically need not be the last one: upgrade follows. One that is
// named builds the plan that it lacks first, of which steps hears.
func (l *devices) Open(ctx context.Context, c *config.Config, steps progress.Reporter, logger *slog.Logger) error {
	options := network.Options(c, decoded(c), logger)
	options.Build, options.Yielding = network.Builder{Progress: steps}.Build, c.Engine.Backend == config.Auto
	if err := options.Load(); err != nil {
		return err
	}
	each, err := spread(options, c, logger)
	if err != nil {
		return err
	}
	for _, options := range each {
		n, quick, err := openFirst(ctx, options, steps, logger)
		if err != nil {
			return err
		}
		d := &device{options: options, quick: quick, notify: make(chan struct{}, 1)}
		d.use(n)
		d.Pipeline = &pipeline.Pipeline{
			Predictor: n, Labels: n.Model().Metadata.Labels, Notify: d.notify, Logger: logger,
			Reported: float32(c.Detect.Confidence), Decoded: float32(decoded(c)),
		}
		l.all = append(l.all, d)
	}
	return nil
}

// choose gives the device of a new camera: the one with the fewest.
func (l *devices) choose() *device {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[*device]int{}
	for _, d := range l.places {
		counts[d]++
	}
	return slices.MinFunc(l.all, func(a, b *device) int { return counts[a] - counts[b] })
}

// put says that a camera belongs to a device.
func (l *devices) put(source pipeline.Source, d *device) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil {
		l.places = map[pipeline.Source]*device{}
	}
	l.places[source] = d
}

// cut gives each device its part of the cameras, and forgets those that are not among them.
func (l *devices) cut(cameras []pipeline.Camera) map[*device][]pipeline.Camera {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts, places := map[*device][]pipeline.Camera{}, map[pipeline.Source]*device{}
	for _, camera := range cameras {
		d := l.places[camera.Source]
		places[camera.Source] = d
		parts[d] = append(parts[d], camera)
	}
	l.places = places
	return parts
}

// of is the device that has the camera, nil for none.
func (l *devices) of(camera string) *device {
	for _, d := range l.all {
		if _, found := d.Settings(camera); found {
			return d
		}
	}
	return nil
}

// Ready makes every frame loop ready to run on its cameras. Sinks take one frame at a time, whichever device it comes from.
func (l *devices) Ready(cameras []pipeline.Camera, sinks []pipeline.Sink) error {
	if len(l.all) > 1 {
		sinks = []pipeline.Sink{&sink.Serial{Next: sinks}}
	}
	parts := l.cut(cameras)
	for _, d := range l.all {
		d.Cameras, d.Sinks = parts[d], sinks
		if err := d.Pipeline.Open(); err != nil {
			return err
		}
	}
	l.ready = true
	return nil
}

// Run runs every frame loop and returns when all have ended. The first one to fail ends the others.
func (l *devices) Run(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(l.all))
	for _, d := range l.all {
		go func() {
			err := d.Pipeline.Run(ctx, ended)
			if err != nil {
				cancel()
			}
			errs <- err
		}()
	}
	var all []error
	for range l.all {
		all = append(all, <-errs)
	}
	return errors.Join(all...)
}

// Tune has every device decode otherwise. An error changes nothing.
func (l *devices) Tune(next, was predict.Decoding) error {
	for i, d := range l.all {
		if err := d.network().Tune(next); err != nil {
			for _, tuned := range l.all[:i] {
				err = errors.Join(err, tuned.network().Tune(was))
			}
			return err
		}
	}
	return nil
}

// Arrange tells every frame loop its part of an arrangement.
func (l *devices) Arrange(ctx context.Context, a pipeline.Arrangement) error {
	parts := l.cut(a.Cameras)
	for _, d := range l.all {
		if err := d.Pipeline.Arrange(ctx, pipeline.Arrangement{Cameras: parts[d], Reported: a.Reported}); err != nil {
			return err
		}
	}
	return nil
}

// Change gives a camera new settings.
func (l *devices) Change(camera string, change func(*pipeline.Settings)) error {
	if d := l.of(camera); d != nil {
		return d.Change(camera, change)
	}
	return fmt.Errorf("no camera %q", camera)
}

// Left ends what a camera showed.
func (l *devices) Left(camera string) {
	if d := l.of(camera); d != nil {
		d.Left(camera)
	}
}

// Settings are those of a camera; false for one that is not there.
func (l *devices) Settings(camera string) (pipeline.Settings, bool) {
	if d := l.of(camera); d != nil {
		return d.Settings(camera)
	}
	return pipeline.Settings{}, false
}

// Slow multiplies the interval of every camera.
func (l *devices) Slow(factor int) {
	for _, d := range l.all {
		d.Slow(factor)
	}
}

// Stats is what each camera came to since the previous call.
func (l *devices) Stats() (all []pipeline.CameraStats) {
	for _, d := range l.all {
		all = append(all, d.Stats()...)
	}
	return all
}

// Totals is what each camera came to since it was there.
func (l *devices) Totals() (all []pipeline.CameraStats) {
	for _, d := range l.all {
		all = append(all, d.Totals()...)
	}
	return all
}

// Model is what runs on the first device now, with the names of all devices.
func (l *devices) Model() predict.Model {
	model := l.all[0].network().Model()
	var names []string
	for _, d := range l.all {
		names = append(names, l.name(d))
	}
	model.Device = strings.Join(slices.Compact(names), "; ")
	return model
}

// Hardware is what a camera's frames are computed on; empty for one that is not there.
func (l *devices) Hardware(camera string) string {
	if d := l.of(camera); d != nil {
		return l.name(d)
	}
	return ""
}

// name tells GPUs of one name apart by their numbers.
func (l *devices) name(d *device) string {
	model := d.network().Model()
	if len(l.all) > 1 && model.Backend == tensorrt.Name {
		return fmt.Sprintf("GPU %d, %s", d.options.Device, model.Device)
	}
	return model.Device
}

// InferenceTime is that of the slowest device.
func (l *devices) InferenceTime() time.Duration {
	longest := time.Duration(0)
	for _, d := range l.all {
		longest = max(longest, d.InferenceTime())
	}
	return longest
}

// FirstFrame is when the first device inferred a frame, 0 before.
func (l *devices) FirstFrame() time.Duration {
	first := time.Duration(0)
	for _, d := range l.all {
		if t := d.FirstFrame(); t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

// FrameMemory is how many bytes of the devices' memory the cameras hold.
func (l *devices) FrameMemory() (bytes int64) {
	for _, d := range l.all {
		bytes += d.memory.Lent()
	}
	return bytes
}

// upgradable reports whether TensorRT could take over somewhere if its plan were built.
func (l *devices) upgradable() bool {
	return slices.ContainsFunc(l.all, func(d *device) bool {
		return d.quick || d.network().Model().Backend != tensorrt.Name && d.options.LacksPlan()
	})
}

// Close closes the predictors. The cameras must be closed before.
func (l *devices) Close() error {
	var errs []error
	for _, d := range l.all {
		errs = append(errs, d.memory.Close())
	}
	return errors.Join(errs...)
}
