package audit

import (
	"bytes"
	"encoding/json"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func entries(t *testing.T, path string) (all []Entry) {
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range bytes.Lines(text) {
		var e Entry
		require.NoError(t, json.Unmarshal(line, &e))
		all = append(all, e)
	}
	return all
}

func TestEntriesAreAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "state", "audit.jsonl")
	for _, e := range []Entry{
		{Over: "page", Who: "Ada\n", What: "PUT /x"}, {Over: "mqtt", From: "tcp://h", What: strings.Repeat("x", 10_000)},
	} {
		l := &Log{Path: path}
		l.Record(e)
		l.Close()
	}
	all := entries(t, path)
	require.Len(t, all, 2)
	assert.WithinDuration(t, time.Now(), all[0].Time, time.Minute)
	assert.Equal(t, "Ada\n", all[0].Who)
	assert.Less(t, len(all[1].What), 1000)
	(&Log{}).Record(Entry{})
}

func TestTheFileIsBounded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "audit.jsonl")
	require.NoError(t, os.WriteFile(path, bytes.Repeat([]byte("x"), maxBytes), 0o600))
	require.NoError(t, os.WriteFile(path+".1", nil, 0o600))
	l := &Log{Path: path}
	for range 3 * perSecond {
		l.Record(Entry{What: "flood"})
	}
	l.Close()
	aside, err := os.Stat(path + ".1")
	require.NoError(t, err)
	assert.EqualValues(t, maxBytes, aside.Size())
	all := entries(t, path)
	written, skipped := len(all), l.skipped
	for i := range all {
		skipped += all[i].Skipped
	}
	assert.Equal(t, 3*perSecond, written+skipped)
	assert.LessOrEqual(t, written, 2*perSecond, "a second may end meanwhile")
}

func TestAFailureIsLoggedOnce(t *testing.T) {
	var text bytes.Buffer
	l := &Log{Path: "/dev/null/audit", Logger: slog.New(slog.NewTextHandler(&text, nil))}
	for range 3 {
		l.Record(Entry{})
		l.Close()
	}
	assert.Equal(t, 1, strings.Count(text.String(), "audit log not written"))
}
