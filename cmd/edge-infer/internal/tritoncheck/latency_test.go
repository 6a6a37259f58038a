package tritoncheck

import (
	"bytes"
	"log/slog"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/triton"
)

// A request of the engine beside one of a client written by hand, with the same tensor, in turns. The aim is 1.1; what fails the test is
// twice that, because the machine may have other things to do.
func TestLatencyBesideAClientWrittenByHand(t *testing.T) {
	s := start(t, exported(t))
	for _, scheme := range []string{"http", "grpc"} {
		e := opened(t, s, scheme, true)
		info := e.Model().Inputs[0]
		shape := append([]int64{1}, info.Shape[1:]...)
		tensor := make([]byte, 4*engine.Elements(shape))
		for i := range len(tensor) / 4 { // levels of gray as the letterbox makes them
			copy(tensor[4*i:], []byte{0, 0, byte(rand.IntN(128)), 0x3e})
		}
		hand := newByHand(s, scheme, info.Name, shape, len(tensor))
		var theirs, ours []byte
		byHand := func() (err error) {
			theirs, err = hand.infer(tensor)
			return err
		}
		byEngine := func() error {
			if err := e.SubmitTensors(0, []engine.Tensor{{Name: info.Name, Type: info.Type, Shape: shape, Data: tensor}}); err != nil {
				return err
			}
			result, err := e.Wait(0)
			if err == nil {
				ours = result.Outputs[0].Data
			}
			return err
		}
		ratios, floor, took := turns(t, 6, byHand, byEngine)
		require.True(t, bytes.Equal(theirs, ours), "the same numbers")
		ratio := median(ratios)
		t.Logf("%s: %.2f of the client by hand (rounds %.2f to %.2f), p50 %.2f ms and %.2f ms, %d bytes", scheme, ratio, slices.Min(ratios),
			slices.Max(ratios), median(took), median(floor), len(tensor))
		require.Less(t, ratio, 2.2)
	}
}

// What images cost over each way, letterbox included.
func TestLatencyOfImages(t *testing.T) {
	s := start(t, exported(t))
	img := []engine.Image{{Data: make([]byte, 3*640*360), Width: 640, Height: 360, Stride: 3 * 640, Format: engine.BGR}}
	of := func(e *triton.Engine) func() error {
		return func() error {
			if err := e.Submit(0, img); err != nil {
				return err
			}
			_, err := e.Wait(0)
			return err
		}
	}
	for _, scheme := range []string{"http", "grpc"} {
		sent, shared := opened(t, s, scheme, true), opened(t, s, scheme, false)
		_, a, b := turns(t, 6, of(sent), of(shared))
		require.True(t, shared.Status().Servers[0].Shared)
		t.Logf("%s: an image sent p50 %.2f ms, %.0f bytes on the wire; through shared memory %.2f ms, %.0f bytes", scheme, median(a),
			sent.Status().Servers[0].SentFrame, median(b), shared.Status().Servers[0].SentFrame)
	}
}

// opened is the engine on the demo model of a server.
func opened(t *testing.T, s *server, scheme string, send bool) *triton.Engine {
	options := engine.Options{Remote: engine.Remote{Timeout: programtest.Patience}}
	if send {
		options.Remote.SharedMemory = triton.NoMemory
	}
	e, err := triton.Open(t.Context(), s.at(scheme, "demo"), options, slog.New(slog.DiscardHandler))
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, e.Close()) })
	return e
}

// turns times two ways ABBA, and gives the ratio of the second's median to the first's of each round, and all times in milliseconds.
func turns(t *testing.T, rounds int, first, second func() error) (ratios, a, b []float64) {
	const calls = 25
	time1 := func(call func() error) (times []float64) {
		for range calls {
			began := time.Now()
			require.NoError(t, call())
			times = append(times, float64(time.Since(began).Microseconds())/1000)
		}
		return times
	}
	time1(first)
	time1(second)
	for range rounds {
		first1, second1 := time1(first), time1(second)
		second2, first2 := time1(second), time1(first)
		first1, second1 = append(first1, first2...), append(second1, second2...)
		ratios = append(ratios, median(second1)/median(first1))
		a, b = append(a, first1...), append(b, second1...)
	}
	return ratios, a, b
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[len(sorted)/2]
}
