package broker

import (
	"context"
	"log/slog"
)

// debugLogger returns a logger that lowers every record to debug level, because the library logs each lost client as a warning.
func debugLogger(log *slog.Logger) *slog.Logger { return slog.New(debugHandler{log.Handler()}) }

type debugHandler struct{ slog.Handler }

func (h debugHandler) Enabled(ctx context.Context, _ slog.Level) bool {
	return h.Handler.Enabled(ctx, slog.LevelDebug)
}

func (h debugHandler) Handle(ctx context.Context, r slog.Record) error {
	r.Level = slog.LevelDebug
	return h.Handler.Handle(ctx, r)
}

func (h debugHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return debugHandler{h.Handler.WithAttrs(attributes)}
}

func (h debugHandler) WithGroup(name string) slog.Handler {
	return debugHandler{h.Handler.WithGroup(name)}
}
