package mqtt

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Spool configures the durable queue of events: an append-only log of small files. Compared with an embedded B+tree store it writes each
// event once and in order, which flash memory likes, gives space back as events leave, needs no memory map that faults when a file is
// damaged, and loses to damage only what is damaged.
type Spool struct {
	// Directory holds the files; it is made when missing. Empty keeps events in memory only.
	Directory string
	// The caps; what is over one of them is dropped, oldest first, and counted. Zero means the default.
	MaxBytes    int64         // of queued records, 64 MiB
	MaxMessages int           // 100,000
	MaxAge      time.Duration // 7 days
	// MaxMemory caps the records that are not on disk yet: a few, unless the disk fails or Directory is empty. 8 MiB.
	MaxMemory int64
	// Commit is how long an event may wait for its sync to disk, 100 ms. Events that the broker acknowledges sooner never touch the disk.
	Commit time.Duration
}

// Defaults of Spool.
const (
	defaultMaxBytes    = 64 << 20
	defaultMaxMessages = 100_000
	defaultMaxAge      = 7 * 24 * time.Hour
	defaultMaxMemory   = 8 << 20
	defaultCommit      = 100 * time.Millisecond
)

// spool is the running queue. An event is in one of three places, oldest first: in a file, in the batch being written, or in the tail.
type spool struct {
	Spool
	log    *slog.Logger
	notify func() // called when an event was added
	ledger ledger

	mu      sync.Mutex
	stored  queue      // in files
	writing batch      // being written to a file; its bytes change only between commits
	tail    batch      // handed over since
	files   []*segment // oldest first; the last one is appended to
	newest  uint64     // number of the last event handed over
	done    uint64     // number of the last event popped
	failure error      // of the last commit, nil when it worked
	closed  bool

	// Writer goroutine only, after open.
	lock     *os.File
	position *os.File
	written  uint64 // position in the file

	syncs   chan chan error // commit now and answer
	stop    chan struct{}
	stopped chan struct{}
}

// batch is a queue whose records lie in one buffer.
type batch struct {
	queue
	data []byte
}

// open reads what an earlier run left and starts the writer. Only a directory that another process uses is an error; one that cannot be
// used is reported and replaced by memory.
func (s *spool) open() error {
	s.MaxBytes = orDefault(s.MaxBytes, defaultMaxBytes)
	s.MaxMessages = orDefault(s.MaxMessages, defaultMaxMessages)
	s.MaxAge = orDefault(s.MaxAge, defaultMaxAge)
	s.MaxMemory = orDefault(s.MaxMemory, defaultMaxMemory)
	s.Commit = orDefault(s.Commit, defaultCommit)
	s.syncs = make(chan chan error)
	s.stop, s.stopped = make(chan struct{}), make(chan struct{})
	if s.Directory != "" {
		if err := s.load(); err != nil {
			s.release()
			if errors.Is(err, errSpoolBusy) {
				return fmt.Errorf("event spool %s: %w", s.Directory, err)
			}
			s.log.Warn("event spool cannot be used, events are kept in memory only", "directory", s.Directory, "error", err)
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

// load takes the directory and indexes its files.
func (s *spool) load() error {
	if err := os.MkdirAll(s.Directory, 0o700); err != nil {
		return err
	}
	var err error
	if s.lock, err = os.OpenFile(filepath.Join(s.Directory, "lock"), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	if err := syscall.Flock(int(s.lock.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return errSpoolBusy
	}
	s.done = readPosition(s.Directory)
	s.written = s.done
	if s.position, err = os.OpenFile(filepath.Join(s.Directory, positionName), os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		return err
	}
	names, err := os.ReadDir(s.Directory)
	if err != nil {
		return err
	}
	var last uint64
	for _, name := range names { // sorted, which is the order of their numbers
		if !strings.HasSuffix(name.Name(), segmentSuffix) {
			continue
		}
		path := filepath.Join(s.Directory, name.Name())
		file, damaged, err := openSegment(path, last, func(e event, offset int64) {
			last = e.number
			if e.number > s.done {
				s.stored.push(entry{e.number, e.at, uint32(offset), uint32(len(e.buffer))})
			}
		})
		if damaged {
			s.log.Warn("event spool file was damaged, its good part is kept and the rest moved aside", "file", path)
		}
		if err != nil {
			return err
		}
		if file != nil {
			s.files = append(s.files, file)
		}
	}
	s.newest = max(last, s.done)
	s.ledger.offer(s.stored.len())
	if s.stored.len() > 0 {
		s.log.Info("event spool holds events of an earlier run", "events", s.stored.len(), "bytes", s.stored.bytes)
	}
	s.mu.Lock()
	s.enforce(time.Now())
	s.mu.Unlock()
	return nil
}

// offer queues an event that encode appends, given its number, and returns the number. It does no I/O.
func (s *spool) offer(topic string, encode func(buf []byte, number uint64) []byte) uint64 {
	s.mu.Lock()
	s.newest++
	number := s.newest
	now := time.Now()
	offset := len(s.tail.data)
	s.tail.data = appendRecord(s.tail.data, number, now.UnixMilli(), topic, func(buf []byte) []byte { return encode(buf, number) })
	size := len(s.tail.data) - offset
	s.ledger.offer(1)
	if size > recordLimit || s.closed {
		s.tail.data = s.tail.data[:offset]
		s.ledger.drop(1)
		s.mu.Unlock()
		return number
	}
	s.tail.push(entry{number, now.UnixMilli(), uint32(offset), uint32(size)})
	s.enforce(now)
	s.mu.Unlock()
	s.notify()
	return number
}

// enforce drops the oldest events while a cap is exceeded. The caller holds mu.
func (s *spool) enforce(now time.Time) {
	// A machine without a battery clock wakes up in 1970; what it stamped before its clock was set has no known age.
	const clockSet = 1_700_000_000_000
	limit := now.Add(-s.MaxAge).UnixMilli()
	for {
		oldest := s.oldest()
		if oldest == nil {
			return
		}
		at := oldest.live()[0].at
		over := s.stored.len()+s.writing.len()+s.tail.len() > s.MaxMessages ||
			s.stored.bytes+s.writing.bytes+s.tail.bytes > s.MaxBytes || (at > clockSet && at < limit)
		if !over {
			break
		}
		s.pop(oldest)
		s.ledger.drop(1)
	}
	for s.writing.bytes+s.tail.bytes > s.MaxMemory {
		from := &s.writing.queue
		if from.len() == 0 {
			from = &s.tail.queue
		}
		from.pop()
		s.ledger.drop(1)
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

// oldest is the part that holds the oldest event, nil when there is none. The caller holds mu.
func (s *spool) oldest() *queue {
	for _, q := range [...]*queue{&s.stored, &s.writing.queue, &s.tail.queue} {
		if q.len() > 0 {
			return q
		}
	}
	return nil
}

func (s *spool) pop(q *queue) { s.done = q.pop().number }

// last is the number of the newest event.
func (s *spool) last() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.newest
}

// next reads the first event after a number into buf. The event is the caller's.
func (s *spool) next(after uint64, buf []byte) (event, bool) {
	for {
		s.mu.Lock()
		s.enforce(time.Now())
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
				return event{buffer: buf}, false
			}
			read, err := readEvent(buf)
			return read, err == nil
		}
		var file *segment
		for _, file = range s.files {
			if file.last >= e.number {
				break
			}
		}
		s.mu.Unlock()
		buf = slices.Grow(buf[:0], int(e.size)+len(`,"replayed":true`))[:e.size]
		_, err := file.file.ReadAt(buf, int64(e.offset))
		if err == nil {
			var read event
			if read, err = readEvent(buf); err == nil && read.number == e.number {
				return read, true
			}
		}
		// A file that was removed meanwhile has no entries any more; one that cannot be read loses this event.
		s.mu.Lock()
		if s.stored.remove(e.number) {
			s.ledger.drop(1)
			s.log.Warn("event spool cannot read an event back, it is dropped", "file", file.path, "event", e.number, "error", err)
		}
		s.mu.Unlock()
		buf = buf[:0]
	}
}

// acknowledge ends an event that the broker has. Events are acknowledged in their order.
func (s *spool) acknowledge(number uint64) {
	s.mu.Lock()
	if oldest := s.oldest(); oldest != nil && oldest.live()[0].number == number {
		s.pop(oldest)
		s.ledger.deliver(1)
	}
	s.mu.Unlock()
}

// state is the error of the last commit, or why there is no directory.
func (s *spool) state() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.failure
}

// sync writes everything that is queued to disk.
func (s *spool) sync() error {
	answer := make(chan error, 1)
	select {
	case s.syncs <- answer:
		return <-answer
	case <-s.stopped:
		return os.ErrClosed
	}
}

// close writes what is queued and ends the writer. Events offered later are dropped.
func (s *spool) close() error {
	s.mu.Lock()
	closed := s.closed
	s.closed = true
	s.mu.Unlock()
	if closed {
		<-s.stopped
		return nil
	}
	close(s.stop)
	<-s.stopped
	return s.state()
}

// write is the writer goroutine. It looks at the queue at every commit interval: waking it for each event would cost the frame loop more
// than the event itself.
func (s *spool) write() {
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
func (s *spool) flush() error {
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

// commit brings the files up to date: new events are appended and synced, the position is noted, files without queued events are removed.
func (s *spool) commit() error {
	if s.Directory == "" {
		return nil
	}
	err := s.store()
	if err == nil {
		err = s.note()
	}
	s.collect()
	s.mu.Lock()
	before := s.failure
	s.failure = err
	s.mu.Unlock()
	if err != nil && (before == nil || before.Error() != err.Error()) {
		s.log.Warn("event spool cannot write, new events wait in memory", "directory", s.Directory, "error", err)
	} else if err == nil && before != nil {
		s.log.Info("event spool writes again", "directory", s.Directory)
	}
	return err
}

// store appends the waiting batch to the newest file, or to a new one when that is full.
func (s *spool) store() error {
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
	if n := len(s.files); n > 0 && s.files[n-1].size < s.fileSize() {
		file = s.files[n-1]
	}
	s.mu.Unlock()

	created := file == nil
	if created {
		var err error
		if file, err = createSegment(s.Directory, first); err != nil {
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

// fileSize is how large a file grows: small against the cap, because space comes back file by file.
func (s *spool) fileSize() int64 { return min(max(s.MaxBytes/16, 64<<10), 4<<20) }

// note writes down how far the events are done with. It is not synced: after a power cut a few events are repeated.
func (s *spool) note() error {
	s.mu.Lock()
	done := s.done
	s.mu.Unlock()
	if done == s.written {
		return nil
	}
	if err := writePosition(s.position, done); err != nil {
		return err
	}
	s.written = done
	return nil
}

// collect removes the files that hold no queued event.
func (s *spool) collect() {
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

// release closes the files and gives the directory to others.
func (s *spool) release() {
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
