package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// loop is the engine of one device with the frame loop that keeps it busy.
type loop struct {
	*pipeline.Pipeline
	options engine.Options
	memory  memory
	notify  chan struct{}
	refined bool // it runs the plan of full effort; upgrade goroutine only
}

// loops are the frame loops of a run, one for each device. A camera belongs to one of them from its beginning to its end.
type loops struct {
	all []*loop // set before the first camera

	mu     sync.Mutex
	places map[pipeline.Source]*loop
}

// deviceNumbers are the GPUs that the configuration names. One alone may be missing, because another backend can take its place; several are
// only what was meant when all of them are there.
func deviceNumbers(c *config.Config) ([]int, error) {
	numbers, all := c.Engine.Devices()
	if !all && len(numbers) == 1 {
		return numbers, nil
	}
	report := cuda.Probe()
	switch {
	case all && len(report.Devices) == 0:
		return []int{0}, nil
	case all:
		numbers = nil
		for _, device := range report.Devices {
			numbers = append(numbers, device.Ordinal)
		}
		return numbers, nil
	case report.Err() != nil:
		return nil, report.Err()
	}
	for _, number := range numbers {
		if number >= len(report.Devices) {
			return nil, fmt.Errorf("--device %s: there is no GPU %d, this machine has %d (edge-infer devices lists them)", c.Engine.Device, number, len(report.Devices))
		}
	}
	return numbers, nil
}

// spread cuts options into those of each device. No device is without a camera.
func spread(options engine.Options, c *config.Config, logger *slog.Logger) ([]engine.Options, error) {
	numbers, err := deviceNumbers(c)
	if err != nil {
		return nil, err
	}
	if cameras := len(c.Cameras); len(numbers) > cameras {
		logger.Info("more devices than cameras", "devices", len(numbers), "used", cameras)
		numbers = numbers[:cameras]
	}
	if n := len(numbers); n > 1 {
		if c.Engine.Batch == 0 {
			options.MaxBatch = (options.MaxBatch + n - 1) / n
		}
		if options.Threads == 0 { // should the engines turn out to be the CPU's
			options.Threads = max(1, runtime.NumCPU()/n)
		}
	}
	var each []engine.Options
	for _, number := range numbers {
		options.Device = number
		each = append(each, options)
	}
	return each, nil
}

// choose gives the loop of a new camera: the one with the fewest.
func (l *loops) choose() *loop {
	l.mu.Lock()
	defer l.mu.Unlock()
	counts := map[*loop]int{}
	for _, at := range l.places {
		counts[at]++
	}
	return slices.MinFunc(l.all, func(a, b *loop) int { return counts[a] - counts[b] })
}

// put says that a camera belongs to a loop.
func (l *loops) put(source pipeline.Source, at *loop) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.places == nil {
		l.places = map[pipeline.Source]*loop{}
	}
	l.places[source] = at
}

// cut gives each loop its part of the cameras, and forgets those that are not among them.
func (l *loops) cut(cameras []pipeline.Camera) map[*loop][]pipeline.Camera {
	l.mu.Lock()
	defer l.mu.Unlock()
	parts, places := map[*loop][]pipeline.Camera{}, map[pipeline.Source]*loop{}
	for _, camera := range cameras {
		at := l.places[camera.Source]
		places[camera.Source] = at
		parts[at] = append(parts[at], camera)
	}
	l.places = places
	return parts
}

// of is the loop that has the camera, nil for none.
func (l *loops) of(camera string) *loop {
	for _, at := range l.all {
		if _, found := at.Settings(camera); found {
			return at
		}
	}
	return nil
}

// Open makes every loop ready to run on its cameras. Sinks take one frame at a time, whichever loop it comes from.
func (l *loops) Open(cameras []pipeline.Camera, sinks []pipeline.Sink) error {
	if len(l.all) > 1 {
		sinks = []pipeline.Sink{&turnstile{sinks: sinks}}
	}
	parts := l.cut(cameras)
	for _, at := range l.all {
		at.Cameras, at.Sinks = parts[at], sinks
		if err := at.Pipeline.Open(); err != nil {
			return err
		}
	}
	return nil
}

// Run runs every loop and returns when all have ended. The first one to fail ends the others.
func (l *loops) Run(ctx context.Context, ended <-chan struct{}) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	errs := make(chan error, len(l.all))
	for _, at := range l.all {
		go func() {
			err := at.Pipeline.Run(ctx, ended)
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

// Arrange tells every loop its part of an arrangement. decoder makes the decoder of a loop's model anew, nil to keep what there is.
func (l *loops) Arrange(ctx context.Context, a pipeline.Arrangement, decoder func(engine.Model) (*pipeline.Detector, error)) error {
	made := map[*loop]*pipeline.Detector{}
	if decoder != nil {
		for _, at := range l.all {
			detector, err := decoder(at.Model())
			if err != nil {
				return err
			}
			made[at] = detector
		}
	}
	parts := l.cut(a.Cameras)
	for _, at := range l.all {
		part := pipeline.Arrangement{Cameras: parts[at], Confidence: a.Confidence}
		if made[at] != nil {
			part.Decoder = made[at]
		}
		if err := at.Pipeline.Arrange(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// Change gives a camera new settings.
func (l *loops) Change(camera string, change func(*pipeline.Settings)) error {
	if at := l.of(camera); at != nil {
		return at.Change(camera, change)
	}
	return fmt.Errorf("no camera %q", camera)
}

// Settings are those of a camera; false for one that is not there.
func (l *loops) Settings(camera string) (pipeline.Settings, bool) {
	if at := l.of(camera); at != nil {
		return at.Settings(camera)
	}
	return pipeline.Settings{}, false
}

// Slow multiplies the interval of every camera.
func (l *loops) Slow(factor int) {
	for _, at := range l.all {
		at.Slow(factor)
	}
}

// Stats and Totals are those of all cameras.
func (l *loops) Stats() (all []pipeline.CameraStats) {
	for _, at := range l.all {
		all = append(all, at.Stats()...)
	}
	return all
}

// Totals is what each camera came to since it was there.
func (l *loops) Totals() (all []pipeline.CameraStats) {
	for _, at := range l.all {
		all = append(all, at.Totals()...)
	}
	return all
}

// Model is what runs on the first device, with the names of all devices.
func (l *loops) Model() engine.Model {
	model := l.all[0].Model()
	model.Device = l.devices((*loop).Model)
	return model
}

// devices names each device of the models once.
func (l *loops) devices(model func(*loop) engine.Model) string {
	var names []string
	for _, at := range l.all {
		names = append(names, l.device(at, model(at)))
	}
	return strings.Join(slices.Compact(names), "; ")
}

// Device is what a camera's frames are computed on; empty for one that is not there.
func (l *loops) Device(camera string) string {
	if at := l.of(camera); at != nil {
		return l.device(at, at.Model())
	}
	return ""
}

// device tells GPUs of one name apart by their numbers.
func (l *loops) device(at *loop, model engine.Model) string {
	if len(l.all) > 1 && model.Backend == "tensorrt" {
		return fmt.Sprintf("GPU %d, %s", at.options.Device, model.Device)
	}
	return model.Device
}

// InferenceTime is that of the slowest device.
func (l *loops) InferenceTime() time.Duration {
	longest := time.Duration(0)
	for _, at := range l.all {
		longest = max(longest, at.InferenceTime())
	}
	return longest
}

// FirstFrame is when the first device inferred a frame, 0 before.
func (l *loops) FirstFrame() time.Duration {
	first := time.Duration(0)
	for _, at := range l.all {
		if t := at.FirstFrame(); t > 0 && (first == 0 || t < first) {
			first = t
		}
	}
	return first
}

// upgradable reports whether TensorRT could take over somewhere if its plan were built.
func (l *loops) upgradable(logger *slog.Logger) bool {
	return slices.ContainsFunc(l.all, func(at *loop) bool { return at.Model().Backend != tensorrt.Name && lacksPlan(at.options, logger) })
}

// Close closes the engines. The cameras must be closed before.
func (l *loops) Close() error {
	var errs []error
	for _, at := range l.all {
		errs = append(errs, at.memory.Close())
	}
	return errors.Join(errs...)
}

// turnstile lets one loop at a time through to the sinks.
type turnstile struct {
	mu    sync.Mutex
	sinks []pipeline.Sink
}

// Frame implements pipeline.Sink.
func (t *turnstile) Frame(in *pipeline.Inferred) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, sink := range t.sinks {
		sink.Frame(in)
	}
}
