package store

import (
	"slices"
	"sync"
)

// recentLimit is the number of events whose clips are known without a query.
const recentLimit = 1024

// recentClips are the events for which clips were begun lately, for the frame loop, which must not wait for the disk.
type recentClips struct {
	mu    sync.Mutex
	known map[string]bool
	order []string // oldest first
}

func (r *recentClips) add(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[key] {
		return
	}
	if r.known == nil {
		r.known = map[string]bool{}
	}
	r.known[key] = true
	r.order = append(r.order, key)
	if len(r.order) > recentLimit {
		delete(r.known, r.order[0])
		r.order = r.order[1:]
	}
}

func (r *recentClips) remove(key string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.known[key] {
		delete(r.known, key)
		r.order = slices.DeleteFunc(r.order, func(known string) bool { return known == key })
	}
}

// HasClip reports whether a clip of a recent event exists or is being written. It does not wait for the disk.
func (s *Store) HasClip(camera, id string) bool {
	s.recent.mu.Lock()
	defer s.recent.mu.Unlock()
	return s.recent.known[camera+"/"+id]
}
