// Package livetest creates frames and results for tests.
package livetest

import (
	"math/rand/v2"
	"time"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/pipeline"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
)

// Noise returns a frame of random pixels.
func Noise(format engine.PixelFormat, width, height, stride int) *capture.Frame {
	f := &capture.Frame{Data: make([]byte, stride*format.Rows(height)), Width: width, Height: height, Stride: stride, Format: format}
	random := rand.New(rand.NewPCG(1, 2))
	for i := range f.Data {
		f.Data[i] = byte(random.Uint32())
	}
	return f
}

// Result returns the result of a frame with one detection and one lost track.
func Result(f *capture.Frame, seq uint64, captured time.Duration) *pipeline.Result {
	return &pipeline.Result{
		Camera: "cam0", Seq: seq, Time: time.Unix(1e9, 0), Captured: int64(captured), Width: f.Width, Height: f.Height, Frame: f,
		Labels: []string{"bolt"}, Detections: []postprocess.Detection{{Box: postprocess.Box{X1: 1, Y1: 2, X2: 3.25, Y2: 4}, Score: 0.9}},
		IDs:    []uint64{7},
		Tracks: []postprocess.Track{{ID: 8, State: postprocess.Lost, Index: -1}},
	}
}
