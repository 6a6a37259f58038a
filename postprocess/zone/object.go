package zone

import (
	"slices"
	"strconv"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// maxPath bounds the points of a path; a longer path loses every second point.
const maxPath = 64

// Object is one reported object. It belongs to Analytics.
type Object struct {
	// Track is the tracker's ID. Class is the majority vote; Box and Score are those of the latest detection.
	Track uint64
	postprocess.Detection
	// Start and LastSeen are the times of the first and the latest detection.
	Start, LastSeen time.Time
	// TopScore is the highest score, MedianScore the median of the latest ones.
	TopScore, MedianScore float32
	// Zones lists the zones it is in by index, Entered all zones it has been in, in the order of entry.
	Zones, Entered []int
	// Path lists the positions of its bottom centre in source pixels.
	Path []Point
	// Stationary reports that it has not moved since StationarySince.
	Stationary      bool
	StationarySince time.Time
	// Speed and MeanSpeed are in metres per second, Distance is the total distance in metres; 0 without ground calibration.
	Speed, MeanSpeed, Distance float64
	// Heading is the direction of movement in degrees from 0 to 360: 0 is from the ground's first point to its second, 90 is from the
	// second to the third. It is kept while the object stands, and negative before it has moved.
	Heading float64
	// VX and VY are the velocity in source pixels per second.
	VX, VY float32
	// Best is the best snapshot so far.
	Best Snapshot
	// Ended is true from the End event on.
	Ended bool
}

// Duration returns the time from the first to the latest detection.
func (o *Object) Duration() time.Duration { return o.LastSeen.Sub(o.Start) }

// AppendID appends the object's unique ID: the Unix time of its start in seconds with six decimals, "-", and the track ID. It is the same
// in all events of the object and differs from all other objects of the camera, even after a restart.
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

// ID returns the ID of AppendID as a string.
func (o *Object) ID() string { return string(o.AppendID(nil)) }

// extendPath adds a point to the path if it is far enough from the last one.
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

// scoreHistory is the number of scores in the median.
const scoreHistory = 15

// history holds an object's latest scores.
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
