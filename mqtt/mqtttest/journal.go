package mqtttest

import (
	"bytes"
	"io"
	"log/slog"
	"sync"
)

// Journal collects log lines. Any goroutine may write.
type Journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

// Write implements io.Writer.
func (j *Journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// String is all that was written.
func (j *Journal) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

// Logger writes records of every level to the journal.
func (j *Journal) Logger() *slog.Logger {
	return slog.New(slog.NewTextHandler(j, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// Discard is a logger for tests that do not look at the log; it formats each record all the same.
func Discard() *slog.Logger { return slog.New(slog.NewTextHandler(io.Discard, nil)) }
