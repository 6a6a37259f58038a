// Package stage measures the time of a frame by stage, from the camera to the broker.
package stage

import (
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// Stage is a part of a frame's way.
type Stage uint8

// The stages in their order. Capture, Queue, Track, Encode, HandOff and CameraToMessage are counted once a frame, Waiting to Decode once a
// request to the engine, which may be of several cameras' frames, and Acknowledgement once a message that the broker acknowledges.
const (
	Capture         Stage = iota // from an image's arrival to its decoded pixels
	Queue                        // from there to the submission to the engine, while no slot of it is free
	Waiting                      // in the engine while nothing is done for the request: behind another request, or not collected yet
	Letterbox                    // pixels to the network's input
	Network                      // the network
	Filter                       // listing the boxes on the device, and their copy to the host; only engines with such a filter have it
	Decode                       // outputs to detections: thresholds and non-maximum suppression
	Track                        // tracks, zones, lines and objects
	Encode                       // the message
	HandOff                      // of the message to the client's queue
	Acknowledgement              // from the sending of a message to the broker's word that it has it
	CameraToMessage              // from an image's time by its camera's clock to the message in the client's queue; only cameras with a clock
	count
)

// Count is how many there are.
const Count = int(count)

var names = [count]string{
	"capture", "queue", "waiting", "letterbox", "network", "filter", "decode", "track", "encode", "hand_off", "acknowledgement",
	"camera_to_message",
}

// String is the stage's name in messages, JSON and metrics.
func (s Stage) String() string { return names[s] }

// Times are recorded in nanoseconds up to one minute with two significant digits; longer times count as a minute.
const (
	longest = int64(time.Minute)
	digits  = 2
)

// Times holds the times of every stage. All methods may be called from any goroutine; those of a nil *Times do nothing.
type Times struct{ each [count]clock }

type clock struct {
	mutex  sync.Mutex
	total  *hdrhistogram.Histogram // since the start
	recent *hdrhistogram.Histogram // since the previous call of Recent
	sum    time.Duration
}

// New makes clocks that have measured nothing.
func New() *Times {
	c := new(Times)
	for i := range c.each {
		c.each[i].total = hdrhistogram.New(1, longest, digits)
		c.each[i].recent = hdrhistogram.New(1, longest, digits)
	}
	return c
}

// Record adds one time. It does not allocate and takes about ten nanoseconds. A negative time, from two machines' clocks, counts as 0.
func (c *Times) Record(s Stage, took time.Duration) {
	if c == nil {
		return
	}
	took = max(0, min(took, time.Duration(longest)))
	at := &c.each[s]
	at.mutex.Lock()
	_ = at.total.RecordValue(int64(took)) // it is within the bounds
	_ = at.recent.RecordValue(int64(took))
	at.sum += took
	at.mutex.Unlock()
}

// Summary summarizes the times of one stage. Quantiles are within one percent.
type Summary struct {
	Stage               Stage
	Count               uint64
	P50, P99, P999, Max time.Duration
	Sum                 time.Duration // of all since the start; 0 in Recent
}

// Recent is every stage since the previous call, those with nothing left out.
func (c *Times) Recent() []Summary {
	return c.read(func(at *clock, s *Summary) *hdrhistogram.Histogram { return at.recent }, true)
}

// Totals is every stage since the start, those with nothing left out.
func (c *Times) Totals() []Summary {
	return c.read(func(at *clock, s *Summary) *hdrhistogram.Histogram {
		s.Sum = at.sum
		return at.total
	}, false)
}

func (c *Times) read(choose func(*clock, *Summary) *hdrhistogram.Histogram, reset bool) (all []Summary) {
	if c == nil {
		return nil
	}
	for i := range c.each {
		at := &c.each[i]
		at.mutex.Lock()
		s := Summary{Stage: Stage(i)}
		h := choose(at, &s)
		if h.TotalCount() > 0 {
			quantile := func(q float64) time.Duration { return time.Duration(h.ValueAtQuantile(q)) }
			s.Count = uint64(h.TotalCount())
			s.P50 = quantile(50)
			s.P99 = quantile(99)
			s.P999 = quantile(99.9)
			s.Max = time.Duration(h.Max())
			all = append(all, s)
		}
		if reset {
			h.Reset()
		}
		at.mutex.Unlock()
	}
	return all
}
