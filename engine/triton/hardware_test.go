package triton_test

import (
	"bytes"
	"encoding/binary"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// modelEnvironment names models on a real server of a machine with a GPU, as --engine takes them, separated by spaces.
const modelEnvironment = "EDGE_INFER_TEST_TRITON_MODELS"

// The same images sent, through the system's shared memory and through the GPU's give the same numbers; what each way takes is logged.
func TestHardwareThreeWays(t *testing.T) {
	fake.Hardware(t)
	models := strings.Fields(os.Getenv(modelEnvironment))
	if len(models) == 0 {
		t.Skip(modelEnvironment + " names no model")
	}
	const width, height, rounds, calls = 1920, 1080, 6, 25
	for _, model := range models {
		ways := []string{triton.NoMemory, triton.SystemMemory, triton.CUDAMemory}
		engines, outputs, times := map[string]*triton.Engine{}, map[string][]byte{}, map[string][]float64{}
		for _, way := range ways {
			log := &diary{}
			o := engine.Options{Remote: engine.Remote{Timeout: patience, SharedMemory: way}}
			e, err := triton.Open(t.Context(), model, o, slog.New(slog.NewTextHandler(log, nil)))
			require.NoError(t, err)
			defer func() { require.NoError(t, e.Close()) }()
			server := e.Status().Servers[0]
			require.Equal(t, way == triton.CUDAMemory, server.OnGPU, "%+v\n%s", server, log)
			require.Equal(t, way != triton.NoMemory, server.Shared, "%+v\n%s", server, log)
			engines[way] = e
		}
		for range rounds {
			slices.Reverse(ways)
			for _, way := range ways {
				e := engines[way]
				buffer, err := e.Alloc(3 * width * height)
				require.NoError(t, err)
				random := rand.New(rand.NewPCG(1, 2))
				for i := range buffer.Data {
					buffer.Data[i] = byte(i/300 + i%3*40 + random.IntN(20))
				}
				img := []engine.Image{{Data: buffer.Data, Width: width, Height: height, Stride: 3 * width, Format: engine.BGR}}
				for range calls {
					began := time.Now()
					require.NoError(t, e.Submit(0, img))
					result, err := e.Wait(0)
					require.NoError(t, err)
					times[way] = append(times[way], float64(time.Since(began).Microseconds())/1000)
					outputs[way] = bytes.Clone(result.Outputs[0].Data)
				}
				buffer.Free()
			}
		}
		for _, way := range ways {
			slices.Sort(times[way])
			n := len(times[way])
			t.Logf("%s, %s: p50 %.2f ms, p99 %.2f ms, %.0f bytes a frame on the wire, outputs at most %g from those of images sent", model, way,
				times[way][n/2], times[way][n*99/100], engines[way].Status().Servers[0].SentFrame, furthest(t, outputs[triton.NoMemory], outputs[way]))
		}
		require.Equal(t, outputs[triton.NoMemory], outputs[triton.SystemMemory])
		require.Less(t, furthest(t, outputs[triton.NoMemory], outputs[triton.CUDAMemory]), 1e-3)
	}
}

// furthest is the largest difference of two lists of float32, relative to the largest number.
func furthest(t *testing.T, a, b []byte) (most float64) {
	require.Len(t, b, len(a))
	largest := 1e-9
	for i := 0; i+4 <= len(a); i += 4 {
		x := float64(math.Float32frombits(binary.LittleEndian.Uint32(a[i:])))
		y := float64(math.Float32frombits(binary.LittleEndian.Uint32(b[i:])))
		most, largest = max(most, math.Abs(x-y)), max(largest, math.Abs(x))
	}
	return most / largest
}
