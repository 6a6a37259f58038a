package triton

import (
	"slices"
	"sync"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/preprocess"
)

// openGPU prepares a GPU whose memory servers on this machine read, where that was asked for. Without one images take the way that they
// took before, and withoutGPU says why.
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
		e.giveUpGPU(err)
	}
}

// withoutGPU says why images do not stay on the GPU that was asked for, empty when they may.
func (e *Engine) withoutGPU() string {
	if why := e.noGPU.Load(); why != nil {
		return *why
	}
	return ""
}

// giveUpGPU has the images of every slot take another way from now on. The first reason stays.
func (e *Engine) giveUpGPU(err error) {
	why := e.explain(err)
	e.noGPU.CompareAndSwap(nil, &why)
}

// closeGPU gives back what openGPU took, after the servers have closed it.
func (e *Engine) closeGPU() {
	e.locks.free()
	for _, s := range e.slots {
		_ = s.device.Close() // nothing can be done about it, and the context goes next
	}
	_ = e.gpu.Close()
}

// locks are the buffers that are page-locked.
type locks struct {
	mu   sync.Mutex
	list map[*cuda.HostMemory]bool
}

func (l *locks) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for m := range l.list {
		_ = m.Free() // the context goes next
	}
	l.list = nil
}

// locked page-locks a buffer where a GPU reads images from it.
func (e *Engine) locked(buffer *engine.Buffer) *engine.Buffer {
	if e.gpu == nil || e.withoutGPU() != "" {
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
			_ = memory.Free() // the caller of Buffer.Free could do nothing about it
		}
		e.locks.mu.Unlock()
		buffer.Free()
	})
}
