package record

import (
	"cmp"
	"context"
	"slices"
	"sync"
)

// memoryIndex is an Index in memory.
type memoryIndex struct {
	mu     sync.Mutex
	clips  map[string]Clip
	err    error       // of all methods; nil for none
	closed func(*Clip) // called when a clip is closed; nil for nothing
}

func newIndex() *memoryIndex { return &memoryIndex{clips: map[string]Clip{}} }

func (m *memoryIndex) put(clip *Clip, exists bool) error {
	m.mu.Lock()
	if m.err != nil {
		m.mu.Unlock()
		return m.err
	}
	before, found := m.clips[clip.ID]
	if found == exists {
		row := *clip
		row.Events = slices.Clone(clip.Events)
		row.Pinned = before.Pinned
		m.clips[clip.ID] = row
	}
	m.mu.Unlock()
	if found && before.State == Open && clip.State != Open && m.closed != nil {
		m.closed(clip)
	}
	return nil
}

func (m *memoryIndex) OpenClip(_ context.Context, clip *Clip) error   { return m.put(clip, false) }
func (m *memoryIndex) UpdateClip(_ context.Context, clip *Clip) error { return m.put(clip, true) }
func (m *memoryIndex) AdoptClip(_ context.Context, clip *Clip) error  { return m.put(clip, false) }

func (m *memoryIndex) RemoveClip(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.clips[id].Pinned {
		return ErrPinned
	}
	delete(m.clips, id)
	return m.err
}

func (m *memoryIndex) Clips(_ context.Context, yield func(*Clip) bool) error {
	for _, clip := range m.all() {
		if !yield(&clip) {
			break
		}
	}
	return m.err
}

// all returns the rows, oldest first.
func (m *memoryIndex) all() (all []Clip) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, clip := range m.clips {
		all = append(all, clip)
	}
	slices.SortFunc(all, func(a, b Clip) int { return cmp.Or(a.Start.Compare(b.Start), cmp.Compare(a.ID, b.ID)) })
	return all
}
