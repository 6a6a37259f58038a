package triton

import (
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// openGPU prepares a GPU for sharing images with servers on this machine, if configured. If that fails, system memory is used and
// gpuDisabledReason returns the reason.
func (e *Engine) openGPU(ordinal int) {
	switch {
	case e.remote.SharedMemory != CUDAMemory, e.jpeg:
		return
	case !slices.ContainsFunc(e.endpoints, func(p *endpoint) bool { return p.address.loopback() }):
		return
	}
	e.ordinal = ordinal
	var err error
	if e.gpu, err = preprocess.NewDevice(ordinal, e.img); err == nil {
		for _, s := range e.slots {
			if s.device, err = e.gpu.NewBatch(e.model.MaxBatch); err != nil {
				break
			}
		}
	}
	if err != nil {
		e.disableGPU(err)
	}
}

// gpuDisabledReason returns why images are not shared in GPU memory, or "" if they may be.
func (e *Engine) gpuDisabledReason() string {
	if why := e.gpuDisabled.Load(); why != nil {
		return *why
	}
	return ""
}

// disableGPU stops sharing of GPU memory for all slots. The first reason is kept.
func (e *Engine) disableGPU(err error) {
	why := e.explain(err)
	e.gpuDisabled.CompareAndSwap(nil, &why)
}

// closeGPU frees what openGPU allocated. The servers must have unregistered it before.
func (e *Engine) closeGPU() {
	e.locks.free()
	for _, s := range e.slots {
		_ = s.device.Close() // the context is destroyed next
	}
	_ = e.gpu.Close()
}

// locks holds the page-locked buffers.
type locks struct {
	mu   sync.Mutex
	list map[*cuda.HostMemory]bool
}

func (l *locks) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.list {
		_ = m.Free() // the context is destroyed next
	}
	l.list = nil
}

// locked page-locks a buffer if the GPU reads images from it.
func (e *Engine) locked(buffer *engine.Buffer) *engine.Buffer {
	if e.gpu == nil || e.gpuDisabledReason() != "" {
		return buffer
	}
	memory := e.gpu.Lock(buffer.Data)
	if memory == nil {
		return buffer
	}
	e.locks.mu.Lock()
	defer e.locks.mu.Unlock()
	if e.locks.list == nil {
		e.locks.list = map[*cuda.HostMemory]bool{}
	}
	e.locks.list[memory] = true
	return engine.NewBuffer(buffer.Data, func() {
		e.locks.mu.Lock()
		if e.locks.list[memory] {
			delete(e.locks.list, memory)
			_ = memory.Free() // Buffer.Free returns no error
		}
		e.locks.mu.Unlock()
		buffer.Free()
	})
}
