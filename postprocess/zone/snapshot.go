package zone

import (
	"math"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// Snapshot is the best view of an object so far.
type Snapshot struct {
	Seq  uint64
	Time time.Time
	postprocess.Detection
	quality float64
}

// RetrySnapshot makes the next view of the object a snapshot again: that of the last result could not be used. Only the goroutine that
// calls Update may call it.
func (o *Object) RetrySnapshot() { o.Best.quality = 0 }

// updateSnapshot selects the best snapshot: high score, large box, and not cut by the image's edge.
func (a *Analytics) updateSnapshot(o *objectState, seq uint64, at time.Time) {
	quality := float64(o.Score) * math.Sqrt(float64(o.Area()))
	const edge = 2
	if o.X1 < edge || o.Y1 < edge || o.X2 > float32(a.Width)-edge || o.Y2 > float32(a.Height)-edge {
		quality /= 2
	}
	// A new snapshot must be 10 % better.
	const better = 1.1
	if o.announced && quality > better*o.Best.quality && (o.Best.quality == 0 || at.Sub(o.Best.Time) >= a.snapshotEvery) {
		o.Best = Snapshot{Seq: seq, Time: at, Detection: o.Detection, quality: quality}
		o.changed = true
		a.result.Snapshots = append(a.result.Snapshots, &o.Object)
	}
}
