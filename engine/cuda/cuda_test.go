package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// A process opens one driver, so the tests run against the newest fake driver and start themselves again where another one is needed.
func TestMain(m *testing.M) {
	if os.Getenv(LibraryEnvironment) != "" || os.Getenv(gpuEnvironment) != "" {
		os.Exit(m.Run())
	}
	folder, err := os.MkdirTemp("", "cuda")
	if err == nil {
		var path string
		if path, err = fake.Build(folder, 0); err == nil {
			err = os.Setenv(LibraryEnvironment, path)
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(folder)
	os.Exit(code)
}

// another runs one test in a process of its own with other environment variables.
func another(t *testing.T, test string, environment ...string) {
	t.Helper()
	command := exec.Command(os.Args[0], "-test.run=^"+test+"$", "-test.v", "-test.timeout=60s")
	command.Env = append(append(os.Environ(), "CUDA_TEST_CHILD=1"), environment...)
	output, err := command.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

func child(t *testing.T) {
	if os.Getenv("CUDA_TEST_CHILD") == "" {
		t.Skip("runs in a process that another test starts")
	}
}

func script(t *testing.T, settings string) { t.Setenv("FAKE_CUDA", settings) }

func open(t *testing.T) *Device {
	t.Helper()
	d, err := Open(0)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

const ptx = ".version 4.2\n.visible .entry scale(.param .align 8 .b8 scale_param_0[24])\n.visible .entry other(.param .align 8 .b8 x[24])\n"

func TestOpenSaysWhyNot(t *testing.T) {
	for _, test := range []struct{ settings, want string }{
		{
			"init=100", "cuda open: the driver %s does not start: no device (100) (no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia)",
		},
		{
			"init=34", "cuda open: the driver %s does not start: stub library (34) (a stub library was loaded: remove the CUDA toolkit's stubs folder from LD_LIBRARY_PATH)",
		},
		{"init=3", "cuda open: the driver %s does not start: not initialized (3)"},
		{
			"init=999", "cuda open: the driver %s does not start: unknown error (999) (the driver library and the kernel module do not fit or the module hangs: reboot, then check nvidia-smi)",
		},
		{"init=77", "cuda open: the driver %s does not start: error 77"},
	} {
		t.Run(test.settings, func(t *testing.T) {
			script(t, test.settings)
			another(t, "TestChildRefused", "REFUSAL="+fmt.Sprintf(test.want, os.Getenv(LibraryEnvironment)))
		})
	}
	t.Run("no library", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "libcuda.so.1")
		another(t, "TestChildRefused", LibraryEnvironment+"="+missing, "REFUSAL=cuda open: no CUDA driver: "+missing+
			": cannot open shared object file: No such file or directory (install the NVIDIA driver, or set EDGE_INFER_LIBCUDA to the path of libcuda.so.1)")
	})
	t.Run("not a driver", func(t *testing.T) {
		folder := t.TempDir()
		source := filepath.Join(folder, "empty.c")
		require.NoError(t, os.WriteFile(source, nil, 0o600))
		library, err := fake.Compile(filepath.Join(folder, "libempty.so"), source)
		require.NoError(t, err)
		another(t, "TestChildRefused", LibraryEnvironment+"="+library,
			"REFUSAL=cuda open: no CUDA driver: "+library+": no cuInit: not a CUDA driver (install the NVIDIA driver, or set EDGE_INFER_LIBCUDA to the path of libcuda.so.1)")
	})
	for _, test := range []struct{ settings, want string }{
		{
			"version=10020",
			"cuda open: the driver supports CUDA 10.2, 11.4 or newer is needed (update to JetPack 5.1 or newer, or to NVIDIA driver 470 or newer)",
		},
		{"devices=0", "cuda open: no GPU number 0: there are 0 (edge-infer devices lists them)"},
		{
			"fail=cuDeviceGetCount:100", "cuda open: counting GPUs: no device (100) (no NVIDIA GPU is visible: check nvidia-smi and CUDA_VISIBLE_DEVICES; start a container with --gpus all or --runtime nvidia)",
		},
		{
			"fail=cuDeviceGetName:999", "cuda open: name of GPU 0: unknown error (999) (the driver library and the kernel module do not fit or the module hangs: reboot, then check nvidia-smi)",
		},
		{"fail=cuDeviceGetAttribute:1", "cuda open: facts of Fake GPU 0: invalid value (1)"},
		{
			"fail=cuDevicePrimaryCtxRetain:46",
			"cuda open: context of GPU 0 (Fake GPU 0): device busy or unavailable (46) (another process holds the GPU in exclusive mode: stop it, or run nvidia-smi -c DEFAULT)",
		},
		{
			"fail=cuDevicePrimaryCtxRetain:2",
			"cuda open: context of GPU 0 (Fake GPU 0): out of memory (2) (free GPU memory: close other programs that use the GPU, or use a smaller model, batch or number of slots)",
		},
	} {
		t.Run(test.settings, func(t *testing.T) {
			script(t, test.settings)
			_, err := Open(0)
			require.EqualError(t, err, test.want)
			require.ErrorIs(t, err, engine.ErrUnavailable)
		})
	}
}

func TestChildRefused(t *testing.T) {
	child(t)
	for range 2 { // a refusal is not the last word: the next call asks again
		_, err := Open(0)
		require.EqualError(t, err, os.Getenv("REFUSAL"))
		require.ErrorIs(t, err, engine.ErrUnavailable)
	}
	report := Probe()
	assert.Equal(t, os.Getenv("REFUSAL"), report.Err().Error())
	assert.Empty(t, report.Devices)
}

func TestOpenAfterARefusal(t *testing.T) {
	another(t, "TestChildRecovers", "FAKE_CUDA=init=100")
}

func TestChildRecovers(t *testing.T) {
	child(t)
	_, err := Open(0)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	script(t, "")
	open(t)
}

func TestFacts(t *testing.T) {
	script(t, "devices=2,integrated=1,capability=72,register=0,memory=34359738368")
	d := open(t)
	f := d.Facts()
	assert.Equal(t, Facts{
		Name: "Fake GPU 0", UUID: "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", Major: 7, Minor: 2, Integrated: true, MapsHostMemory: true,
		Multiprocessors: 8, L2: 4 << 20, Memory: 32 << 30,
	}, f)
	assert.Equal(t, "sm_72", f.ComputeCapability())
	assert.True(t, f.ZeroCopy())
	_, err := Open(2)
	require.EqualError(t, err, "cuda open: no GPU number 2: there are 2 (edge-infer devices lists them)")
}

func TestStackOfThreads(t *testing.T) {
	limit := func(d *Device) (bytes int64) {
		require.NoError(t, d.Do(func() (err error) {
			bytes, err = cu.Limits(cu.StackSize)
			return err
		}))
		return bytes
	}
	d := open(t)
	assert.Equal(t, int64(stackSize), limit(d))
	require.NoError(t, d.Do(func() error { return cu.SetLimit(cu.StackSize, 64) }))
	assert.Equal(t, int64(64), limit(open(t)), "less than that stays")

	script(t, "devices=2,fail=cuCtxSetLimit:215")
	refused, err := Open(1)
	require.NoError(t, err)
	assert.Equal(t, int64(1024), limit(refused))
	require.NoError(t, refused.Close())
}

func TestCopiesThroughMappedMemory(t *testing.T) {
	d := open(t)
	s, err := d.NewStream()
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

func TestRegister(t *testing.T) {
	d := open(t)
	mapped, err := d.AllocHost(4096) // any memory that is not Go's
	require.NoError(t, err)
	m, err := d.Register(mapped.Data)
	require.NoError(t, err)
	assert.Equal(t, mapped.Address, m.Address)
	require.NoError(t, m.Free())
	require.NoError(t, m.Free())
	_, err = d.Register(nil)
	require.EqualError(t, err, "cuda register: no memory: invalid value (1)")
	script(t, "register=0")
	_, err = d.Register(mapped.Data)
	require.EqualError(t, err, "cuda register: 4096 bytes of host memory: not supported by this driver (801)")
	require.NoError(t, mapped.Free())
}

func TestOutOfMemory(t *testing.T) {
	script(t, "memory=1048576")
	d := open(t)
	_, err := d.Alloc(2 << 20)
	var failure *engine.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, CodeOutOfMemory, failure.Code)
	require.EqualError(t, err, "cuda allocate: 2097152 bytes of device memory: out of memory (2) (free GPU memory: close other programs that use the GPU, or use a smaller model, batch or number of slots)")
	script(t, "fail=cuMemHostAlloc:2")
	_, err = d.AllocHost(4096)
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, CodeOutOfMemory, failure.Code)
	script(t, "fail=cuMemHostGetDevicePointer_v2:1") // the memory must be given back
	_, err = d.AllocHost(4096)
	require.EqualError(t, err, "cuda allocate: 4096 bytes of page-locked memory: invalid value (1)")
}

func TestEvents(t *testing.T) {
	d := open(t)
	s, err := d.NewStream()
	require.NoError(t, err)
	start, err := d.NewEvent(Timing)
	require.NoError(t, err)
	end, err := d.NewEvent(Timing | Blocking)
	require.NoError(t, err)
	require.NoError(t, start.Record(s))
	require.NoError(t, s.Wait(start))
	require.NoError(t, end.Record(s))
	require.NoError(t, end.Synchronize())
	elapsed, err := end.Since(start)
	require.NoError(t, err)
	assert.GreaterOrEqual(t, elapsed, time.Duration(0))
	passed, err := end.Passed()
	require.NoError(t, err)
	assert.True(t, passed)
	script(t, "fail=cuEventQuery:600")
	passed, err = end.Passed()
	require.NoError(t, err)
	assert.False(t, passed)
	script(t, "fail=cuEventQuery:719")
	_, err = end.Passed()
	require.EqualError(t, err, "cuda query: event: launch failed (719) (the GPU stopped the program: open the engine again; if it recurs, check dmesg for NVRM or nvgpu lines)")
	script(t, "")
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
	folder := t.TempDir()
	source := filepath.Join(folder, "kernels.c")
	require.NoError(t, os.WriteFile(source, []byte(kernels), 0o600))
	library, err := fake.Compile(filepath.Join(folder, "kernels.so"), source)
	require.NoError(t, err)
	environment := []string{"FAKE_CUDA_KERNELS=" + library}
	another(t, "TestChildGraph", environment...)
	for _, version := range []int{11020, 11040, 12000} { // other functions for instantiating and updating
		t.Run(VersionText(version), func(t *testing.T) {
			driver, err := fake.Build(t.TempDir(), version)
			require.NoError(t, err)
			another(t, "TestChildGraph",
				append(environment, LibraryEnvironment+"="+driver, "FAKE_CUDA=version=11040", fmt.Sprintf("FAKE_VERSION=%d", version))...)
		})
	}
}

func TestChildGraph(t *testing.T) {
	child(t)
	d := open(t)
	s, err := d.NewStream()
	require.NoError(t, err)
	m, err := d.NewModule(ptx)
	require.NoError(t, err)
	scale, err := m.Function("scale")
	require.NoError(t, err)
	memory, err := d.AllocHost(16)
	require.NoError(t, err)
	words := func() []byte { return []byte{memory.Data[0], memory.Data[4], memory.Data[8], memory.Data[12]} }
	arguments := scaleArguments{To: memory.Address, From: memory.Address, Count: 4, Factor: 2}
	kernel := &Kernel{Function: scale, Grid: [3]uint32{1, 1, 1}, Block: [3]uint32{32, 1, 1}, Arguments: Bytes(&arguments)}
	var node Node
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
		require.EqualError(t, err, "cuda capture: graph node: not supported by this driver (801)")
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
	require.EqualError(t, g.Update(s, func() error { return s.Launch(kernel) }), "cuda update: graph: graph has another shape (910)")
	require.NoError(t, g.Launch(s))
	assert.Equal(t, []byte{9, 9, 9, 9}, words())

	// A record that fails, and a call that a capture does not allow, leave a stream that works.
	_, err = s.Capture(func() error { return os.ErrDeadlineExceeded })
	require.ErrorIs(t, err, os.ErrDeadlineExceeded)
	_, err = s.Capture(func() error { _ = s.Synchronize(); return nil })
	require.EqualError(t, err, "cuda capture: graph: capture spoilt (901)")
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
	s, err := d.NewStream()
	require.NoError(t, err)
	before, _, err := d.MemoryInfo()
	require.NoError(t, err)
	for _, test := range []struct{ settings, want string }{
		{"fail=cuStreamBeginCapture_v2:900", "cuda capture: begin: not allowed in a capture (900)"},
		{
			"fail=cuGraphInstantiateWithFlags:2",
			"cuda capture: graph: out of memory (2) (free GPU memory: close other programs that use the GPU, or use a smaller model, batch or number of slots)",
		},
	} {
		script(t, test.settings)
		_, err := s.Capture(func() error { return nil })
		require.EqualError(t, err, test.want)
	}
	script(t, "")
	after, _, err := d.MemoryInfo()
	require.NoError(t, err)
	assert.Equal(t, before, after)
	require.NoError(t, s.Close())
}

func TestModuleErrors(t *testing.T) {
	d := open(t)
	_, err := d.NewModule("nothing")
	require.EqualError(t, err, "cuda open: compiling kernels for sm_87: fatal: no kernel in the text: PTX does not compile (218) (the driver is too old for this program's kernels: update the driver or JetPack)")
	m, err := d.NewModule(ptx)
	require.NoError(t, err)
	_, err = m.Function("missing")
	require.EqualError(t, err, "cuda open: kernel missing: not found (500)")
	require.NoError(t, m.Close())
}

func TestMemoryIsFlat(t *testing.T) {
	var flat int64
	for cycle := range 100 {
		d, err := Open(0)
		require.NoError(t, err)
		s, err := d.NewStream()
		require.NoError(t, err)
		e, err := d.NewEvent(0)
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
		free, total, err := d.MemoryInfo()
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
			s, err := d.NewStream()
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
	s, err := d.NewStream()
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

// The program must not ask the dynamic linker for a driver function: go-nvml's linker flags would hide the mistake until it is called. Nor
// may it offer one: the driver's calls to itself would end up here.
func TestNoDriverFunctionIsDynamic(t *testing.T) {
	nm, err := exec.LookPath("nm")
	if err != nil {
		t.Skip("nm is not installed")
	}
	output, err := exec.Command(nm, "-D", os.Args[0]).Output()
	require.NoError(t, err)
	undefined := regexp.MustCompile(`(?m)^.* U cu[A-Z].*$|^.* T cuInit$`)
	assert.Empty(t, undefined.FindAllString(string(output), -1))
	assert.NotEmpty(t, output)
}
