package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// memory lends cameras the engine's memory, and keeps an engine open until the last buffer of it has come back.
type memory struct {
	mu      sync.Mutex
	current *lending
}

// lending is one engine with the buffers that are out.
type lending struct {
	engine  engine.Engine
	buffers int
	retired bool
}

// Alloc is a capture.Alloc.
func (m *memory) Alloc(size int) ([]byte, func(), error) {
	m.mu.Lock()
	from := m.current
	from.buffers++
	m.mu.Unlock()
	buffer, err := from.engine.Alloc(size)
	if err != nil {
		m.release(from)
		return nil, nil, err
	}
	return buffer.Data, func() {
		buffer.Free()
		m.release(from)
	}, nil
}

func (m *memory) release(from *lending) {
	m.mu.Lock()
	from.buffers--
	over := from.retired && from.buffers == 0
	m.mu.Unlock()
	if over {
		_ = from.engine.Close()
	}
}

// Lend gives out another engine's memory from now on. The engine before is closed as soon as nothing of it is out.
func (m *memory) Lend(e engine.Engine) {
	m.mu.Lock()
	old := m.current
	m.current = &lending{engine: e}
	over := false
	if old != nil {
		old.retired = true
		over = old.buffers == 0
	}
	m.mu.Unlock()
	if over {
		_ = old.engine.Close()
	}
}

// Close closes the engine in use. The cameras must be closed before.
func (m *memory) Close() error {
	m.mu.Lock()
	last := m.current
	m.current = nil
	m.mu.Unlock()
	if last == nil {
		return nil
	}
	return last.engine.Close()
}

// construction is what upgrade is doing; failed says that it waits after a failure.
type construction struct {
	text   string
	failed bool
}

// building is what upgrade is doing, nil when it does nothing.
type building = atomic.Pointer[construction]

// retries are the pauses after a build that failed. One that ran out of memory may do better when other programs have ended, but building takes
// minutes and much of the machine, and what has failed five times will fail again.
func retries() []time.Duration {
	return []time.Duration{15 * time.Second, time.Minute, 4 * time.Minute, 16 * time.Minute}
}

// upgrade builds the plan that TensorRT lacks while another backend serves, and then has TensorRT take over. It returns when that is done, or
// when ctx ends.
func (d *daemon) upgrade(ctx context.Context) {
	defer d.building.Store(nil)
	pauses := retries()
	for _, at := range d.pipeline.all {
		at.refined = at.Model().Backend == tensorrt.Name
	}
	for {
		err := d.replaceEngine(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if len(pauses) == 0 || errors.Is(err, engine.ErrUnsupported) {
			d.logger.Error("going on with "+d.pipeline.Model().Backend, "error", err)
			d.building.Store(&construction{"TensorRT is not used: " + err.Error(), true})
			<-ctx.Done()
			return
		}
		d.logger.Warn("going on with "+d.pipeline.Model().Backend+" for now", "error", err, "retry", pauses[0])
		again := time.Now().Add(pauses[0]).Format(time.TimeOnly)
		d.building.Store(&construction{"TensorRT is tried again at " + again + ": " + err.Error(), true})
		if wait(ctx, pauses[0]) != nil {
			return
		}
		pauses = pauses[1:]
	}
}

// quickLevel is the optimization level of the plan that serves until the one of full effort is there: the builder takes the first kernels that
// work, within seconds.
const quickLevel = 0

// replaceEngine has every frame loop that is not on TensorRT yet go on with it: first with a plan that is built quickly, then with the one of
// full effort, which later starts find in the cache. Devices of one kind share plans.
func (d *daemon) replaceEngine(ctx context.Context) error {
	library, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: d.pipeline.all[0].options.Library})
	if err != nil {
		return err
	}
	if library.Version.HasLevels() {
		level := quickLevel
		for _, at := range d.pipeline.all {
			if at.Model().Backend == tensorrt.Name {
				continue
			}
			if err := d.replaceOne(ctx, at, &level); err != nil {
				return err
			}
		}
	}
	for _, at := range d.pipeline.all {
		if at.refined {
			continue
		}
		err := d.replaceOne(ctx, at, nil)
		if err != nil && ctx.Err() == nil && at.Model().Backend == tensorrt.Name {
			d.logger.Warn("going on with the quickly built plan", "error", err)
			continue
		}
		if err != nil {
			return err
		}
		at.refined = true
	}
	return nil
}

// openPlan opens TensorRT's engine for options, and builds its plan first where there is none. level is the builder's, nil for its own.
func (d *daemon) openPlan(ctx context.Context, options engine.Options, level *int) (engine.Engine, error) {
	open := tensorrt.Options{Options: options, Build: tensorrt.BuildOptions{Level: level}, Log: d.logger}
	what := "building the engine plan"
	if level != nil {
		what = "building a quick engine plan"
	}
	next, err := open.Open()
	if !errors.Is(err, tensorrt.ErrNoPlan) {
		return next, err
	}
	builder, err := child()
	if err != nil {
		return nil, err
	}
	build := cachedPlan(options, d.logger)
	build.Level = level
	d.logger.Info(what, "model", options.Path, "serving", d.pipeline.Model().Backend)
	_, err = builder.Build(ctx, build, "", tensorrt.Cache{}, func(p tensorrt.Progress) {
		d.building.Store(&construction{text: phase(what, p)})
	})
	if err != nil {
		return nil, fmt.Errorf("engine plan not built: %w", err)
	}
	if next, err = open.Open(); err != nil {
		return nil, fmt.Errorf("built engine plan not usable: %w", err)
	}
	return next, nil
}

// replaceOne has one frame loop go on with the plan of a level.
func (d *daemon) replaceOne(ctx context.Context, at *loop, level *int) error {
	next, err := d.openPlan(ctx, at.options, level)
	if err != nil {
		return err
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	detector, err := openDetector(d.config, next.Model(), decodedScore(d.config))
	if err == nil {
		err = at.Replace(ctx, next, detector)
	}
	if err != nil {
		return errors.Join(err, next.Close())
	}
	at.memory.Lend(next)
	d.proof.Store(proof(next.Model(), d.logger))
	for _, m := range d.fleet.Members() {
		if d.pipeline.of(m.config.Name) == at {
			m.capture.Reallocate()
		}
	}
	d.logger.Info("engine replaced", "engine", next.Model().Backend, "device", next.Model().Device, "precision", next.Model().Precision)
	return nil
}
