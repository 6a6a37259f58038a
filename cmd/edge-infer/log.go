package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

// newLogger writes what is of that level or above.
func newLogger(out io.Writer, level string) *slog.Logger {
	var least slog.LevelVar
	setLevel(&least, level)
	return changingLogger(out, &least)
}

// changingLogger writes text for people on a terminal and JSON where a journal collects it. The level may change later.
func changingLogger(out io.Writer, level *slog.LevelVar) *slog.Logger {
	options := &slog.HandlerOptions{Level: level}
	if _, live := report.IsTerminal(out); !live && os.Getenv("JOURNAL_STREAM") != "" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}

// setLevel takes a level by its name in the configuration.
func setLevel(level *slog.LevelVar, name string) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(name)); err != nil {
		least = slog.LevelInfo
	}
	level.Set(least)
}
