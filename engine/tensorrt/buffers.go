package tensorrt

import (
	"slices"
	"sync"
	"sync/atomic"
	"unsafe"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
)

// buffers holds the memory of Engine.Alloc. Readers need no lock, because every image of every frame is looked up.
type buffers struct {
	mu     sync.Mutex // for writers
	list   atomic.Pointer[[]*cuda.HostMemory]
	closed bool // under mu
}

const pageSize = 4096

// alloc returns pinned memory.
func (b *buffers) alloc(device *cuda.Device, size int) (*engine.Buffer, error) {
	if size < 1 {
		return nil, newError("alloc", engine.ErrShape, "", "%d bytes requested", size)
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return nil, newError("alloc", engine.ErrClosed, "", "the engine is closed")
	}
	// The driver aligns small blocks to less than a page, but file and camera readers need page alignment.
	memory, err := device.AllocHost(size + pageSize - 1)
	if err != nil {
		return nil, err
	}
	clear(memory.Data)
	skip := int(-start(memory.Data) & (pageSize - 1))
	list := append(slices.Clone(b.all()), memory)
	slices.SortFunc(list, func(x, y *cuda.HostMemory) int {
		if start(x.Data) < start(y.Data) {
			return -1
		}
		return 1
	})
	b.list.Store(&list)
	return engine.NewBuffer(memory.Data[skip:skip+size:skip+size], func() { b.free(memory) }), nil
}

func (b *buffers) free(memory *cuda.HostMemory) {
	b.mu.Lock()
	defer b.mu.Unlock()
	list := slices.DeleteFunc(slices.Clone(b.all()), func(m *cuda.HostMemory) bool { return m == memory })
	b.list.Store(&list)
	_ = memory.Free() // the caller of Buffer.Free could not handle an error
}

// close frees the remaining memory.
func (b *buffers) close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, memory := range b.all() {
		_ = memory.Free()
	}
	b.list.Store(nil)
}

func (b *buffers) all() []*cuda.HostMemory {
	if list := b.list.Load(); list != nil {
		return *list
	}
	return nil
}

// address returns the device address of data; false if the memory is not from Alloc.
func (b *buffers) address(data []byte) (uint64, bool) {
	list := b.all()
	first, last := start(data), start(data)+uintptr(len(data))
	low, high := 0, len(list)
	for low < high { // the last buffer that starts at or before data
		middle := (low + high) / 2
		if start(list[middle].Data) <= first {
			low = middle + 1
		} else {
			high = middle
		}
	}
	if low == 0 {
		return 0, false
	}
	m := list[low-1]
	offset := first - start(m.Data)
	if last > start(m.Data)+uintptr(len(m.Data)) {
		return 0, false
	}
	return m.Address + uint64(offset), true
}

func start(data []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(data))) }
