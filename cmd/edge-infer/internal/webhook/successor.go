package webhook

// HandOver makes next, which is not open, the successor of an open sender: it takes over the queue, so that nothing that either has queued
// or will queue is lost. The caller ends Run of the sender, which leaves the queue as it is, then runs next and closes next alone. An error
// changes nothing.
func (s *Sender) HandOver(next *Sender) error {
	if err := next.prepare(); err != nil {
		return err
	}
	next.run, next.events, next.wake = s.run, s.events, s.wake
	next.before = s
	s.left.Store(true)
	return nil
}

// inherit takes over the stored state of the predecessor, whose Run has ended.
func (s *Sender) inherit() {
	if s.before == nil {
		return
	}
	s.before.mu.Lock()
	stored := s.before.state
	s.before.mu.Unlock()
	s.before = nil
	s.begin(stored)
}
