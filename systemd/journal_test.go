package systemd

import (
	"errors"
	"log/slog"
	"testing"

	"github.com/coreos/go-systemd/v22/journal"
	"github.com/stretchr/testify/require"
)

func TestJournalFields(t *testing.T) {
	type entry struct {
		message  string
		priority journal.Priority
		fields   map[string]string
	}
	var got []entry
	var level slog.LevelVar
	logger := slog.New(&Journal{Level: &level, send: func(message string, priority journal.Priority, fields map[string]string) error {
		got = append(got, entry{message, priority, fields})
		return nil
	}})
	logger.Debug("left out")
	logger.Warn("camera lost", "camera", "gate", "error", errors.New("no\nanswer"), "message", "m", "_1x", 2, "ü", 3)
	level.Set(slog.LevelDebug)
	logger.With("a", 1).WithGroup("g").With("b", 2).Debug("deep", "c-d", true)
	logger.Error("bad")
	require.Equal(t, []entry{
		{"camera lost camera=gate error=no\nanswer message=m _1x=2 ü=3", journal.PriWarning, map[string]string{
			"SYSLOG_IDENTIFIER": "edge-infer", "CAMERA": "gate", "ERROR": "no\nanswer", "EDGE_INFER_MESSAGE": "m", "X": "2",
		}},
		{
			"deep a=1 g_b=2 g_c-d=true", journal.PriDebug,
			map[string]string{"SYSLOG_IDENTIFIER": "edge-infer", "A": "1", "G_B": "2", "G_C_D": "true"},
		},
		{"bad", journal.PriErr, map[string]string{"SYSLOG_IDENTIFIER": "edge-infer"}},
	}, got)
	t.Setenv("JOURNAL_STREAM", "1:1")
	require.False(t, Journaled(), "standard error is another file")
}
