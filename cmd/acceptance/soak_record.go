package main

import (
	"bufio"
	"encoding/json"
	"io"
	"math"
	"sync"
	"time"

	"github.com/HdrHistogram/hdrhistogram-go"
)

// span counts the frames of a camera over some time.
type span struct {
	frames uint64 // handed over
	late   uint64 // of these, older than one frame interval
	lost   uint64 // never handed over
	took   time.Duration
}

func (s span) since(before span, took time.Duration) span {
	return span{s.frames - before.frames, s.late - before.late, s.lost - before.lost, took}
}

func (s *span) add(other span) {
	s.frames += other.frames
	s.late += other.late
	s.lost += other.lost
	s.took += other.took
}

func (s span) rate() float64 { return float64(s.frames) / max(s.took.Seconds(), 1e-9) }

func (s span) lateShare() float64 { return float64(s.late+s.lost) / float64(max(s.frames+s.lost, 1)) }

// record counts the frames of each camera from the JSON lines of edge-infer run --json.
type record struct {
	interval float64 // ms between two frames

	mu      sync.Mutex
	cameras map[string]*counted
}

type counted struct {
	span
	next    uint64                  // sequence number
	latency *hdrhistogram.Histogram // microseconds
}

func newRecord(fps float64) *record {
	return &record{interval: 1000 / fps, cameras: map[string]*counted{}}
}

// read processes lines until end of file.
func (r *record) read(lines io.Reader) error {
	scanner := bufio.NewScanner(lines)
	scanner.Buffer(nil, 16<<20)
	var line struct {
		Camera  string  `json:"camera"`
		Seq     uint64  `json:"seq"`
		Latency float64 `json:"latency_ms"`
	}
	for scanner.Scan() {
		line.Camera = ""
		if json.Unmarshal(scanner.Bytes(), &line) == nil && line.Camera != "" {
			r.frame(line.Camera, line.Seq, line.Latency)
		}
	}
	return scanner.Err()
}

func (r *record) frame(camera string, seq uint64, latency float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.cameras[camera]
	if c == nil {
		c = &counted{next: seq, latency: hdrhistogram.New(1, 60_000_000, 3)}
		r.cameras[camera] = c
	}
	if seq < c.next { // a reopened camera starts again at 0
		c.next = seq
	}
	c.frames++
	c.lost += seq - c.next
	c.next = seq + 1
	if latency > r.interval {
		c.late++
	}
	_ = c.latency.RecordValue(int64(max(1, min(latency*1000, 60_000_000)))) // it is within the bounds
}

// spans returns the counters of every camera since the start.
func (r *record) spans() map[string]span {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[string]span{}
	for name, c := range r.cameras {
		all[name] = c.span
	}
	return all
}

// quantile returns a quantile, 0 to 100, of a camera's latency since the start, in milliseconds.
func (r *record) quantile(camera string, q float64) float64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if c := r.cameras[camera]; c != nil {
		return float64(c.latency.ValueAtQuantile(q)) / 1000
	}
	return math.NaN()
}
