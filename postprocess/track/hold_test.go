package track_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/postprocess"
	"github.com/edge-infer/edge-infer/postprocess/track"
)

func TestHold(t *testing.T) {
	tracker := track.Tracker{TrackBuffer: time.Second}
	require.NoError(t, tracker.Open())
	seen := []postprocess.Detection{{Box: postprocess.Box{X1: 100, Y1: 100, X2: 150, Y2: 200}, Score: 0.9}}
	at := time.Unix(1000, 0)
	var id uint64
	for range 10 {
		at = at.Add(40 * time.Millisecond)
		id = tracker.Update(at, seen)[0].ID
	}
	for range 100 { // pauses of 15 s, much longer than TrackBuffer
		at = at.Add(150 * time.Millisecond)
		tracker.Hold(at)
	}
	tracks := tracker.Update(at.Add(40*time.Millisecond), seen)
	require.Len(t, tracks, 1)
	require.Equal(t, id, tracks[0].ID)
	require.Equal(t, postprocess.Active, tracks[0].State)
	require.InDelta(t, 100, tracks[0].X1, 1)

	// What has gone ends as ever.
	for range 60 {
		at = at.Add(40 * time.Millisecond)
		tracks = tracker.Update(at, nil)
	}
	require.Empty(t, tracks)
	tracker.Hold(at.Add(-time.Hour)) // time that goes back is no time
}
