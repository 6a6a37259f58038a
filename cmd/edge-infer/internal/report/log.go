package report

import (
	"io"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/systemd"
)

// NewLogger writes what is of that level or above.
func NewLogger(out io.Writer, level string) *slog.Logger {
	var least slog.LevelVar
	SetLevel(&least, level)
	return NewChangingLogger(out, &least)
}

// NewChangingLogger writes text, or fields where systemd's journal collects it. The level may change later.
func NewChangingLogger(out io.Writer, level *slog.LevelVar) *slog.Logger {
	if out == os.Stderr && systemd.Journaled() {
		return slog.New(&systemd.Journal{Level: level})
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// SetLevel takes a level by its name in the configuration.
func SetLevel(level *slog.LevelVar, name string) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(name)); err != nil {
		least = slog.LevelInfo
	}
	level.Set(least)
}
