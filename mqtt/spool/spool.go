// Package spool implements a durable queue of events, bounded in messages, bytes and age. It survives power cuts, and file damage costs
// only the damaged records.
package spool

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/mqtt/ledger"
)

// Config configures a Spool: an append-only log of small files. Compared with an embedded B+tree store it writes each event once and in
// order, which spares flash memory, frees space as events leave, needs no memory map that faults on damaged files, and loses only damaged
// records.
type Config struct {
	// Directory holds the files and is created if missing. If empty, events are kept in memory only.
	Directory string
	// Limits; when one is exceeded, the oldest events are dropped and counted. Zero means the default.
	MaxBytes    int64         // of queued records, 64 MiB
	MaxMessages int           // 100,000
	MaxAge      time.Duration // in running time of the machine, 7 days
	// MaxMemory limits the bytes of records not yet on disk: few, unless the disk fails or Directory is empty. 8 MiB.
	MaxMemory int64
	// Commit is the interval between syncs to disk, 100 ms. Events that the broker acknowledges sooner are never written.
	Commit time.Duration
	// CloseLimit bounds how long Close waits for the disk, 2 s.
	CloseLimit time.Duration
}

// Defaults of Config.
const (
	defaultMaxBytes    = 64 << 20
	defaultMaxMessages = 100_000
	defaultMaxAge      = 7 * 24 * time.Hour
	defaultMaxMemory   = 8 << 20
	defaultCommit      = 100 * time.Millisecond
	defaultCloseLimit  = 2 * time.Second
)

// Stats is the state of the queue.
type Stats struct {
	Messages int           // queued
	Bytes    int64         // of their records
	Oldest   time.Duration // age of the oldest event
	Failures uint64        // attempts to write that failed, since Open
	Lost     uint64        // events lost to damaged files, found by Open and accounted as dropped
	Error    string        // why new events are in memory only; empty if they are stored, or if no directory is configured
}

// Spool is the running queue. Fill in the exported fields, Open it, Close it; the fields must not change after Open. Its methods may be
// called from any goroutine; Next and Acknowledge belong to one that delivers.
//
// An event is in one of three places, oldest first: in a file, in the batch being written, or in the tail.
type Spool struct {
	Config
	Logger *slog.Logger
	Notify func() // called when an event was added

	ledger ledger.Ledger
	clock  clock

	mu      sync.Mutex
	stored  queue      // in files
	writing batch      // being written to a file; its bytes change only between commits
	tail    batch      // handed over since
	files   []*segment // oldest first; the last one is appended to
	newest  uint64     // number of the last event handed over
	done    uint64     // number of the last event popped
	failure error      // of the last commit, nil when it worked
	failed  uint64     // commits that failed
	lost    uint64     // events in damaged parts of files
	closed  bool

	// Writer goroutine only, after open.
	lock     *os.File
	position *os.File
	written  position // in the file

	syncs   chan chan error // commit now and answer
	stop    chan struct{}
	stopped chan struct{}
}

// batch is a queue whose records lie in one buffer.
type batch struct {
	queue
	data []byte
}

// Open loads the events of an earlier process and starts the writer. It returns an error only if another process uses the directory; an
// unusable directory is logged and replaced by memory.
func (s *Spool) Open() error {
	s.MaxBytes = orDefault(s.MaxBytes, defaultMaxBytes)
	s.MaxMessages = orDefault(s.MaxMessages, defaultMaxMessages)
	s.MaxAge = orDefault(s.MaxAge, defaultMaxAge)
	s.MaxMemory = orDefault(s.MaxMemory, defaultMaxMemory)
	s.Commit = orDefault(s.Commit, defaultCommit)
	s.CloseLimit = orDefault(s.CloseLimit, defaultCloseLimit)
	s.syncs = make(chan chan error)
	s.stop, s.stopped = make(chan struct{}), make(chan struct{})
	if s.clock.running == nil {
		s.clock = machineClock()
	}
	if s.Directory != "" {
		if err := s.load(); err != nil {
			s.release()
			if errors.Is(err, errBusy) {
				return fmt.Errorf("event spool %s: %w", s.Directory, err)
			}
			s.Logger.Warn("event spool cannot be used, events are kept in memory only", "directory", s.Directory, "error", err)
			s.stored = queue{}
			s.Directory, s.failure = "", err
		}
	}
	go s.write()
	return nil
}

func orDefault[T int | int64 | time.Duration](value, standard T) T {
	if value <= 0 {
		return standard
	}
	return value
}

// Offer queues an event and returns its number; encode appends the payload. It does no I/O.
func (s *Spool) Offer(topic string, encode func(buf []byte, number uint64) []byte) uint64 {
	s.mu.Lock()
	s.newest++
	number, at := s.newest, s.clock.now()
	offset := len(s.tail.data)
	s.tail.data = appendRecord(s.tail.data, number, at, topic, func(buf []byte) []byte { return encode(buf, number) })
	size := len(s.tail.data) - offset
	s.ledger.Offer(1)
	if size > RecordLimit || s.closed {
		s.tail.data = s.tail.data[:offset]
		s.ledger.Drop(1)
		s.mu.Unlock()
		return number
	}
	s.tail.push(entry{number, at, uint32(offset), uint32(size)})
	s.enforce()
	s.mu.Unlock()
	s.Notify()
	return number
}

// enforce drops the oldest events while a limit is exceeded. The caller holds mu.
func (s *Spool) enforce() {
	limit := s.clock.now() - s.MaxAge.Milliseconds()
	for {
		oldest := s.oldest()
		if oldest == nil {
			return
		}
		over := s.messages() > s.MaxMessages || s.bytes() > s.MaxBytes || oldest.live()[0].at < limit
		if !over {
			break
		}
		s.pop(oldest)
		s.ledger.Drop(1)
	}
	for s.writing.bytes+s.tail.bytes > s.MaxMemory {
		from := &s.writing.queue
		if from.len() == 0 {
			from = &s.tail.queue
		}
		from.pop()
		s.ledger.Drop(1)
	}
	s.tail.compact()
}

// compact moves the records to the front of the buffer when more than half of it is dead.
func (b *batch) compact() {
	dead := len(b.data)
	if b.len() > 0 {
		dead = int(b.live()[0].offset)
	}
	if dead <= 64<<10 || dead < len(b.data)/2 {
		return
	}
	b.data = b.data[:copy(b.data, b.data[dead:])]
	for i := range b.live() {
		b.live()[i].offset -= uint32(dead)
	}
}

// oldest returns the queue with the oldest event, or nil. The caller holds mu.
func (s *Spool) oldest() *queue {
	for _, q := range [...]*queue{&s.stored, &s.writing.queue, &s.tail.queue} {
		if q.len() > 0 {
			return q
		}
	}
	return nil
}

func (s *Spool) pop(q *queue) { s.done = q.pop().number }

func (s *Spool) messages() int { return s.stored.len() + s.writing.len() + s.tail.len() }

func (s *Spool) bytes() int64 { return s.stored.bytes + s.writing.bytes + s.tail.bytes }

// Last returns the number of the newest event.
func (s *Spool) Last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// spareCapacity is the free capacity that Next leaves after an event in its buffer.
const spareCapacity = 64

// Next reads the first event after a number into buf; there is none once Close has been called. The caller owns the event and may append up
// to spareCapacity bytes.
func (s *Spool) Next(after uint64, buf []byte) (Event, bool) {
	for {
		s.mu.Lock()
		if s.closed { // the writer closes the files
			s.mu.Unlock()
			return Event{Buffer: buf}, false
		}
		s.enforce()
		e, ok := s.stored.after(after)
		if !ok {
			for _, b := range [...]*batch{&s.writing, &s.tail} {
				if e, ok = b.after(after); ok {
					buf = append(buf, b.data[e.offset:e.offset+e.size]...)
					break
				}
			}
			s.mu.Unlock()
			if !ok {
				return Event{Buffer: buf}, false
			}
			read, err := readRecord(buf)
			return read, err == nil
		}
		var file *segment
		for _, file = range s.files {
			if file.last >= e.number {
				break
			}
		}
		s.mu.Unlock()
		buf = slices.Grow(buf[:0], int(e.size)+spareCapacity)[:e.size]
		_, err := file.file.ReadAt(buf, int64(e.offset))
		if err == nil {
			var read Event
			if read, err = readRecord(buf); err == nil && read.Number == e.number {
				return read, true
			}
		}
		// A file that was removed meanwhile has no entries any more; one that cannot be read loses this event.
		s.mu.Lock()
		unread := !s.closed && s.stored.remove(e.number)
		if unread {
			s.ledger.Drop(1)
		}
		s.mu.Unlock()
		if unread {
			s.Logger.Warn("event spool cannot read an event back, it is dropped", "file", file.path, "event", e.number, "error", err)
		}
		buf = buf[:0]
	}
}

// Age returns how long the machine has run since the event was queued.
func (s *Spool) Age(e *Event) time.Duration {
	return time.Duration(max(0, s.clock.now()-e.at)) * time.Millisecond
}

// Acknowledge removes a delivered event. Events must be acknowledged in order.
func (s *Spool) Acknowledge(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if oldest := s.oldest(); oldest != nil && oldest.live()[0].number == number {
		s.pop(oldest)
		s.ledger.Deliver(1)
	}
}

// Drop removes an event that cannot be delivered. Older events may still be in flight.
func (s *Spool) Drop(number uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if oldest := s.oldest(); oldest != nil && oldest.live()[0].number == number {
		s.pop(oldest)
		s.ledger.Drop(1)
		return
	}
	for _, q := range [...]*queue{&s.stored, &s.writing.queue, &s.tail.queue} {
		if q.remove(number) {
			s.ledger.Drop(1)
			return
		}
	}
}

// Account returns the account of the events since Open.
func (s *Spool) Account() ledger.Account { return s.ledger.Read() }

// Stats is the state of the queue.
func (s *Spool) Stats() Stats {
	s.mu.Lock()
	defer s.mu.Unlock()
	stats := Stats{Messages: s.messages(), Bytes: s.bytes(), Failures: s.failed, Lost: s.lost}
	if oldest := s.oldest(); oldest != nil {
		stats.Oldest = time.Duration(max(0, s.clock.now()-oldest.live()[0].at)) * time.Millisecond
	}
	if s.failure != nil {
		stats.Error = s.failure.Error()
	}
	return stats
}

// Sync writes everything that is queued to disk.
func (s *Spool) Sync() error {
	answer := make(chan error, 1)
	select {
	case s.syncs <- answer:
		return <-answer
	case <-s.stopped:
		return os.ErrClosed
	}
}

// Close writes queued events and stops the writer. Events that are not on disk afterwards are accounted as dropped, and so are events
// offered later. It returns an error if events are lost because the directory is unusable or the disk does not answer within CloseLimit; a
// queue without a directory just ends.
func (s *Spool) Close() error { return s.CloseWithin(s.CloseLimit) }

// CloseWithin is Close with a limit of its own. It may be called while Close waits, and returns before it then; each loss is returned once.
func (s *Spool) CloseWithin(limit time.Duration) error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if !closed {
		close(s.stop)
	}
	timer := time.NewTimer(limit)
	defer timer.Stop()
	var hanging error
	select {
	case <-s.stopped:
	case <-timer.C:
		hanging = fmt.Errorf("the disk has not answered for %v", limit)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	reason := cmp.Or(hanging, s.failure)
	lost := s.loseMemory()
	if lost > 0 && reason != nil {
		return fmt.Errorf("close event spool: %d events are lost: %w", lost, reason)
	}
	return nil
}

// loseMemory drops the events that are not on disk and returns their number. A writer that hangs may still read the bytes of its batch, and
// finds nothing to index when it goes on. The caller holds mu.
func (s *Spool) loseMemory() int {
	lost := s.writing.len() + s.tail.len()
	s.ledger.Drop(lost)
	s.writing, s.tail = batch{}, batch{}
	return lost
}
