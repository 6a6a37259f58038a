package onnxruntime_test

import (
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	ort "github.com/yalue/onnxruntime_go"
	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/onnxruntime"
)

// BenchmarkAgainstBareRun compares the engine on 1080p images, letterbox included, two slots in flight, with a loop that does nothing but
// run the same network with as many threads. Both are interleaved in one run; the ratios are bare / engine, of
// the time that passes and, less touched by the neighbours, of the processor time.
func BenchmarkAgainstBareRun(b *testing.B) {
	for threads := 1; threads <= runtime.NumCPU() && threads <= 2; threads++ {
		b.Run(fmt.Sprintf("%d threads", threads), func(b *testing.B) {
			options := enginetest.Network(b, "detector")
			options.Threads = threads
			e, err := onnxruntime.Open(options)
			require.NoError(b, err)
			defer func() { require.NoError(b, e.Close()) }()
			bare := bareRun(b, options)
			buffer, err := e.Alloc(1920 * 1080 * 3)
			require.NoError(b, err)
			for i := range buffer.Data {
				buffer.Data[i] = byte(i * 7)
			}
			images := []engine.Image{{Data: buffer.Data, Width: 1920, Height: 1080, Stride: 1920 * 3}}
			const frames = 10
			ours := func() {
				require.NoError(b, e.Submit(0, images))
				for i := 1; i <= frames; i++ {
					if i < frames {
						require.NoError(b, e.Submit(i%2, images))
					}
					_, err := e.Wait((i + 1) % 2)
					require.NoError(b, err)
				}
			}
			theirs := func() {
				for range frames {
					require.NoError(b, bare())
				}
			}
			ours()
			theirs()
			var ratios, processor, times []float64
			for b.Loop() {
				a, aCPU := duration(ours)
				o, oCPU := duration(func() { theirs(); theirs() })
				a2, a2CPU := duration(ours)
				ratios, processor = append(ratios, o/(a+a2)), append(processor, oCPU/(aCPU+a2CPU))
				times = append(times, (a+a2)/(2*frames))
			}
			for _, values := range [][]float64{ratios, processor, times} {
				slices.Sort(values)
			}
			b.ReportMetric(ratios[len(ratios)/2], "ratio")
			b.ReportMetric(ratios[0], "ratio-worst")
			b.ReportMetric(processor[len(processor)/2], "cpu-ratio")
			b.ReportMetric(times[len(times)/2]*1e3, "ms/image")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// bareRun returns one run of the network on tensors that never change.
func bareRun(b *testing.B, options engine.Options) func() error {
	settings, err := ort.NewSessionOptions()
	require.NoError(b, err)
	defer settings.Destroy()
	require.NoError(b, settings.SetIntraOpNumThreads(options.Threads))
	require.NoError(b, settings.AddSessionConfigEntry("session.intra_op.allow_spinning", "0"))
	input, err := ort.NewEmptyTensor[float32](ort.NewShape(1, 3, 640, 640))
	require.NoError(b, err)
	for i := range input.GetData() {
		input.GetData()[i] = float32(i%255) / 255
	}
	output, err := ort.NewEmptyTensor[float32](ort.NewShape(1, 84, 8400))
	require.NoError(b, err)
	session, err := ort.NewAdvancedSessionWithONNXData(options.Bytes, []string{"images"}, []string{"output0"}, []ort.Value{input},
		[]ort.Value{output}, settings)
	require.NoError(b, err)
	return session.Run
}

// duration returns the seconds that f takes on the wall and on all CPUs together.
func duration(f func()) (wall, processor float64) {
	start, before := time.Now(), usage()
	f()
	return time.Since(start).Seconds(), usage() - before
}

// usage is the processor time of this process in seconds.
func usage() float64 {
	var u unix.Rusage
	if unix.Getrusage(unix.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
}
