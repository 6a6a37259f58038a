package access

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// FuzzSession: a session that this daemon did not give is never valid, and ends nothing.
func FuzzSession(f *testing.F) {
	a := opened(f, token)
	given := a.sessions.begin(Client{Role: RoleControl}, time.Now().Add(time.Hour))
	f.Add("")
	f.Add("9999999999.NAME.SIGNATURE")
	f.Add(strings.Replace(given, ".", "..", 1))
	f.Add(given[:len(given)-1])
	f.Fuzz(func(t *testing.T, session string) {
		require.Equal(t, session == given, a.sessions.client(session, time.Now()).Role == RoleControl)
		if session != given {
			require.NoError(t, a.sessions.end(session, time.Now()))
			require.Empty(t, a.sessions.ended)
		}
	})
}

// TestEndedSessionsAreForgottenWhenTheyWouldHaveEnded, so that their file does not grow for ever.
func TestEndedSessionsAreForgottenWhenTheyWouldHaveEnded(t *testing.T) {
	s := sessions{file: filepath.Join(t.TempDir(), "state", "logouts")}
	now := time.Unix(1e9, 0)
	require.NoError(t, s.open(now))
	short, long := s.begin(Client{Role: RoleControl}, now.Add(time.Minute)), s.begin(Client{Role: RoleControl}, now.Add(time.Hour))
	require.NoError(t, s.end(short, now))
	require.NoError(t, s.end(long, now.Add(2*time.Minute)))
	text, err := os.ReadFile(s.file)
	require.NoError(t, err)
	require.Equal(t, strings.TrimSuffix(long, "."+s.signature(long[:strings.LastIndex(long, ".")]))+"\n", string(text))
	again := sessions{file: s.file}
	require.NoError(t, again.open(now.Add(2*time.Hour)))
	require.Empty(t, again.ended)
	require.NoError(t, os.WriteFile(s.file, []byte("noise\n\x00\n1.\n"), 0o600))
	require.NoError(t, again.open(now))
	require.Len(t, again.ended, 0)
	require.NoError(t, os.Remove(s.file))
	require.NoError(t, os.Mkdir(s.file, 0o700))
	require.ErrorContains(t, again.open(now), "ended sessions: ")
}
