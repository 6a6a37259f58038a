package sink

import (
	"slices"
	"sync"
)

// SeenLabels is which labels were counted on each camera since the start. The zero value is empty; any goroutine may use it.
type SeenLabels struct {
	mu      sync.Mutex
	labels  map[string][]string // by camera, in order of appearance
	changed bool
}

// Add records that objects of a label were counted.
func (s *SeenLabels) Add(camera, label string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if slices.Contains(s.labels[camera], label) {
		return
	}
	if s.labels == nil {
		s.labels = map[string][]string{}
	}
	s.labels[camera] = append(s.labels[camera], label)
	s.changed = true
}

// Of returns the labels of a camera.
func (s *SeenLabels) Of(camera string) []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.labels[camera])
}

// Changed reports whether labels were added since the last call.
func (s *SeenLabels) Changed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	changed := s.changed
	s.changed = false
	return changed
}
