package triton_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"gorgonia.org/cu"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/kserve/kservetest"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// standIn builds a driver that runs on any machine, with the real kernels, once: a process opens one driver.
var standIn = sync.OnceValues(func() (driver, kernels string) {
	dir, err := os.MkdirTemp("", "cuda")
	if err != nil {
		return "", ""
	}
	remove = func() { _ = os.RemoveAll(dir) }
	if driver, err = fake.Build(dir, 0); err != nil {
		return "", ""
	}
	kernels, _ = fake.Compile(filepath.Join(dir, "kernels.so"), "-x", "c++", "-std=c++17", "-ffp-contract=off", "../preprocess/kernels.cu",
		"-lstdc++", "-lm")
	return driver, kernels
})

var remove = func() {}

// gpu gives the test a GPU that is none.
func gpu(t *testing.T) {
	driver, kernels := standIn()
	require.NotEmpty(t, kernels)
	t.Setenv(cuda.LibraryEnvironment, driver)
	t.Setenv("FAKE_CUDA_KERNELS", kernels)
}

// freeMemory is the device memory that nobody has.
func freeMemory(t *testing.T) (free int64) {
	d, err := cuda.Open(0)
	require.NoError(t, err)
	require.NoError(t, d.Do(func() (err error) {
		free, _, err = cu.MemInfo()
		return err
	}))
	require.NoError(t, d.Close())
	return free
}

// sharing starts a server that shares memory.
func sharing(t *testing.T) *kservetest.Server {
	o := network(t)
	o.MaxBatch = 2
	return serve(t, o, func(s *kservetest.Server) { s.Memory = &kservetest.Memory{} })
}

// diary is a log that is read while it is written.
type diary struct {
	mu   sync.Mutex
	text strings.Builder
}

func (d *diary) Write(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.Write(p)
}

func (d *diary) String() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.text.String()
}

// openedOnGPU opens an engine that is to keep images on a GPU, and collects what it logs.
func openedOnGPU(t *testing.T, scheme string, servers ...*kservetest.Server) (*triton.Engine, *diary) {
	log := &diary{}
	o := network(t)
	o.Remote.SharedMemory, o.MaxBatch = triton.CUDAMemory, 2
	addresses := []string{}
	for _, s := range servers {
		addresses = append(addresses, scheme+"://"+s.Address+"/"+kservetest.Name)
	}
	e, err := triton.Open(t.Context(), strings.Join(addresses, ","), o, slog.New(slog.NewTextHandler(log, nil)))
	require.NoError(t, err)
	requireHealthy(t, e, len(servers))
	return e, log
}

// Images are letterboxed on the GPU and stay there; the server finds them, and what it answers is what it answers to images that are
// sent.
func TestImagesStayOnTheGPU(t *testing.T) {
	gpu(t)
	whole := freeMemory(t)
	for _, scheme := range []string{"http", "grpc"} {
		t.Run(scheme, func(t *testing.T) {
			s := sharing(t)
			o := network(t)
			o.Remote.SharedMemory, o.MaxBatch = triton.NoMemory, 2
			sent, err := at(t.Context(), scheme, o, s)
			require.NoError(t, err)
			defer func() { require.NoError(t, sent.Close()) }()
			require.Empty(t, s.Memory.Registered())

			e, log := openedOnGPU(t, scheme, s)
			server := e.Status().Servers[0]
			require.True(t, server.Shared && server.OnGPU, "%+v", server)
			require.Empty(t, server.Unshared)
			require.Empty(t, log.String())
			for i, r := range s.Memory.Registered() { // in turns: images, outputs
				if i%2 == 1 {
					require.Empty(t, r.Handle)
					require.Equal(t, "/"+r.Name, r.Key)
					continue
				}
				require.Len(t, r.Handle, 64)
				require.EqualValues(t, 2*3*64*96*4, r.Size)
			}
			buffer, err := e.Alloc(3 * 200 * 100) // page-locked
			require.NoError(t, err)
			copy(buffer.Data, bytes.Repeat([]byte{10, 200, 90, 7, 7}, len(buffer.Data)/5))
			large := engine.Image{Data: buffer.Data, Width: 200, Height: 100, Stride: 600, Format: engine.BGR}
			for _, images := range [][]engine.Image{striped(), {large, striped()[0]}, {large}, img()} {
				require.NoError(t, sent.Submit(0, images))
				want, err := sent.Wait(0)
				require.NoError(t, err)
				require.NoError(t, e.Submit(1, images))
				got, err := e.Wait(1)
				require.NoError(t, err)
				require.Equal(t, want.Transforms, got.Transforms)
				require.Equal(t, want.Outputs, got.Outputs)
				require.Positive(t, got.Timing.Preprocess)
			}
			require.Less(t, e.Status().Servers[0].SentFrame, 1000.)
			require.NoError(t, e.Close())
			require.Empty(t, s.Memory.Open())
			buffer.Free()
			require.Equal(t, whole, freeMemory(t))
		})
	}
}

// A server that does not take the GPU's memory gets the system's, one that takes none gets tensors, and one line says why.
func TestWhyImagesDoNotStayOnTheGPU(t *testing.T) {
	gpu(t)
	whole := freeMemory(t)
	for _, c := range []struct {
		name, driver, refusal, reason string
		shared                        bool
	}{
		{
			name: "the server refuses", refusal: "failed to register shared memory region: invalid args", shared: true,
			reason: "the server refuses it: failed to register shared memory region: invalid args (it must see the same GPU under the same number; " +
				"in a container that takes the host's IPC and PID namespaces)",
		},
		{
			name: "no GPU", driver: "devices=0", shared: true,
			reason: "no GPU number 0: there are 0 (edge-infer devices lists them)",
		},
		{
			name: "a GPU that cannot share", driver: "fail=cuIpcGetMemHandle:801", shared: true,
			reason: "memory of Fake GPU 0: not supported by this driver (801)",
		},
		{
			name: "a GPU that is full", driver: "fail=cuMemAlloc_v2:2", shared: true,
			reason: "2097152 bytes of device memory: out of memory (2)",
		},
		{name: "no shared memory", reason: "this server has no shared memory: send the tensors themselves"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Setenv("FAKE_CUDA", c.driver)
			s := sharing(t)
			s.Memory.RefuseGPU(c.refusal)
			if !c.shared {
				s = serve(t, network(t), nil)
			}
			e, log := openedOnGPU(t, "grpc", s)
			_, err := infer(e)
			require.NoError(t, err)
			server := e.Status().Servers[0]
			require.False(t, server.OnGPU)
			require.Equal(t, c.shared, server.Shared)
			require.Contains(t, server.Unshared, c.reason)
			require.Equal(t, 1, strings.Count(log.String(), "images are not shared in GPU memory"), "%s", log)
			require.NoError(t, e.Close())
			t.Setenv("FAKE_CUDA", "")
			require.Equal(t, whole, freeMemory(t))
		})
	}
}

// A server that was started again, or has dropped its regions, is told of them again.
func TestAServerForgetsTheRegions(t *testing.T) {
	gpu(t)
	s := sharing(t)
	e, _ := openedOnGPU(t, "grpc", s)
	defer func() { require.NoError(t, e.Close()) }()
	again := func() {
		require.Eventually(t, func() bool {
			_, err := infer(e)
			return err == nil && e.Status().Servers[0].OnGPU
		}, patience, 5*time.Millisecond, "%+v", e.Status())
		require.NotEmpty(t, s.Memory.Open())
	}
	again()
	s.Stop()
	s.Memory.Forget()
	_, err := infer(e)
	require.ErrorIs(t, err, engine.ErrUnavailable)
	s.Start(t)
	again()
	s.Memory.Forget()
	again()
}

// A GPU that fails costs no frame: images are letterboxed by the CPU from then on and go through the system's memory.
func TestTheGPUFails(t *testing.T) {
	gpu(t)
	s := sharing(t)
	e, log := openedOnGPU(t, "http", s)
	defer func() { require.NoError(t, e.Close()) }()
	want, err := infer(e)
	require.NoError(t, err)
	numbers := append([]byte(nil), want.Outputs[0].Data...)
	t.Setenv("FAKE_CUDA", "fail=cuLaunchKernel:719")
	require.Eventually(t, func() bool {
		got, err := infer(e)
		require.NoError(t, err)
		require.Equal(t, numbers, got.Outputs[0].Data)
		server := e.Status().Servers[0]
		return server.Shared && !server.OnGPU
	}, patience, 5*time.Millisecond)
	require.Contains(t, e.Status().Servers[0].Unshared, "launch failed (719)")
	require.Equal(t, 1, strings.Count(log.String(), "images are not shared in GPU memory"), "%s", log)
}
