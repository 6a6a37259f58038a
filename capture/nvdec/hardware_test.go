package nvdec

import (
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/capture/decodertest"
	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// TestHardwareDecoder: the decoder passes the tests of all decoders on a GPU. FFmpeg is not needed there if the directory that
// decodertest.VideosEnvironment names has been filled by TestStandInDecoder elsewhere.
func TestHardwareDecoder(t *testing.T) {
	fake.Hardware(t)
	decodertest.Run(t, decodertest.Subject{Open: open, Deinterlaces: true})
}

// TestHardwareUnusual: a profile that the GPU lacks gives an error.
func TestHardwareUnusual(t *testing.T) {
	fake.Hardware(t)
	d, err := open(capture.H264)
	require.NoError(t, err)
	defer d.Close()
	err = d.Submit(&decodertest.Load(t, "chroma422").Units[0])
	require.ErrorIs(t, err, capture.ErrFormat)
	t.Log(err)
}

// BenchmarkHardware is the time for an image, decoded and copied in the GPU's memory, by as many decoders as -test.cpu says.
func BenchmarkHardware(b *testing.B) {
	if os.Getenv(fake.GPUEnvironment) == "" {
		b.Skip("needs a GPU: set " + fake.GPUEnvironment + "=1 on a machine that has one")
	}
	units := decodertest.Load(b, "fullhd").Units
	var ready, done sync.WaitGroup
	var images atomic.Int64
	begin := make(chan struct{})
	for range runtime.GOMAXPROCS(0) {
		d, err := Open(Options{Codec: capture.H264, MaxPixels: capture.DefaultMaxPixels})
		require.NoError(b, err)
		defer d.Close()
		pool := &capture.Pool{}
		defer pool.Close()
		next := 0
		step := func() {
			require.NoError(b, d.Submit(&units[next%len(units)]))
			next++
			for {
				f, found, err := d.Next(pool)
				if err != nil || !found {
					break
				}
				f.Release()
			}
		}
		ready.Add(1)
		done.Go(func() {
			for range 60 {
				step()
			}
			ready.Done()
			<-begin
			for images.Add(1) <= int64(b.N) {
				step()
			}
		})
	}
	ready.Wait()
	b.ReportAllocs()
	b.ResetTimer()
	close(begin)
	done.Wait()
	b.StopTimer()
}
