// Package audit records who has changed what, over the page, its API or MQTT.
package audit

import (
	"encoding/json"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"
)

const (
	// maxBytes is the size at which a file is put aside; the one that was put aside before is removed.
	maxBytes = 1 << 20
	// perSecond bounds the entries per second: whoever may send commands must not wear out the disk.
	perSecond = 10
	// maxText bounds the length of each text of an entry in bytes.
	maxText = 512
	// maxPending is the number of entries that may wait for the disk.
	maxPending = 100
	// closeLimit bounds how long Close waits for the disk.
	closeLimit = time.Second
)

// Entry is one change.
type Entry struct {
	Time time.Time `json:"time"`
	Over string    `json:"over"`           // page or mqtt
	Who  string    `json:"who,omitempty"`  // name of the token or user, empty if it has none
	From string    `json:"from,omitempty"` // address of the client, or of the broker
	What string    `json:"what"`
	// Skipped is the number of changes before this one that were too many to be written.
	Skipped int `json:"skipped,omitempty"`
}

// Log writes entries as JSON lines into a file of bounded size. It is safe for concurrent use.
type Log struct {
	Path   string // empty for none
	Logger *slog.Logger

	mu      sync.Mutex
	second  int64 // of the clock
	taken   int   // entries in it
	skipped int   // since the last entry
	pending []Entry
	done    chan struct{} // closed when the goroutine that writes has ended; nil without one

	failed bool // writing goroutine only
}

// Record adds an entry with the present time. It does not wait for the disk.
func (l *Log) Record(e Entry) {
	if l.Path == "" {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	e.Time = time.Now().UTC()
	if e.Time.Unix() != l.second {
		l.second, l.taken = e.Time.Unix(), 0
	}
	l.taken++
	if l.taken > perSecond || len(l.pending) >= maxPending {
		l.skipped++
		return
	}
	for _, text := range [...]*string{&e.Who, &e.From, &e.What} {
		if len(*text) > maxText {
			*text = (*text)[:maxText] + "..."
		}
	}
	e.Skipped, l.skipped = l.skipped, 0
	l.pending = append(l.pending, e)
	if l.done == nil {
		l.done = make(chan struct{})
		go l.write(l.done)
	}
}

// write writes what is pending. A failure is logged once.
func (l *Log) write(done chan struct{}) {
	defer close(done)
	for {
		l.mu.Lock()
		entries := l.pending
		l.pending = nil
		if len(entries) == 0 {
			l.done = nil
			l.mu.Unlock()
			return
		}
		l.mu.Unlock()
		err := l.append(entries)
		if err != nil && !l.failed {
			l.Logger.Warn("audit log not written", "error", err)
		}
		l.failed = err != nil
	}
}

// append writes entries to the file.
func (l *Log) append(entries []Entry) error {
	var text []byte
	for i := range entries {
		line, err := json.Marshal(&entries[i])
		if err != nil {
			return err
		}
		text = append(append(text, line...), '\n')
	}
	info, err := os.Stat(l.Path)
	if err == nil && info.Size() >= maxBytes {
		err = os.Rename(l.Path, l.Path+".1")
		if err != nil {
			return err
		}
	}
	err = os.MkdirAll(filepath.Dir(l.Path), 0o700)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(l.Path, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	return errors.Join(err, file.Close())
}

// Close waits a moment until everything is written. Entries may still be recorded.
func (l *Log) Close() {
	l.mu.Lock()
	done := l.done
	l.mu.Unlock()
	if done == nil {
		return
	}
	select {
	case <-done:
	case <-time.After(closeLimit):
	}
}
