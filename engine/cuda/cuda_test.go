package cuda

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

func TestMain(m *testing.M) { fake.Main(m, LibraryEnvironment) }

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
			"init=34", "cuda open: the driver %s does not start: stub library (34) (a stub library was loaded: remove the CUDA toolkit's stubs directory from LD_LIBRARY_PATH)",
		},
		{"init=3", "cuda open: the driver %s does not start: not initialized (3)"},
		{
			"init=999", "cuda open: the driver %s does not start: unknown error (999) (the driver library and the kernel module do not fit or the module hangs: reboot, then check nvidia-smi)",
		},
		{"init=77", "cuda open: the driver %s does not start: error 77"},
	} {
		t.Run(test.settings, func(t *testing.T) {
			t.Setenv("FAKE_CUDA", test.settings)
			fake.Another(t, "TestChildRefused", "REFUSAL="+fmt.Sprintf(test.want, os.Getenv(LibraryEnvironment)))
		})
	}
	t.Run("no library", func(t *testing.T) {
		missing := filepath.Join(t.TempDir(), "libcuda.so.1")
		fake.Another(t, "TestChildRefused", LibraryEnvironment+"="+missing, "REFUSAL=cuda open: no CUDA driver: "+missing+
			": cannot open shared object file: No such file or directory (install the NVIDIA driver, or set EDGE_INFER_LIBCUDA to the path of libcuda.so.1)")
	})
	t.Run("not a driver", func(t *testing.T) {
		dir := t.TempDir()
		source := filepath.Join(dir, "empty.c")
		require.NoError(t, os.WriteFile(source, nil, 0o600))
		library, err := fake.Compile(filepath.Join(dir, "libempty.so"), source)
		require.NoError(t, err)
		fake.Another(t, "TestChildRefused", LibraryEnvironment+"="+library,
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
			t.Setenv("FAKE_CUDA", test.settings)
			_, err := Open(0)
			require.EqualError(t, err, test.want)
			require.ErrorIs(t, err, engine.ErrUnavailable)
		})
	}
}

func TestChildRefused(t *testing.T) {
	fake.Child(t)
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
	fake.Another(t, "TestChildRecovers", "FAKE_CUDA=init=100")
}

func TestChildRecovers(t *testing.T) {
	fake.Child(t)
	_, err := Open(0)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	t.Setenv("FAKE_CUDA", "")
	open(t)
}

func TestFacts(t *testing.T) {
	t.Setenv("FAKE_CUDA", "devices=2,integrated=1,capability=72,register=0,memory=34359738368")
	d := open(t)
	f := d.Facts()
	assert.Equal(t, Facts{
		Name: "Fake GPU 0", UUID: "GPU-00102030-4050-6070-8090-a0b0c0d0e0f0", Major: 7, Minor: 2, Integrated: true, MapsHostMemory: true,
		Multiprocessors: 8, L2: 4 << 20, Memory: 32 << 30,
	}, f)
	assert.Equal(t, "sm_72", f.ComputeCapability())
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

	t.Setenv("FAKE_CUDA", "devices=2,fail=cuCtxSetLimit:215")
	refused, err := Open(1)
	require.NoError(t, err)
	assert.Equal(t, int64(1024), limit(refused))
	require.NoError(t, refused.Close())
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
	t.Setenv("FAKE_CUDA", "register=0")
	_, err = d.Register(mapped.Data)
	require.EqualError(t, err, "cuda register: 4096 bytes of host memory: not supported by this driver (801)")
	require.NoError(t, mapped.Free())
}

func TestOutOfMemory(t *testing.T) {
	t.Setenv("FAKE_CUDA", "memory=1048576")
	d := open(t)
	_, err := d.Alloc(2 << 20)
	var failure *engine.Error
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, CodeOutOfMemory, failure.Code)
	require.EqualError(t, err, "cuda allocate: 2097152 bytes of device memory: out of memory (2) (free GPU memory: close other programs that use the GPU, or use a smaller model, batch or number of slots)")
	t.Setenv("FAKE_CUDA", "fail=cuMemHostAlloc:2")
	_, err = d.AllocHost(4096)
	require.ErrorAs(t, err, &failure)
	assert.Equal(t, CodeOutOfMemory, failure.Code)
	t.Setenv("FAKE_CUDA", "fail=cuMemHostGetDevicePointer_v2:1") // the memory must be given back
	_, err = d.AllocHost(4096)
	require.EqualError(t, err, "cuda allocate: 4096 bytes of page-locked memory: invalid value (1)")
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

// The program must not ask the dynamic linker for a driver function: go-nvml's linker flags would hide the mistake until it is called. Nor
// may it offer one: the driver's calls to itself would end up here.
func TestNoDriverFunctionIsDynamic(t *testing.T) {
	output, err := exec.Command(testtool.Program(t, "nm"), "-D", os.Args[0]).Output()
	require.NoError(t, err)
	undefined := regexp.MustCompile(`(?m)^.* U cu[A-Z].*$|^.* T cuInit$`)
	assert.Empty(t, undefined.FindAllString(string(output), -1))
	assert.NotEmpty(t, output)
}

// memoryInfo is how many bytes of device memory are free, and how many there are.
func memoryInfo(d *Device) (free, total int64, err error) {
	err = d.Do(func() (err error) {
		free, total, err = cu.MemInfo()
		return err
	})
	return free, total, err
}
