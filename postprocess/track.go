package postprocess

import (
	"fmt"
	"time"
)

// TrackState is where a track is in its life.
type TrackState uint8

// The states. A track is Tentative until a second detection confirms it, Lost while no detection fits it, and Ended in the one result in
// which the tracker gives it up.
const (
	Tentative TrackState = iota
	Active
	Lost
	Ended
)

// String returns the state's name.
func (s TrackState) String() string {
	names := [...]string{"tentative", "active", "lost", "ended"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("TrackState(%d)", uint8(s))
}

// Track is one followed object as of the latest frame.
type Track struct {
	// ID is unique for the life of the tracker and never used again; it starts at 1.
	ID uint64
	// Finding holds the box of the matched detection, or the predicted one when there is none; the class that the detections so far
	// vote for; the score of the last detection. Its Detail is that of this frame's detection, nil without one.
	Detection
	State TrackState
	// Index is the number of the matched detection in this frame, -1 when the box is a prediction.
	Index int
	// VX and VY are the centre's velocity in source pixels a second.
	VX, VY float32
	// Hits is the number of detections so far, First and Last the times of the first and the latest of them.
	Hits        int
	First, Last time.Time
}

// Matched reports whether a detection of this frame belongs to the track.
func (t *Track) Matched() bool { return t.Index >= 0 }
