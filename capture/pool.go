package capture

import (
	"errors"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine"
)

// DefaultBuffers allows one frame being written, one waiting and two in the engine.
const DefaultBuffers = 4

const (
	// A pool shrinks after more than maxOversized consecutive images whose buffers were maxOversize times too large.
	maxOversize  = 4
	maxOversized = 250
)

// ErrNoBuffer reports that all buffers of a pool are lent.
var ErrNoBuffer = errors.New("every frame buffer is in use")

var errPoolClosed = errors.New("frame pool is closed")

// Alloc returns memory for one buffer and the function that frees it, which is called once. The memory must not be on the Go heap, because
// OpenCV keeps its address.
type Alloc func(size int) (data []byte, free func(), err error)

// Borrowed is an engine.DeviceMemory that lends a frame an image of a decoder. Return is called when the frame has been released, from any
// goroutine.
type Borrowed interface{ Return() }

// DeviceAlloc returns memory of a GPU for one buffer, its device address, and the function that frees it, which is called once.
type DeviceAlloc func(size int) (memory engine.DeviceMemory, address uint64, free func(), err error)

// Pool lends a fixed number of buffers of equal size. They grow when an image needs it and shrink only after many smaller images, so that
// images of alternating sizes cause no new allocations, which are slow on a GPU and block it. All buffers are in host memory, or all in a
// GPU's, as for the latest frame. The zero value is ready; all methods are safe for concurrent use.
type Pool struct {
	// Alloc provides the memory, page-aligned memory outside the Go heap when nil.
	Alloc Alloc
	// Buffers is the number of buffers, DefaultBuffers when 0.
	Buffers int

	mu         sync.Mutex
	free       []*buffer
	size       int    // bytes per buffer
	onDevice   bool   // buffers are in a GPU's memory
	oversized  int    // consecutive images that needed little of a buffer
	generation uint64 // incremented when the size changes
	allocated  int    // buffers of this generation, lent ones included
	lent       int    // buffers of any generation
	held       int    // buffers with holds, of any generation
	closed     bool
	released   chan struct{} // holds a token after a release
}

// buffer is memory with the frame that it currently holds.
type buffer struct {
	pool       *Pool
	data       []byte              // nil in a GPU's memory
	memory     engine.DeviceMemory // nil in host memory
	address    uint64              // of memory's first byte
	free       func()
	generation uint64        // of the pool at allocation
	lease      atomic.Uint64 // odd while lent
	frame      Frame         // the frame in a mailbox
	truth      []Object      // memory for Frame.Truth

	// Guarded by the pool's lock.
	holds    int  // readers of the image beyond its lease
	released bool // the lease has ended; the last hold returns the buffer
}

// Frame lends a buffer for an image of the given format and size in pixels, rows without padding. It returns ErrNoBuffer if none is free.
func (p *Pool) Frame(format engine.PixelFormat, width, height int) (Frame, error) {
	stride := format.RowBytes(width)
	size := stride * format.Rows(height)
	b, err := p.acquire(size, nil)
	if err != nil {
		return Frame{}, err
	}
	return Frame{
		Data: b.data[:size:size], Width: width, Height: height, Stride: stride, Format: format,
		buffer: b, lease: b.lease.Add(1),
	}, nil
}

// DeviceFrame lends a buffer in a GPU's memory, which alloc provides, for an image of the given format and size in pixels, rows without
// padding. It returns ErrNoBuffer if none is free.
func (p *Pool) DeviceFrame(alloc DeviceAlloc, format engine.PixelFormat, width, height int) (Frame, error) {
	stride := format.RowBytes(width)
	b, err := p.acquire(stride*format.Rows(height), alloc)
	if err != nil {
		return Frame{}, err
	}
	device := engine.Device{Memory: b.memory, Address: b.address}
	if format == engine.NV12 {
		device.Chroma = b.address + uint64(stride*height)
	}
	return Frame{
		Device: device, Width: width, Height: height, Stride: stride, Format: format, buffer: b, lease: b.lease.Add(1),
	}, nil
}

// acquire takes a buffer of host memory, or of a GPU's if alloc is not nil.
func (p *Pool) acquire(size int, alloc DeviceAlloc) (*buffer, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, errPoolClosed
	}
	if size >= p.size/maxOversize {
		p.oversized = 0
	} else {
		p.oversized++
	}
	if size > p.size || p.oversized > maxOversized || p.onDevice != (alloc != nil) {
		p.freeIdle()
		p.size = size
		p.onDevice = alloc != nil
		p.allocated = 0
		p.oversized = 0
		p.generation++
	}
	if last := len(p.free) - 1; last >= 0 {
		b := p.free[last]
		p.free = p.free[:last]
		p.lent++
		return b, nil
	}
	if p.allocated >= p.limit() {
		return nil, ErrNoBuffer
	}
	b := &buffer{pool: p, generation: p.generation}
	if err := b.allocate(p.size, p.Alloc, alloc); err != nil {
		return nil, &Error{Op: "allocate", Kind: ErrMemory, Message: "no memory for a frame", Err: err}
	}
	p.allocated++
	p.lent++
	return b, nil
}

// allocate gives the buffer memory: a GPU's if onDevice is not nil.
func (b *buffer) allocate(size int, onHost Alloc, onDevice DeviceAlloc) (err error) {
	if onDevice != nil {
		b.memory, b.address, b.free, err = onDevice(size)
		return err
	}
	if onHost == nil {
		onHost = allocPages
	}
	b.data, b.free, err = onHost(size)
	if err == nil {
		b.data = b.data[:size:size]
	}
	return err
}

// Lent returns the number of lent buffers.
func (p *Pool) Lent() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lent
}

func (p *Pool) limit() int {
	if p.Buffers > 0 {
		return p.Buffers
	}
	return DefaultBuffers
}

// freeIdle frees the buffers that are not lent. The lock is held.
func (p *Pool) freeIdle() {
	for i, b := range p.free {
		b.discard()
		p.free[i] = nil
	}
	p.free = p.free[:0]
}

// Reallocate frees the buffers and allocates new ones from Alloc with the next frame; lent buffers are freed when they are released.
func (p *Pool) Reallocate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.freeIdle()
	p.size, p.allocated, p.oversized = 0, 0, 0
	p.generation++
}

// Released receives a token after every release; it serves one receiver.
func (p *Pool) Released() <-chan struct{} {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.releasedChan()
}

// releasedChan returns the channel of Released. The lock is held.
func (p *Pool) releasedChan() chan struct{} {
	if p.released == nil {
		p.released = make(chan struct{}, 1)
	}
	return p.released
}

// Close frees every buffer, lent ones when they are released. It is idempotent.
func (p *Pool) Close() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.closed = true
	p.freeIdle()
	return nil
}

func (b *buffer) release(lease uint64) {
	if !b.lease.CompareAndSwap(lease, lease+1) {
		return
	}
	if b.pool == nil {
		return
	}
	if image, ok := b.memory.(Borrowed); ok {
		image.Return()
	}
	p := b.pool
	p.mu.Lock()
	if b.holds > 0 {
		b.released = true
		p.mu.Unlock()
		return
	}
	freed := p.takeBack(b)
	p.mu.Unlock()
	notify(freed)
}

// takeBack makes a buffer free again, and returns the channel to notify. The lock is held.
func (p *Pool) takeBack(b *buffer) chan<- struct{} {
	p.lent--
	if p.closed || b.generation != p.generation {
		b.discard()
	} else {
		p.free = append(p.free, b)
	}
	return p.releasedChan()
}

// hold keeps the buffer lent beyond the end of a lease. It reports false without a pool, after the lease, and where the pool cannot spare
// it.
func (b *buffer) hold(lease uint64) bool {
	p := b.pool
	if p == nil || b.memory != nil {
		return false
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case b.lease.Load() != lease:
		return false
	case b.holds > 0:
		b.holds++
		return true
	case p.held > 0 || p.lent >= p.limit():
		return false
	}
	b.holds = 1
	p.held++
	return true
}

// endHold ends one hold, and returns the buffer if it was the last one and the lease has ended.
func (b *buffer) endHold() {
	p := b.pool
	p.mu.Lock()
	b.holds--
	if b.holds > 0 {
		p.mu.Unlock()
		return
	}
	p.held--
	if !b.released {
		p.mu.Unlock()
		return
	}
	b.released = false
	freed := p.takeBack(b)
	p.mu.Unlock()
	notify(freed)
}

func (b *buffer) discard() {
	if b.free != nil {
		b.free()
	}
	b.data, b.memory, b.free = nil, nil, nil
}

// notify puts a token into a channel of capacity 1 without blocking.
func notify(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// allocPages returns zeroed, page-aligned memory outside the Go heap.
func allocPages(size int) ([]byte, func(), error) {
	data, err := unix.Mmap(-1, 0, max(size, 1), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return nil, nil, err
	}
	return data, func() { _ = unix.Munmap(data) }, nil
}
