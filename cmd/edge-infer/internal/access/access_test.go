package access

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

const token = "0123456789abcdef"

func opened(t testing.TB, token string) *Control {
	c := &Control{Secrets: Secrets{Tokens: []Token{{Role: RoleControl, Secret: token}}}, Port: 1, Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, c.Open())
	return c
}

// look asks for something inside with a session.
func look(c *Control, session string) (code int) {
	inside := c.Restricted(RoleView, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	request, answer := httptest.NewRequest(http.MethodGet, "/api/status", nil), httptest.NewRecorder()
	request.AddCookie(&http.Cookie{Name: c.cookie, Value: session})
	inside.ServeHTTP(answer, request)
	return answer.Code
}

func TestForgedSessionsAreRefused(t *testing.T) {
	c := opened(t, token)
	given := c.sessions.begin(Client{Role: RoleView}, time.Now().Add(time.Hour))
	require.Equal(t, http.StatusOK, look(c, given))
	for _, forged := range []string{
		"", ".", "9999999999", "9999999999.AAAA", "99999999999999999999.x", c.sessions.begin(Client{Role: RoleView}, time.Now().Add(-time.Minute)), given + "x",
	} {
		require.Equal(t, http.StatusUnauthorized, look(c, forged), forged)
	}
	other := opened(t, "another token of length")
	require.Equal(t, http.StatusUnauthorized, look(c, other.sessions.begin(Client{Role: RoleView}, time.Now().Add(time.Hour))),
		"a session ends with the token that it was given for")
}

// TestStrangersEndNoSession: what they claim to log out of leaves nothing behind.
func TestStrangersEndNoSession(t *testing.T) {
	c := opened(t, token)
	given := c.sessions.begin(Client{Role: RoleView}, time.Now().Add(time.Hour))
	for _, session := range []string{given, "", "x", "9999999999.x.y"} {
		request := httptest.NewRequest(http.MethodPost, "/logout", nil)
		request.AddCookie(&http.Cookie{Name: c.cookie, Value: session})
		c.Logout(httptest.NewRecorder(), request)
	}
	require.Len(t, c.sessions.ended, 1)
	require.Equal(t, http.StatusUnauthorized, look(c, given))
}
