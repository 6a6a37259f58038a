package store

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	maxQueued = 4096 // changes that may wait for the disk
	maxBatch  = 512  // changes in one transaction
)

// job is one change of the database.
type job struct {
	apply func() error
	done  chan<- error // takes the result if somebody waits for it; buffered
	event bool         // it is counted as stored or dropped
}

// queue holds the changes that wait for the writer, in order.
type queue struct {
	mu      sync.Mutex
	jobs    []job
	changed chan struct{} // closed and replaced when a batch is settled
	wake    chan struct{} // holds a token when there may be jobs

	offered, settled atomic.Uint64 // changes handed over, and those that are stored or given up
	late             atomic.Bool   // somebody has waited in vain since the last batch
}

func (q *queue) init() {
	q.changed = make(chan struct{})
	q.wake = make(chan struct{}, 1)
}

func (q *queue) len() int { return int(q.offered.Load() - q.settled.Load()) }

// add returns false if the queue is full.
func (q *queue) add(j job) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.len() >= maxQueued {
		return false
	}
	q.jobs = append(q.jobs, j)
	q.offered.Add(1)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return true
}

// take moves the oldest changes into batch.
func (q *queue) take(batch []job) []job {
	q.mu.Lock()
	defer q.mu.Unlock()
	n := min(len(q.jobs), maxBatch)
	batch = append(batch, q.jobs[:n]...)
	rest := copy(q.jobs, q.jobs[n:])
	clear(q.jobs[rest:])
	q.jobs = q.jobs[:rest]
	return batch
}

// settle notes that the oldest n changes are stored or given up.
func (q *queue) settle(n int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.settled.Add(uint64(n))
	q.late.Store(false)
	close(q.changed)
	q.changed = make(chan struct{})
}

// wait returns when all changes handed over before are settled, after the limit at the latest. While the writer has not settled anything
// since somebody waited in vain, it returns at once.
func (q *queue) wait(limit time.Duration) {
	target := q.offered.Load()
	if q.settled.Load() >= target || q.late.Load() {
		return
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	for {
		q.mu.Lock()
		changed := q.changed
		reached := q.settled.Load() >= target
		q.mu.Unlock()
		if reached {
			return
		}
		select {
		case <-changed:
		case <-timer.C:
			q.late.Store(true)
			return
		}
	}
}
