package simulation

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestVideoIsReproducible(t *testing.T) {
	for _, scene := range Scenes() {
		scene.Length = 2 * time.Second
		video := scene.Video(3)
		require.Len(t, video, int(2*scene.Rate))
		require.Equal(t, video, scene.Video(3))
		require.NotEqual(t, video, scene.Video(4))
	}
}

// TestScenesHaveTheirProperties checks the properties of scenes: the number of visible people, that most but not all are detected, and what
// hides whom.
func TestScenesHaveTheirProperties(t *testing.T) {
	type totals struct{ truths, found, sure, hidden, moved float64 }
	all := map[string]totals{}
	for _, scene := range Scenes() {
		scene.Length = 5 * time.Second
		video := scene.Video(1)
		var sum totals
		for _, frame := range video {
			for _, p := range frame.Truth {
				require.Positive(t, p.Box.Area())
				require.True(t, p.Box.X1 >= 0 && p.Box.Y1 >= 0 && p.Box.X2 <= Width && p.Box.Y2 <= Height, "%+v", p)
				require.True(t, p.Visible >= minVisible && p.Visible <= 1, "%+v", p)
				if p.Visible < 0.5 {
					sum.hidden++
				}
			}
			for _, f := range frame.Detections {
				require.Positive(t, f.Area())
				require.True(t, f.Score >= MinScore && f.Score < 1)
				if f.Score >= 0.5 {
					sum.sure++
				}
			}
			sum.truths += float64(len(frame.Truth))
			sum.found += float64(len(frame.Detections))
			if frame.Camera.C*frame.Camera.C+frame.Camera.F*frame.Camera.F > 1 {
				sum.moved++
			}
		}
		n := float64(len(video))
		all[scene.Name] = totals{sum.truths / n, sum.found / n, sum.sure / n, sum.hidden / n, sum.moved / n}
		require.Greater(t, sum.found, 0.7*sum.truths, scene.Name)
		require.Less(t, sum.found, 1.1*sum.truths, scene.Name)
	}
	require.Greater(t, all["crowd40"].truths, 1.3*all["crowd26"].truths)
	require.Less(t, all["night"].sure, 0.8*all["crowd26"].sure)
	require.Greater(t, all["pillars"].hidden, 1.3*all["crowd26"].hidden)
	require.Zero(t, all["crowd26"].moved)
	require.Greater(t, all["pan"].moved, 0.3)
	require.Greater(t, all["shake"].moved, 0.8)
}

// TestMotionSince follows directions through the turn of a camera.
func TestMotionSince(t *testing.T) {
	before, after := newCamera(0.1, 0.01, 0), newCamera(0.112, 0.005, 0.01)
	m := after.motionSince(before)
	for _, p := range [][2]float64{{300, 400}, {960, 540}, {1700, 1000}} {
		x, y, _ := after.project(before.ray(p[0], p[1]))
		require.InDelta(t, x, m.A*p[0]+m.B*p[1]+m.C, 4)
		require.InDelta(t, y, m.D*p[0]+m.E*p[1]+m.F, 4)
	}
	still := before.motionSince(before)
	require.InDeltaSlice(t, []float64{1, 0, 0, 0, 1, 0}, []float64{still.A, still.B, still.C, still.D, still.E, still.F}, 1e-6)
}
