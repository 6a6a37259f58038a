package report

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// textHandler is a slog.Handler for people: time of day, level and message, then the attributes as slog's text handler quotes them.
type textHandler struct {
	attributes slog.Handler // writes only the attributes, to text.buffer
	text       *logText
}

// logText is the output shared by a handler and its derived handlers.
type logText struct {
	mutex  sync.Mutex
	out    io.Writer
	colour bool
	buffer bytes.Buffer
	line   []byte
}

func newTextHandler(out io.Writer, level slog.Leveler, colour bool) *textHandler {
	text := &logText{out: out, colour: colour}
	options := &slog.HandlerOptions{Level: level, ReplaceAttr: func(groups []string, a slog.Attr) slog.Attr {
		if len(groups) == 0 && (a.Key == slog.LevelKey || a.Key == slog.MessageKey) {
			return slog.Attr{}
		}
		return a
	}}
	return &textHandler{slog.NewTextHandler(&text.buffer, options), text}
}

// Enabled implements slog.Handler.
func (h *textHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return h.attributes.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (h *textHandler) Handle(ctx context.Context, r slog.Record) error {
	t := h.text
	t.mutex.Lock()
	defer t.mutex.Unlock()
	t.buffer.Reset()
	at := r.Time
	r.Time = time.Time{} // the zero time is not written
	if err := h.attributes.Handle(ctx, r); err != nil {
		return err
	}
	line := at.AppendFormat(t.line[:0], time.TimeOnly)
	row := terminal.Row{{Text: " "}, {Text: r.Level.String(), Style: levelStyle(r.Level)}, {Text: " " + r.Message}}
	line = row.Append(line, t.colour)
	if t.buffer.Len() > 1 { // more than the newline
		line = append(line, ' ')
	}
	t.line = append(line, t.buffer.Bytes()...)
	_, err := t.out.Write(t.line)
	return err
}

func levelStyle(level slog.Level) terminal.Style {
	switch {
	case level >= slog.LevelError:
		return terminal.Bad
	case level >= slog.LevelWarn:
		return terminal.Alert
	case level < slog.LevelInfo:
		return terminal.Faint
	}
	return terminal.Good
}

// WithAttrs implements slog.Handler.
func (h *textHandler) WithAttrs(attributes []slog.Attr) slog.Handler {
	return &textHandler{h.attributes.WithAttrs(attributes), h.text}
}

// WithGroup implements slog.Handler.
func (h *textHandler) WithGroup(name string) slog.Handler {
	return &textHandler{h.attributes.WithGroup(name), h.text}
}
