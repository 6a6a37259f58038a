package capture

import (
	"errors"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/capturetest"
	"github.com/edge-infer/edge-infer/engine"
)

func TestPoolLendsBuffers(t *testing.T) {
	l := &capturetest.Ledger{}
	p := &Pool{Alloc: l.Alloc, Buffers: 2}
	a, err := p.Frame(engine.BGR, 10, 4)
	require.NoError(t, err)
	assert.Equal(t, 30, a.Stride)
	assert.Len(t, a.Data, 120)
	b, err := p.Frame(engine.BGR, 10, 4)
	require.NoError(t, err)
	_, err = p.Frame(engine.BGR, 10, 4)
	require.ErrorIs(t, err, ErrNoBuffer)
	assert.Equal(t, 2, p.Lent())

	b.Release()
	assert.Equal(t, 1, p.Lent())
	c, err := p.Frame(engine.BGR, 10, 4)
	require.NoError(t, err)
	assert.Same(t, unsafe.SliceData(b.Data), unsafe.SliceData(c.Data))
	b.Release() // the lease is over although c has the same buffer
	b.Release()
	_, err = p.Frame(engine.BGR, 10, 4)
	require.ErrorIs(t, err, ErrNoBuffer)
	assert.Equal(t, 2, l.Made)

	require.NoError(t, p.Close())
	assert.Zero(t, l.Freed, "both are lent")
	a.Release()
	c.Release()
	c.Release()
	assert.Zero(t, p.Lent())
	assert.Equal(t, 2, l.Freed)
	require.NoError(t, p.Close())
	_, err = p.Frame(engine.BGR, 10, 4)
	require.Error(t, err)
	Frame{}.Release()
}

// TestHeldFrames: a buffer comes back with the end of its lease and of its holds, whichever is the last.
func TestHeldFrames(t *testing.T) {
	l := &capturetest.Ledger{}
	p := &Pool{Alloc: l.Alloc, Buffers: 3}
	lend := func() Frame {
		f, err := p.Frame(engine.GRAY8, 10, 4)
		require.NoError(t, err)
		return f
	}
	a := lend()
	require.True(t, a.Hold())
	require.True(t, a.Hold(), "for two readers")
	b := lend()
	require.False(t, b.Hold(), "one buffer of the pool is held already")
	a.EndHold()
	a.Release()
	require.Equal(t, 2, p.Lent())
	require.False(t, a.Hold(), "after the lease")
	require.NotSame(t, unsafe.SliceData(a.Data), unsafe.SliceData(b.Data))
	a.EndHold()
	require.Equal(t, 1, p.Lent())

	require.True(t, b.Hold(), "nothing is held any more")
	b.EndHold()
	require.Equal(t, 1, p.Lent(), "the lease goes on")
	c, d := lend(), lend()
	require.False(t, b.Hold(), "no buffer is left for the camera")
	c.Release()
	d.Release()

	require.True(t, b.Hold())
	require.NoError(t, p.Close())
	b.Release()
	require.Equal(t, l.Made-1, l.Freed)
	b.EndHold()
	require.Equal(t, l.Made, l.Freed)
	require.False(t, Frame{}.Hold())
}

func TestPoolChangesSize(t *testing.T) {
	l := &capturetest.Ledger{}
	p := &Pool{Alloc: l.Alloc, Buffers: 2}
	old, err := p.Frame(engine.NV12, 10, 4)
	require.NoError(t, err)
	assert.Len(t, old.Data, 60)
	spare, err := p.Frame(engine.NV12, 10, 4)
	require.NoError(t, err)
	spare.Release()

	large, err := p.Frame(engine.BGRx, 10, 4)
	require.NoError(t, err)
	assert.Equal(t, 1, l.Freed, "the spare one goes at once")
	back, err := p.Frame(engine.NV12, 10, 4)
	require.NoError(t, err)
	old.Release()
	assert.Equal(t, 2, l.Freed, "one of an earlier size goes when it comes back, even if its size is the present one")
	large.Release()
	back.Release()
	require.NoError(t, p.Close())
	assert.Equal(t, l.Made, l.Freed)
	assert.Zero(t, l.Bytes)
}

// TestPoolOfAlternatingSizes: memory is made for the largest, once, and given back when only small ones come.
func TestPoolOfAlternatingSizes(t *testing.T) {
	l := &capturetest.Ledger{}
	p := &Pool{Alloc: l.Alloc, Buffers: 2}
	for n := range 100 {
		side := []int{10, 1000}[n%2]
		f, err := p.Frame(engine.GRAY8, side, side)
		require.NoError(t, err)
		assert.Len(t, f.Data, side*side)
		assert.Equal(t, side*side, cap(f.Data), "the rest is nobody's")
		f.Release()
	}
	assert.Equal(t, 2, l.Made, "one of each size")
	assert.Equal(t, 1000*1000, l.Bytes)
	for range maxOversized + 1 {
		f, err := p.Frame(engine.GRAY8, 10, 10)
		require.NoError(t, err)
		f.Release()
	}
	assert.Equal(t, 100, l.Bytes)
	for range 2 * maxOversized {
		f, err := p.Frame(engine.GRAY8, 6, 6) // more than a quarter
		require.NoError(t, err)
		f.Release()
	}
	assert.Equal(t, 3, l.Made)
	require.NoError(t, p.Close())
	assert.Zero(t, l.Bytes)
}

func TestPoolWithoutMemory(t *testing.T) {
	p := &Pool{Alloc: func(int) ([]byte, func(), error) { return nil, nil, errors.New("all gone") }}
	_, err := p.Frame(engine.GRAY8, 4, 4)
	require.ErrorIs(t, err, ErrMemory)
	assert.EqualError(t, err, "allocate: no memory for a frame: all gone")
}

func TestPoolOwnMemoryIsPageAligned(t *testing.T) {
	p := &Pool{}
	f, err := p.Frame(engine.BGR, 641, 481)
	require.NoError(t, err)
	assert.Zero(t, uintptr(unsafe.Pointer(unsafe.SliceData(f.Data)))%4096)
	f.Data[len(f.Data)-1] = 1
	f.Release()
	require.NoError(t, p.Close())
}

func TestMailboxNewestWins(t *testing.T) {
	notified := make(chan struct{}, 1)
	p, m := &Pool{Buffers: 2}, &Mailbox{Notify: func() { notify(notified) }}
	defer p.Close()
	put := func(seq uint64) {
		f, err := p.Frame(engine.GRAY8, 4, 4)
		require.NoError(t, err)
		f.Seq = seq
		m.Put(f)
	}
	_, ok := m.Take()
	require.False(t, ok)
	for seq := range uint64(5) {
		put(seq)
	}
	assert.True(t, m.Full())
	assert.Equal(t, uint64(4), m.Dropped())
	<-notified
	assert.Empty(t, notified)
	f, ok := m.Take()
	require.True(t, ok)
	assert.Equal(t, uint64(4), f.Seq)
	assert.False(t, m.Full())
	put(5)
	f.Release()
	assert.True(t, m.Drop())
	assert.False(t, m.Drop())
	assert.Equal(t, uint64(5), m.Dropped())
	m.Put(Frame{Seq: 9}) // from no pool
	f, ok = m.Take()
	require.True(t, ok)
	assert.Equal(t, uint64(9), f.Seq)
	f.Release()
	f.Release()
}

// One producer and one consumer at full speed: every frame is taken once or dropped, and no buffer is in two hands.
func TestMailboxBetweenGoroutines(t *testing.T) {
	const frames = 20000
	p, m := &Pool{Buffers: 3}, &Mailbox{}
	defer p.Close()
	done := make(chan uint64)
	stop := make(chan struct{})
	go func() {
		taken, next := uint64(0), uint64(0)
		for {
			f, ok := m.Take()
			if !ok {
				select {
				case <-stop:
					if !m.Full() {
						done <- taken
						return
					}
				default:
				}
				continue
			}
			for _, v := range f.Data {
				assert.Equal(t, byte(f.Seq), v)
			}
			assert.GreaterOrEqual(t, f.Seq, next)
			next = f.Seq + 1
			taken++
			f.Release()
		}
	}()
	lent := uint64(0)
	for seq := range uint64(frames) {
		f, err := p.Frame(engine.GRAY8, 4, 2)
		if err != nil {
			require.ErrorIs(t, err, ErrNoBuffer)
			continue
		}
		lent++
		f.Seq = seq
		for i := range f.Data {
			f.Data[i] = byte(seq)
		}
		m.Put(f)
	}
	close(stop)
	assert.Equal(t, lent, <-done+m.Dropped())
}

func TestNoAllocationPerFrame(t *testing.T) {
	p, m := &Pool{}, &Mailbox{Notify: new(Wakeup).Signal}
	defer p.Close()
	cycle := func() {
		f, _ := p.Frame(engine.NV12, 64, 64)
		m.Put(f)
		f, _ = p.Frame(engine.NV12, 64, 64)
		m.Put(f)
		f, _ = m.Take()
		f.Release()
	}
	cycle()
	assert.Zero(t, testing.AllocsPerRun(1000, cycle))
}

func BenchmarkMailbox(b *testing.B) {
	p, m := &Pool{}, &Mailbox{}
	defer p.Close()
	f, _ := p.Frame(engine.GRAY8, 4, 4)
	b.ReportAllocs()
	for b.Loop() {
		m.Put(f)
		f, _ = m.Take()
	}
}

func BenchmarkPool(b *testing.B) {
	p := &Pool{}
	defer p.Close()
	b.ReportAllocs()
	for b.Loop() {
		f, _ := p.Frame(engine.BGR, 1920, 1080)
		f.Release()
	}
}

// BenchmarkCopy is what a frame costs that cannot be decoded in place.
func BenchmarkCopy(b *testing.B) {
	for _, format := range []engine.PixelFormat{engine.BGR, engine.NV12} {
		b.Run("1080p "+format.String(), func(b *testing.B) {
			p := &Pool{}
			defer p.Close()
			from, _ := p.Frame(format, 1920, 1080)
			to, _ := p.Frame(format, 1920, 1080)
			b.SetBytes(int64(len(to.Data)))
			for b.Loop() {
				copy(to.Data, from.Data)
			}
			from.Release()
			to.Release()
		})
	}
}

func TestReallocateFreesOldMemory(t *testing.T) {
	out := 0
	p := Pool{Buffers: 2, Alloc: func(size int) ([]byte, func(), error) {
		out++
		return make([]byte, size), func() { out-- }, nil
	}}
	defer p.Close()
	lent, err := p.Frame(engine.GRAY8, 8, 8)
	require.NoError(t, err)
	idle, err := p.Frame(engine.GRAY8, 8, 8)
	require.NoError(t, err)
	idle.Release()
	p.Reallocate()
	require.Equal(t, 1, out, "the idle buffer is freed at once")
	next, err := p.Frame(engine.GRAY8, 8, 8)
	require.NoError(t, err)
	lent.Release()
	require.Equal(t, 1, out, "the lent one when it comes back")
	next.Release()
	require.NoError(t, p.Close())
	require.Zero(t, out)
}
