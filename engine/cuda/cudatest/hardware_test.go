package cudatest_test

import (
	"syscall"
	"testing"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestHardwareMemory(t *testing.T) {
	fake.Hardware(t)
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	mapped, err := d.AllocHost(1 << 20)
	require.NoError(t, err)
	foreign, err := syscall.Mmap(-1, 0, 1<<20, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_PRIVATE|syscall.MAP_ANON)
	require.NoError(t, err)
	registered, err := d.Register(foreign)
	require.NoError(t, err)
	device, err := d.Alloc(1 << 20)
	require.NoError(t, err)
	for i := range foreign {
		foreign[i] = byte(i * 7)
	}
	require.NoError(t, s.Copy(device.Address, registered.Address, 1<<20))
	require.NoError(t, s.Copy(mapped.Address, device.Address, 1<<20))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, foreign, mapped.Data)

	_, err = d.Alloc(1 << 50)
	var failure *engine.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, cuda.CodeOutOfMemory, failure.Code)
	t.Log(err)
	_, err = d.NewModule(".version 4.2\n.target sm_53\n.address_size 64\n.visible .entry broken() { nonsense; }")
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, 218, failure.Code)
	assert.Contains(t, failure.Message, "ptxas")
	t.Log(err)

	require.NoError(t, registered.Free())
	require.NoError(t, syscall.Munmap(foreign))
	require.NoError(t, mapped.Free())
	require.NoError(t, device.Free())
	require.NoError(t, s.Close())
}

func TestHardwareGraph(t *testing.T) {
	fake.Hardware(t)
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	mapped, err := d.AllocHost(1 << 10)
	require.NoError(t, err)
	device, err := d.Alloc(1 << 10)
	require.NoError(t, err)
	value := uint32(5)
	record := func() error {
		if err := s.Fill(device.Address, value, 256); err != nil {
			return err
		}
		return s.Copy(mapped.Address, device.Address, 1<<10)
	}
	clear(mapped.Data)
	g, err := s.Capture(record)
	require.NoError(t, err)
	assert.Zero(t, mapped.Data[0], "capture must not run anything")
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, byte(5), mapped.Data[1020])
	value = 9
	require.NoError(t, g.Update(s, record))
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, byte(9), mapped.Data[1020])
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = g.Launch(s)
		_ = s.Synchronize()
	}))

	_, err = s.Capture(func() error { _ = s.Synchronize(); return nil }) // not allowed in a capture
	require.Error(t, err)
	t.Log(err)
	require.NoError(t, record(), "the stream works on after a refused capture")
	require.NoError(t, s.Synchronize())
	require.NoError(t, g.Close())
	require.NoError(t, mapped.Free())
	require.NoError(t, device.Free())
	require.NoError(t, s.Close())
}

func TestHardwareMemoryIsFlat(t *testing.T) {
	fake.Hardware(t)
	keep := open(t) // the context stays, so that only what a cycle leaves behind shows
	var flat int64
	for cycle := range 100 {
		d, err := cuda.Open(0)
		require.NoError(t, err)
		s, err := cudatest.NewStream(d)
		require.NoError(t, err)
		e, err := cudatest.NewEvent(d, cudatest.Timing)
		require.NoError(t, err)
		device, err := d.Alloc(64 << 20)
		require.NoError(t, err)
		host, err := d.AllocHost(1 << 20)
		require.NoError(t, err)
		g, err := s.Capture(func() error { return s.Copy(device.Address, host.Address, 1<<20) })
		require.NoError(t, err)
		require.NoError(t, g.Launch(s))
		require.NoError(t, e.Record(s))
		require.NoError(t, e.Synchronize())
		for _, closer := range []func() error{g.Close, host.Free, device.Free, e.Close, s.Close, d.Close} {
			require.NoError(t, closer())
		}
		free, _, err := memoryInfo(keep)
		require.NoError(t, err)
		if cycle == 4 { // pools have their size by now
			flat = free
		}
		if cycle > 4 {
			require.Equal(t, flat, free, "cycle %d", cycle)
		}
	}
	t.Logf("free device memory after 100 cycles: %d bytes, as after 5", flat)
}
