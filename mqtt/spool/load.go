package spool

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// load locks the directory and indexes its files.
func (s *Spool) load() error {
	if err := atomicfile.MkdirAll(s.Directory, 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.Directory, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return fmt.Errorf("%w: stop it or set --name", busy(s.lock))
	}
	// What the lock holds names its owner to another process; without it that message is shorter.
	_ = s.lock.Truncate(0)
	_, _ = s.lock.WriteAt(fmt.Appendln(nil, os.Getpid()), 0)
	s.written = readPosition(s.Directory)
	s.done = s.written.done
	if s.position, err = os.OpenFile(filepath.Join(s.Directory, positionName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := s.loadSegments(); err != nil {
		return err
	}
	s.mu.Lock()
	s.enforce()
	s.mu.Unlock()
	return nil
}

// loadSegments indexes the files and restores the clock.
func (s *Spool) loadSegments() error {
	paths, err := filepath.Glob(filepath.Join(s.Directory, "*"+segmentSuffix)) // sorted, which is the order of their numbers
	if err != nil {
		return err
	}
	last, newest := uint64(0), int64(0)
	damaged := false
	for i, path := range paths {
		if first := firstNumber(path); i == 0 && first > 0 {
			last = first - 1
		}
		file, c, err := openSegment(path, last)
		if err != nil {
			return err
		}
		if len(c.damaged) > 0 {
			s.Logger.Warn("event spool file was damaged: what is whole is kept, the rest moved aside", "file", path, "parts", len(c.damaged))
		}
		if i > 0 && c.before > last {
			s.countLost(last, c.before)
			last = c.before
		}
		for _, e := range c.records {
			if damaged || e.afterDamage {
				s.countLost(last, e.Number-1)
			}
			damaged, last, newest = false, e.Number, max(newest, e.at)
			if e.Number > s.done {
				s.stored.push(entry{e.Number, e.at, uint32(e.offset), uint32(len(e.Buffer))})
			}
		}
		damaged = damaged || c.tail
		if file != nil {
			s.files = append(s.files, file)
		}
	}
	if s.countLost(last, s.written.stored); damaged && s.written.stored == 0 {
		s.lost++ // the number is unknown, at least one
	}
	s.newest = max(last, s.done, s.written.stored)
	s.clock.restore(&s.written, newest)
	for i := range s.stored.live() { // written by the previous format with wall-clock times
		if e := &s.stored.live()[i]; e.at == ageUnknown {
			e.at = s.clock.now()
		}
	}
	s.ledger.Offer(s.stored.len())
	if s.stored.len() > 0 {
		s.Logger.Info("event spool holds events of an earlier run", "events", s.stored.len(), "bytes", s.stored.bytes)
	}
	if s.lost > 0 {
		s.ledger.Offer(int(s.lost))
		s.ledger.Drop(int(s.lost))
		s.Logger.Warn("event spool has lost events to damage", "directory", s.Directory, "events", s.lost)
	}
	return nil
}

// countLost counts the events behind one number, up to another, as lost, as far as they were not done with.
func (s *Spool) countLost(behind, to uint64) {
	if behind = max(behind, s.done); to > behind {
		s.lost += to - behind
	}
}

var errBusy = errors.New("already running")

// busy returns errBusy with the number of the process that holds the lock, as far as the file has it.
func busy(lock *os.File) error {
	text := make([]byte, 20)
	n, _ := lock.ReadAt(text, 0) // it is shorter
	pid, err := strconv.Atoi(strings.TrimSpace(string(text[:n])))
	if err != nil {
		return errBusy
	}
	return fmt.Errorf("%w as pid %d", errBusy, pid)
}
