package sink

import (
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/postprocess"
)

// evidence is the number of different minutes in which objects of a class must have been counted. What a network takes for a surfboard is
// there for a moment, and Home Assistant keeps an entity for good.
const evidence = 3

// SeenLabels is which labels were counted on each camera since the start, in so many different minutes that they are no mistake. The zero
// value is empty; any goroutine may use it.
type SeenLabels struct {
	mu      sync.Mutex
	minutes map[cameraLabel]counted
	labels  map[string][]string // by camera, in order of appearance
}

type cameraLabel struct{ camera, label string }

// counted is how many minutes a label was counted in.
type counted struct {
	minutes int
	last    int64 // the latest of them, since an arbitrary time
}

// Frame records the counts by class of a frame that was captured at a time of CLOCK_MONOTONIC, in nanoseconds.
func (s *SeenLabels) Frame(camera string, captured int64, counts []int, labels []string) {
	for class, n := range counts {
		if n > 0 {
			s.add(cameraLabel{camera, postprocess.Label(labels, class)}, captured/int64(time.Minute))
		}
	}
}

func (s *SeenLabels) add(of cameraLabel, minute int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c, known := s.minutes[of]
	if known && (c.last == minute || c.minutes >= evidence) {
		return
	}
	if s.minutes == nil {
		s.minutes, s.labels = map[cameraLabel]counted{}, map[string][]string{}
	}
	s.minutes[of] = counted{c.minutes + 1, minute}
	if c.minutes+1 == evidence {
		s.labels[of.camera] = append(s.labels[of.camera], of.label)
	}
}

// Of returns the labels of a camera.
func (s *SeenLabels) Of(camera string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.labels[camera])
}
