package spool

import (
	"os"
	"slices"
	"time"
)

// write is the writer goroutine. It polls the queue at every commit interval: a wake-up per event would cost the frame loop more than the
// event itself.
func (s *Spool) write() {
	defer close(s.stopped)
	defer s.release()
	const retry = time.Second
	ticker := time.NewTicker(s.Commit)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			if s.commit() == nil {
				ticker.Reset(s.Commit)
			} else {
				ticker.Reset(max(retry, s.Commit))
			}
		case answer := <-s.syncs:
			answer <- s.flush()
		case <-s.stop:
			s.flush()
			return
		}
	}
}

// flush commits until nothing waits in memory.
func (s *Spool) flush() error {
	for {
		if err := s.commit(); err != nil || s.Directory == "" {
			return err
		}
		s.mu.Lock()
		waiting := s.writing.len() + s.tail.len()
		s.mu.Unlock()
		if waiting == 0 {
			return nil
		}
	}
}

// commit appends and syncs new events, saves the position and removes files without queued events.
func (s *Spool) commit() error {
	if s.Directory == "" {
		return nil
	}
	err := s.store()
	if err == nil {
		err = s.savePosition()
	}
	s.collect()
	s.mu.Lock()
	before := s.failure
	s.failure = err
	if err != nil {
		s.failed++
	}
	s.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		s.Logger.Warn("event spool cannot write, new events wait in memory", "directory", s.Directory, "error", err)
	} else if err == nil && before != nil {
		s.Logger.Info("event spool writes again", "directory", s.Directory)
	}
	return err
}

// store appends the waiting batch to the newest file, or to a new one when that is full.
func (s *Spool) store() error {
	s.mu.Lock()
	if s.writing.len() == 0 {
		s.writing, s.tail = s.tail, batch{queue: queue{entries: s.writing.entries[:0]}, data: s.writing.data[:0]}
	}
	live := s.writing.live()
	if len(live) == 0 {
		s.mu.Unlock()
		return nil
	}
	start := live[0].offset
	records := s.writing.data[start:]
	first, last := live[0].number, live[len(live)-1].number
	var file *segment
	before := s.written.stored
	if n := len(s.files); n > 0 {
		before = s.files[n-1].last
	}
	if n := len(s.files); n > 0 && s.files[n-1].size < s.fileSize() && !s.files[n-1].sealed {
		file = s.files[n-1]
	}
	s.mu.Unlock()

	created := file == nil
	if created {
		var err error
		if file, err = createSegment(s.Directory, first, before); err != nil {
			return err
		}
	}
	if err := file.append(records); err != nil {
		if created {
			file.remove()
		}
		return err
	}

	s.mu.Lock()
	defer s.mu.Unlock()
	if created {
		s.files = append(s.files, file)
	}
	for _, e := range s.writing.live() {
		e.offset += uint32(file.size) - start
		s.stored.push(e)
	}
	file.size += int64(len(records))
	file.last = last
	s.writing = batch{queue: queue{entries: s.writing.entries[:0]}, data: s.writing.data[:0]}
	return nil
}

// fileSize returns the maximum size of a segment, small compared with MaxBytes, because space is freed by segment.
func (s *Spool) fileSize() int64 { return min(max(s.MaxBytes/16, 64<<10), 4<<20) }

// savePosition writes the position if it has changed and, while events are queued, once a minute for the clock. It is not synced: after a
// power cut a few events are repeated.
func (s *Spool) savePosition() error {
	const clockInterval = 60_000
	s.mu.Lock()
	p := position{done: s.done, stored: s.written.stored, clock: s.clock.now(), running: s.clock.running().Milliseconds(), boot: s.clock.boot}
	if n := len(s.files); n > 0 {
		p.stored = max(p.stored, s.files[n-1].last)
	}
	waiting := s.stored.len() > 0
	s.mu.Unlock()
	if p.done == s.written.done && p.stored == s.written.stored && !(waiting && p.clock-s.written.clock >= clockInterval) {
		return nil
	}
	if err := p.write(s.position); err != nil {
		return err
	}
	s.written = p
	return nil
}

// collect removes the files that hold no queued event.
func (s *Spool) collect() {
	s.mu.Lock()
	n := 0
	for n < len(s.files) && (s.stored.len() == 0 || s.files[n].last < s.stored.live()[0].number) {
		n++
	}
	dead := slices.Clone(s.files[:n])
	s.files = slices.Delete(s.files, 0, n)
	s.mu.Unlock()
	for _, file := range dead {
		file.remove()
	}
}

// release closes the files and unlocks the directory.
func (s *Spool) release() {
	for _, file := range s.files {
		file.file.Close()
	}
	s.files = nil
	for _, file := range [...]*os.File{s.position, s.lock} {
		if file != nil {
			file.Close()
		}
	}
}
