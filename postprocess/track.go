package postprocess

import (
	"fmt"
	"time"
)

// TrackState is a track's state in its life cycle.
type TrackState uint8

// The states. A track is Tentative until a second detection confirms it, Lost while no detection matches it, and Ended in the one result in
// which the tracker removes it.
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

// Track is one tracked object as of the latest frame.
type Track struct {
	// ID is unique for the life of the tracker and never reused; it starts at 1.
	ID uint64
	// Detection holds the box of the matched detection or, without one, the predicted box; the class by majority vote; and the score of the
	// last detection. Detail belongs to this frame's detection, nil without one.
	Detection
	State TrackState
	// Index is the index of the matched detection in this frame, -1 if the box is a prediction.
	Index int
	// VX and VY are the velocity of the centre in source pixels per second.
	VX, VY float32
	// Hits is the number of matched detections, First and Last the times of the first and the latest of them.
	Hits        int
	First, Last time.Time
}

// Matched reports whether a detection of this frame belongs to the track.
func (t *Track) Matched() bool { return t.Index >= 0 }
