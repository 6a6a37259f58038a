package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
)

// newLogger writes text for people on a terminal and JSON where a journal collects it.
func newLogger(out io.Writer, level string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if _, live := report.IsTerminal(out); !live && os.Getenv("JOURNAL_STREAM") != "" {
		return slog.New(slog.NewJSONHandler(out, options))
	}
	return slog.New(slog.NewTextHandler(out, options))
}
