package systemd

import (
	"context"
	"log/slog"
	"strings"

	"github.com/coreos/go-systemd/v22/journal"
)

// Journaled reports whether standard error goes to systemd's journal, and the journal takes fields.
func Journaled() bool {
	ours, err := journal.StderrIsJournalStream()
	return err == nil && ours && journal.Enabled()
}

// Journal is a slog.Handler that writes records to systemd's journal, each attribute as a field: journalctl CAMERA=gate finds the records
// of one camera. The message text contains the attributes too.
type Journal struct {
	// Level is the lowest that is written.
	Level slog.Leveler

	attributes []slog.Attr
	group      string
	send       func(message string, priority journal.Priority, fields map[string]string) error // nil for the journal's own
}

var _ slog.Handler = (*Journal)(nil)

// Enabled implements slog.Handler.
func (j *Journal) Enabled(_ context.Context, level slog.Level) bool { return level >= j.Level.Level() }

// Handle implements slog.Handler.
func (j *Journal) Handle(_ context.Context, r slog.Record) error {
	var text strings.Builder
	text.WriteString(r.Message)
	fields := map[string]string{"SYSLOG_IDENTIFIER": "edge-infer"}
	add := func(a slog.Attr) bool {
		value := a.Value.Resolve().String()
		text.WriteString(" " + a.Key + "=" + value)
		if name := fieldName(a.Key); name != "" {
			fields[name] = value
		}
		return true
	}
	for _, a := range j.attributes {
		add(a)
	}
	r.Attrs(func(a slog.Attr) bool { return add(slog.Attr{Key: j.group + a.Key, Value: a.Value}) })
	send := j.send
	if send == nil {
		send = journal.Send
	}
	return send(text.String(), priority(r.Level), fields)
}

// WithAttrs implements slog.Handler.
func (j *Journal) WithAttrs(attributes []slog.Attr) slog.Handler {
	next := *j
	next.attributes = append([]slog.Attr(nil), j.attributes...)
	for _, a := range attributes {
		next.attributes = append(next.attributes, slog.Attr{Key: j.group + a.Key, Value: a.Value})
	}
	return &next
}

// WithGroup implements slog.Handler.
func (j *Journal) WithGroup(name string) slog.Handler {
	next := *j
	next.group = j.group + name + "_"
	return &next
}

// fieldName converts a key to a journal field: capitals, digits and underscores, a capital first, at most 64. The journal's own fields
// cannot be set.
func fieldName(key string) string {
	name := strings.TrimLeft(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z':
			return r - 'a' + 'A'
		case r >= 'A' && r <= 'Z', r >= '0' && r <= '9':
			return r
		}
		return '_'
	}, key), "_0123456789")
	switch name {
	case "MESSAGE", "PRIORITY", "SYSLOG_IDENTIFIER":
		return "EDGE_INFER_" + name
	}
	return name[:min(len(name), 64)]
}

func priority(level slog.Level) journal.Priority {
	switch {
	case level >= slog.LevelError:
		return journal.PriErr
	case level >= slog.LevelWarn:
		return journal.PriWarning
	case level >= slog.LevelInfo:
		return journal.PriInfo
	}
	return journal.PriDebug
}
