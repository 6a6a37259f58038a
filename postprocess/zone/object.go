package zone

import (
	"slices"
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// maxPath is how many points an object's path keeps; a longer one loses every second point.
const maxPath = 64

// Object is one reported object. It belongs to Analytics.
type Object struct {
	// Track is the object's number in the tracker, Class its class by vote, Box and Score as in the latest frame with a detection.
	Track uint64
	postprocess.Detection
	// Start and Seen are the times of the first and the latest detection.
	Start, LastSeen time.Time
	// TopScore is the highest score, MedianScore the median of the latest ones.
	TopScore, MedianScore float32
	// Zones are the numbers of the zones it is in, Entered of those it has been in, in the order of entry.
	Zones, Entered []int
	// Path is where its bottom centre has been, in source pixels.
	Path []Point
	// Stationary is true while it stays in its place, since StillSince.
	Stationary      bool
	StationarySince time.Time
	// Speed and MeanSpeed are in metres a second, Distance is the way so far in metres; 0 without a ground scale.
	Speed, MeanSpeed, Distance float64
	// Heading is where to, in degrees from 0 to 360: 0 is from the ground's first point to its second, 90 as from the second to the third.
	// It stays while the object stands, and is below 0 before it has moved.
	Heading float64
	// VX and VY are the velocity in source pixels a second.
	VX, VY float32
	// Best is the best view so far.
	Best Snapshot
	// Ended is true from the End event on.
	Ended bool
}

// Duration is the time from the first to the latest detection.
func (o *Object) Duration() time.Duration { return o.LastSeen.Sub(o.Start) }

// AppendID appends the object's identity: the Unix time of its start in seconds with six decimals, "-", and the track number. It is the
// sameGrid in every event of the object and differs from every other object's of the camera, also after a restart.
func (o *Object) AppendID(dst []byte) []byte {
	micros := o.Start.UnixMicro()
	dst = strconv.AppendInt(dst, micros/1e6, 10)
	dst = append(dst, '.')
	for unit := int64(1e5); unit > 0; unit /= 10 {
		dst = append(dst, byte('0'+micros%(unit*10)/unit))
	}
	dst = append(dst, '-')
	return strconv.AppendUint(dst, o.Track, 10)
}

// ID is AppendID as a string.
func (o *Object) ID() string { return string(o.AppendID(nil)) }

// extendPath adds a point to the path when it is far enough from the last one.
func (o *Object) extendPath(p Point, step float64) {
	if n := len(o.Path); n > 0 && o.Path[n-1].distance(p) < step {
		return
	}
	if len(o.Path) == maxPath {
		kept := o.Path[:0]
		for i := 0; i < maxPath; i += 2 {
			kept = append(kept, o.Path[i])
		}
		o.Path = kept
	}
	o.Path = append(o.Path, p)
}

// scoreHistory is how many scores the median is taken of.
const scoreHistory = 15

// history is an object's latest scores.
type history struct {
	scores [scoreHistory]float32
	count  int
}

func (h *history) add(score float32) {
	h.scores[h.count%scoreHistory] = score
	h.count++
}

func (h *history) median() float32 {
	sorted := h.scores
	n := min(h.count, scoreHistory)
	slices.Sort(sorted[:n])
	return sorted[n/2]
}
