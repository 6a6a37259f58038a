package report

import (
	"io"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/systemd"
)

// The log formats. AutomaticLog is text on a terminal, journal fields under systemd, and logfmt elsewhere.
const (
	AutomaticLog = "auto"
	TextLog      = "text"
	LogfmtLog    = "logfmt"
	JSONLog      = "json"
)

// NewLogger returns a logger with this minimum level and format.
func NewLogger(out io.Writer, level, form string) *slog.Logger {
	var minimum slog.LevelVar
	SetLevel(&minimum, level)
	return NewChangingLogger(out, &minimum, form)
}

// NewChangingLogger is NewLogger with a level that may change later.
func NewChangingLogger(out io.Writer, level *slog.LevelVar, form string) *slog.Logger {
	if form == AutomaticLog && out == os.Stderr && systemd.Journaled() {
		return slog.New(&systemd.Journal{Level: level})
	}
	screen := terminal.Open(out)
	switch {
	case form == JSONLog:
		return slog.New(slog.NewJSONHandler(out, &slog.HandlerOptions{Level: level}))
	case form == TextLog, form == AutomaticLog && screen.Live():
		return slog.New(newTextHandler(out, level, screen.Colour()))
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// SetLevel sets a level by its name in the configuration; an unknown name is info.
func SetLevel(level *slog.LevelVar, name string) {
	var parsed slog.Level
	if err := parsed.UnmarshalText([]byte(name)); err != nil {
		parsed = slog.LevelInfo
	}
	level.Set(parsed)
}
