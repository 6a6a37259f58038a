package main

import (
	"context"
	"sync"
	"sync/atomic"

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

// upgrade builds the plan that TensorRT lacks while another backend serves, and then has TensorRT take over. It returns when that is done, has
// failed, or ctx ends.
func (d *daemon) upgrade(ctx context.Context) {
	defer d.building.Store(nil)
	builder, err := child()
	if err == nil {
		_, err = builder.Build(ctx, cachedPlan(d.options, d.logger), "", tensorrt.Cache{}, func(p tensorrt.Progress) {
			text := phase(p)
			d.building.Store(&text)
		})
	}
	if ctx.Err() != nil {
		return
	}
	if err != nil {
		d.logger.Error("engine plan not built, going on with "+d.pipeline.Model().Backend, "error", err)
		return
	}
	next, err := tensorrt.Options{Options: d.options, Log: d.logger}.Open()
	if err != nil {
		d.logger.Error("built engine plan not usable, going on with "+d.pipeline.Model().Backend, "error", err)
		return
	}
	d.changing.Lock()
	defer d.changing.Unlock()
	detector, err := openDetector(d.config, next.Model(), decodedScore(d.config))
	if err == nil {
		err = d.pipeline.Replace(ctx, next, detector)
	}
	if err != nil {
		_ = next.Close()
		return
	}
	d.memory.Lend(next)
	d.proof.Store(proof(next.Model(), d.logger))
	for _, m := range d.fleet.Members() {
		m.capture.Reallocate()
	}
	d.logger.Info("engine replaced", "engine", next.Model().Backend, "device", next.Model().Device, "precision", next.Model().Precision)
}

// building is what upgrade is doing, nil when it does nothing.
type building = atomic.Pointer[string]
