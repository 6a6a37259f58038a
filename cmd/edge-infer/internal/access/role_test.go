package access

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTokenFiles(t *testing.T) {
	for text, want := range map[string][]Token{
		"":                   nil,
		"0123456789abcdef\n": {{Role: RoleControl, Secret: "0123456789abcdef"}},
		"# scrapers\n\nmetrics a\r\nview b\ncontrol c": {
			{Role: RoleMetrics, Secret: "a"}, {Role: RoleView, Secret: "b"}, {Role: RoleControl, Secret: "c"},
		},
	} {
		tokens, err := ParseTokens(text)
		require.NoError(t, err)
		assert.Equal(t, want, tokens, text)
	}
	tokens, err := ParseTokens("control a Ada")
	require.NoError(t, err)
	assert.Equal(t, []Token{{Role: RoleControl, Secret: "a", Name: "Ada"}}, tokens)
	for _, wrong := range []string{"a\nadmin b", "a\nview b c d"} {
		_, err := ParseTokens(wrong)
		require.EqualError(t, err, "token file: line 2 must be a token, or a role (metrics, view or control), a token and a name")
	}
	short := Secrets{Tokens: []Token{{Role: RoleMetrics, Secret: "short"}}}
	require.EqualError(t, short.Check("", true), "the token has 5 characters, it needs 16 (openssl rand -hex 24 prints one)")
}

// TestARoleIncludesThoseBeforeIt: with bearer tokens and with sessions that they begin.
func TestARoleIncludesThoseBeforeIt(t *testing.T) {
	c := opened(t, token)
	c.Tokens = []Token{
		{Role: RoleMetrics, Secret: "metrics-metrics-metrics"},
		{Role: RoleView, Secret: "view-view-view-view"},
		{Role: RoleControl, Secret: token},
	}
	for _, client := range c.Tokens {
		for least := RoleMetrics; least <= RoleControl; least++ {
			inside := c.Restricted(least, http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
			want := http.StatusForbidden
			if client.Role >= least {
				want = http.StatusOK
			}
			request, answer := httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			request.Header.Set("Authorization", "Bearer "+client.Secret)
			inside.ServeHTTP(answer, request)
			assert.Equal(t, want, answer.Code, "%v for %v", client, least)

			session := login(t, c, client.Secret)
			request, answer = httptest.NewRequest(http.MethodGet, "/", nil), httptest.NewRecorder()
			request.AddCookie(session)
			inside.ServeHTTP(answer, request)
			assert.Equal(t, want, answer.Code, "%v for %v", client, least)
		}
	}
}

// login returns the cookie of a new session.
func login(t *testing.T, c *Control, secret string) *http.Cookie {
	request, answer := httptest.NewRequest(http.MethodPost, "/login", nil), httptest.NewRecorder()
	request.PostForm = map[string][]string{"secret": {secret}}
	c.Login(answer, request)
	cookies := answer.Result().Cookies()
	require.Len(t, cookies, 1)
	return cookies[0]
}
