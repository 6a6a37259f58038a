package cudatest_test

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/cudatest"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"
)

func TestMain(m *testing.M) { fake.Main(m, cuda.LibraryEnvironment) }

func open(t *testing.T) *cuda.Device {
	t.Helper()
	d, err := cuda.Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

const ptx = ".version 4.2\n.visible .entry scale(.param .align 8 .b8 scale_param_0[24])\n.visible .entry other(.param .align 8 .b8 x[24])\n"

func TestCopiesThroughMappedMemory(t *testing.T) {
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	in, err := d.AllocHost(1 << 10)
	require.NoError(t, err)
	out, err := d.AllocHost(1 << 10)
	require.NoError(t, err)
	middle, err := d.Alloc(1 << 10)
	require.NoError(t, err)
	for i := range in.Data {
		in.Data[i] = byte(i)
	}
	require.NoError(t, s.Copy(middle.Address, in.Address, 1<<10))
	require.NoError(t, s.Fill(middle.Address, 0x01020304, 2))
	require.NoError(t, s.Copy(out.Address, middle.Address, 1<<10))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, []byte{4, 3, 2, 1, 4, 3, 2, 1, 8, 9}, out.Data[:10])
	assert.Equal(t, in.Data[8:], out.Data[8:])
	require.EqualError(t, s.Copy(middle.Address, in.Address, 1<<20), "cuda copy: memory: invalid value (1)")
	for range 2 {
		require.NoError(t, in.Free())
		require.NoError(t, out.Free())
		require.NoError(t, middle.Free())
		require.NoError(t, s.Close())
	}
}

// TestManagedMemory: host and device see each other's writes.
func TestManagedMemory(t *testing.T) {
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	m, err := cudatest.AllocManaged(d, 1<<10)
	require.NoError(t, err)
	for i := range m.Data {
		m.Data[i] = byte(i)
	}
	require.NoError(t, s.Copy(m.Address, m.Address+512, 16))
	require.NoError(t, s.Fill(m.Address+1020, 0x01020304, 1))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, m.Data[512:528], m.Data[:16])
	assert.Equal(t, []byte{4, 3, 2, 1}, m.Data[1020:])
	for range 2 {
		require.NoError(t, m.Free())
	}
	require.NoError(t, s.Close())
	t.Setenv("FAKE_CUDA", "fail=cuMemAllocManaged:801")
	_, err = cudatest.AllocManaged(d, 1<<10)
	require.ErrorContains(t, err, "cuda allocate: managed memory: ")
}

func TestEvents(t *testing.T) {
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	start, err := cudatest.NewEvent(d, cudatest.Timing)
	require.NoError(t, err)
	end, err := cudatest.NewEvent(d, cudatest.Timing|cudatest.Blocking)
	require.NoError(t, err)
	require.NoError(t, start.Record(s))
	require.NoError(t, s.Wait(start))
	require.NoError(t, end.Record(s))
	require.NoError(t, end.Synchronize())
	elapsed, err := end.Since(start)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, elapsed, time.Duration(0))
	for range 2 {
		require.NoError(t, start.Close())
		require.NoError(t, end.Close())
		require.NoError(t, s.Close())
	}
}

// scaleArguments is what the kernel of kernels.c takes.
type scaleArguments struct {
	To, From uint64
	Count    uint32
	Factor   uint32
}

const kernels = `
#include <stddef.h>
struct arguments { unsigned *to, *from; unsigned count, factor; };
int scale_launch(const void *block, size_t size, const unsigned *grid, const unsigned *threads) {
	const struct arguments *a = block;
	if (size != sizeof *a || grid[0] * threads[0] < a->count) return 1;
	for (unsigned i = 0; i < a->count; i++) a->to[i] = a->from[i] * a->factor;
	return 0;
}`

func TestGraph(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "kernels.c")
	require.NoError(t, os.WriteFile(source, []byte(kernels), 0o600))
	library, err := fake.Compile(filepath.Join(dir, "kernels.so"), source)
	require.NoError(t, err)
	environment := []string{"FAKE_CUDA_KERNELS=" + library}
	fake.Another(t, "TestChildGraph", environment...)
	for _, version := range []int{11020, 11040, 12000} { // other functions for instantiating and updating
		t.Run(cuda.VersionText(version), func(t *testing.T) {
			driver, err := fake.Build(t.TempDir(), version)
			require.NoError(t, err)
			fake.Another(t, "TestChildGraph",
				append(environment, cuda.LibraryEnvironment+"="+driver, "FAKE_CUDA=version=11040", fmt.Sprintf("FAKE_VERSION=%d", version))...)
		})
	}
}

func TestChildGraph(t *testing.T) {
	fake.Child(t)
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	m, err := d.NewModule(ptx)
	require.NoError(t, err)
	scale, err := m.Function("scale")
	require.NoError(t, err)
	memory, err := d.AllocHost(16)
	require.NoError(t, err)
	words := func() []byte { return []byte{memory.Data[0], memory.Data[4], memory.Data[8], memory.Data[12]} }
	arguments := scaleArguments{To: memory.Address, From: memory.Address, Count: 4, Factor: 2}
	kernel := &cuda.Kernel{Function: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Arguments: cuda.Bytes(&arguments)}
	var node cudatest.Node
	record := func() error {
		if err := s.Fill(memory.Address, 1, 4); err != nil {
			return err
		}
		if err := s.Launch(kernel); err != nil {
			return err
		}
		var err error
		node, err = s.Captured()
		return err
	}
	if os.Getenv("FAKE_VERSION") == "11020" { // no cuStreamGetCaptureInfo_v2: graphs work, replacing does not
		_, err := s.Capture(record)
		require.EqualError(t, err, "cuda capture: graph node: error 801")
		g, err := s.Capture(func() error { return s.Launch(kernel) })
		require.NoError(t, err)
		require.NoError(t, g.Close())
		return
	}
	g, err := s.Capture(record)
	require.NoError(t, err)
	assert.Equal(t, []byte{0xa5, 0xa5, 0xa5, 0xa5}, words(), "capture must not run anything")
	require.NoError(t, g.Launch(s))
	require.NoError(t, s.Synchronize())
	assert.Equal(t, []byte{2, 2, 2, 2}, words())

	arguments.Factor = 7
	require.NoError(t, g.Launch(s))
	assert.Equal(t, []byte{2, 2, 2, 2}, words(), "the graph holds its own arguments")
	require.NoError(t, g.Replace(node, kernel))
	require.NoError(t, g.Launch(s))
	assert.Equal(t, []byte{7, 7, 7, 7}, words())

	arguments.Factor = 9
	require.NoError(t, g.Update(s, record))
	require.NoError(t, g.Launch(s))
	assert.Equal(t, []byte{9, 9, 9, 9}, words())
	require.EqualError(t, g.Update(s, func() error { return s.Launch(kernel) }), "cuda update: graph: error 910")
	require.NoError(t, g.Launch(s))
	assert.Equal(t, []byte{9, 9, 9, 9}, words())

	// A record that fails, and a call that a capture does not allow, leave a stream that works.
	_, err = s.Capture(func() error { return os.ErrDeadlineExceeded })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = s.Capture(func() error { _ = s.Synchronize(); return nil })
	require.EqualError(t, err, "cuda capture: graph: error 901")
	require.NoError(t, s.Launch(kernel))
	require.NoError(t, s.Synchronize())
	for range 2 {
		require.NoError(t, g.Close())
		require.NoError(t, memory.Free())
		require.NoError(t, m.Close())
		require.NoError(t, s.Close())
	}
}

func TestGraphRefusals(t *testing.T) {
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	before, _, err := memoryInfo(d)
	require.NoError(t, err)
	for _, test := range []struct{ settings, want string }{
		{"fail=cuStreamBeginCapture_v2:900", "cuda capture: begin: error 900"},
		{
			"fail=cuGraphInstantiateWithFlags:2",
			"cuda capture: graph: error 2",
		},
	} {
		t.Setenv("FAKE_CUDA", test.settings)
		_, err := s.Capture(func() error { return nil })
		require.EqualError(t, err, test.want)
	}
	t.Setenv("FAKE_CUDA", "")
	after, _, err := memoryInfo(d)
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.NoError(t, s.Close())
}

func TestMemoryIsFlat(t *testing.T) {
	var flat int64
	for cycle := range 100 {
		d, err := cuda.Open(0)
		require.NoError(t, err)
		s, err := cudatest.NewStream(d)
		require.NoError(t, err)
		e, err := cudatest.NewEvent(d, 0)
		require.NoError(t, err)
		m, err := d.NewModule(ptx)
		require.NoError(t, err)
		device, err := d.Alloc(1 << 20)
		require.NoError(t, err)
		host, err := d.AllocHost(1 << 12)
		require.NoError(t, err)
		g, err := s.Capture(func() error { return s.Copy(device.Address, host.Address, 1<<12) })
		require.NoError(t, err)
		for _, closer := range []func() error{g.Close, host.Free, device.Free, m.Close, e.Close, s.Close} {
			require.NoError(t, closer())
		}
		free, total, err := memoryInfo(d)
		require.NoError(t, err)
		if cycle == 0 {
			flat = free
		}
		require.Equal(t, flat, free)
		require.Equal(t, total, free)
		require.NoError(t, d.Close())
		require.NoError(t, d.Close())
	}
}

func TestManyGoroutines(t *testing.T) {
	d := open(t)
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			s, err := cudatest.NewStream(d)
			if !assert.NoError(t, err) {
				return
			}
			m, err := d.AllocHost(4096)
			if !assert.NoError(t, err) {
				return
			}
			for i := range 50 {
				assert.NoError(t, s.Fill(m.Address, uint32(i), 1024))
				assert.NoError(t, s.Synchronize())
				assert.Equal(t, byte(i), m.Data[4092])
			}
			assert.NoError(t, m.Free())
			assert.NoError(t, s.Close())
		})
	}
	group.Wait()
}

func TestFramePathDoesNotAllocate(t *testing.T) {
	d := open(t)
	s, err := cudatest.NewStream(d)
	require.NoError(t, err)
	m, err := d.AllocHost(4096)
	require.NoError(t, err)
	g, err := s.Capture(func() error { return s.Fill(m.Address, 1, 1024) })
	require.NoError(t, err)
	assert.Zero(t, testing.AllocsPerRun(100, func() {
		_ = s.Copy(m.Address, m.Address, 64)
		_ = g.Launch(s)
		_ = s.Synchronize()
	}))
	require.NoError(t, g.Close())
	require.NoError(t, m.Free())
	require.NoError(t, s.Close())
}

// memoryInfo is how many bytes of device memory are free, and how many there are.
func memoryInfo(d *cuda.Device) (free, total int64, err error) {
	err = d.Do(func() (err error) {
		free, total, err = cu.MemInfo()
		return err
	})
	return free, total, err
}
