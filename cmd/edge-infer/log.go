package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/systemd"
)

// newLogger writes what is of that level or above.
func newLogger(out io.Writer, level string) *slog.Logger {
	var least slog.LevelVar
	setLevel(&least, level)
	return changingLogger(out, &least)
}

// changingLogger writes text, or fields where systemd's journal collects it. The level may change later.
func changingLogger(out io.Writer, level *slog.LevelVar) *slog.Logger {
	if out == os.Stderr && systemd.Journaled() {
		return slog.New(&systemd.Journal{Level: level})
	}
	return slog.New(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level}))
}

// setLevel takes a level by its name in the configuration.
func setLevel(level *slog.LevelVar, name string) {
	var least slog.Level
	if err := least.UnmarshalText([]byte(name)); err != nil {
		least = slog.LevelInfo
	}
	level.Set(least)
}
