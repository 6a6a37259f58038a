package pipeline

import "sync/atomic"

// Quota limits the frames of one or more pipelines together. A nil Quota is no limit.
type Quota struct {
	// Stop is called once, when the last frame has been taken; its result follows. It ends the pipelines, soon.
	Stop func()

	left atomic.Int64
}

// NewQuota returns a quota of that many frames.
func NewQuota(frames int, stop func()) *Quota {
	q := &Quota{Stop: stop}
	q.left.Store(int64(frames))
	return q
}

// used reports whether no frame is left.
func (q *Quota) used() bool { return q != nil && q.left.Load() <= 0 }

// take takes one frame; false if none is left.
func (q *Quota) take() bool {
	if q == nil {
		return true
	}
	left := q.left.Add(-1)
	if left == 0 {
		q.Stop()
	}
	return left >= 0
}
