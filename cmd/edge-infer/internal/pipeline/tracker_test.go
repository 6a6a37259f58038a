package pipeline

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

// TestATurnOfTheCameraKeepsNumbers turns the camera by the width of an object while another one is not seen.
func TestATurnOfTheCameraKeepsNumbers(t *testing.T) {
	const width, height, turn = 480, 270, 24
	random := rand.New(rand.NewPCG(1, 2))
	wall := make([]byte, 2*width*height)
	for range 3000 { // stones of all sizes
		x, y, side, shade := random.IntN(2*width), random.IntN(height), 3+random.IntN(30), byte(40+random.IntN(170))
		for row := y; row < min(height, y+side); row++ {
			for column := x; column < min(2*width, x+side); column++ {
				wall[row*2*width+column] = shade
			}
		}
	}
	newest := map[track.Profile]uint64{}
	for _, profile := range []track.Profile{track.Static, track.PTZ} {
		follower := &Tracker{Labels: []string{"person"}, Confidence: 0.5, Profile: profile}
		require.NoError(t, follower.Open())
		settings := &Settings{Detect: true, Confidence: 0.5, Interval: 1}
		for frame := range 30 {
			shift := 0
			if frame >= 15 {
				shift = turn
			}
			in := Result{Camera: "gate", Seq: uint64(frame), Time: time.Unix(1000, int64(frame)*4e7), Width: width, Height: height}
			for i := range 2 {
				x, gone := float32(100+200*i-shift), i == 1 && frame >= 14 && frame < 18
				if !gone {
					in.Detections = append(in.Detections, postprocess.Detection{Box: postprocess.Box{X1: x, Y1: 100, X2: x + 16, Y2: 140}, Score: 0.9})
				}
			}
			img := engine.Image{Data: wall[shift:], Width: width, Height: height, Stride: 2 * width, Format: engine.GRAY8}
			require.NoError(t, follower.track(&in, &img, settings, nil))
			for _, tr := range in.Tracks {
				newest[profile] = max(newest[profile], tr.ID)
			}
		}
	}
	require.EqualValues(t, 2, newest[track.PTZ])
	require.Greater(t, newest[track.Static], uint64(2), "the same without a look at the image is no test")
}
