// Package access says who may come in to the page: it knows the secrets, the sessions of browsers that have shown one, and how many
// connections strangers may hold.
package access

import (
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net/http"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed login.html
var loginPage string

// Secrets let a client in: a Token, or a User and a Password. With neither everyone may come in.
type Secrets struct{ Token, User, Password string }

// Required reports whether anyone is asked at all.
func (s *Secrets) Required() bool { return s.Token != "" || s.User != "" }

// Check refuses secrets that are too short or contradict each other, and to do without on an address that other machines reach.
func (s *Secrets) Check(address string, loopback bool) error {
	const shortestToken, shortestPassword = 16, 8
	switch {
	case s.Token != "" && s.User+s.Password != "":
		return errors.New("web: set either a token or a user and a password, not both")
	case (s.User == "") != (s.Password == ""):
		return errors.New("web: user and password must be set together")
	case s.Token != "" && len(s.Token) < shortestToken:
		return fmt.Errorf("web: the token has %d characters, it needs %d", len(s.Token), shortestToken)
	case s.Password != "" && len(s.Password) < shortestPassword:
		return fmt.Errorf("web: the password has %d characters, it needs %d", len(s.Password), shortestPassword)
	case !loopback && !s.Required():
		return fmt.Errorf("web: %s is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1", address)
	}
	return nil
}

// Control lets in who shows the token, the user's password, or a cookie that was given for one of them. Set the exported fields and call
// Open; afterwards any goroutine may use it.
type Control struct {
	Secrets
	Port      int    // of the page
	Encrypted bool   // the page speaks TLS
	File      string // keeps the sessions that were ended by a logout; empty for memory only
	Logger    *slog.Logger

	cookie   string // its name
	sessions sessions
	failures RateLimit
	refused  atomic.Uint64 // wrong secrets
}

// Open reads which sessions were ended in earlier runs.
func (c *Control) Open() error {
	c.failures.PerSecond, c.failures.Burst = 1.0/12, 5
	// Cookies do not belong to a port, so the port is in the name: several daemons on one host must not log each other out.
	c.cookie = fmt.Sprintf("edge-infer-%d", c.Port)
	if c.Encrypted {
		c.cookie = "__Host-" + c.cookie
	}
	c.sessions.file = c.File
	c.sessions.key = sha256.Sum256(fmt.Appendf(nil, "edge-infer session %q %q %q", c.Token, c.User, c.Password))
	return c.sessions.open(time.Now())
}

// Refused counts the wrong secrets.
func (c *Control) Refused() uint64 { return c.refused.Load() }

// authorized reports whether the request shows a right to come in.
func (c *Control) authorized(r *http.Request) bool {
	if !c.Required() {
		return true
	}
	if cookie, err := r.Cookie(c.cookie); err == nil && c.sessions.valid(cookie.Value, time.Now()) {
		return true
	}
	client := r.RemoteAddr
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		return c.check("", token, client)
	}
	if user, password, basic := r.BasicAuth(); basic {
		return c.check(user, password, client)
	}
	return false
}

// check compares secrets. An address that has guessed wrongly too often is not heard for a while with passwords, which people can remember
// and guess. A token is too long for that, so the right one always counts: nobody who shares the owner's address can lock the owner out.
func (c *Control) check(user, secret, client string) bool {
	if c.Token != "" && equal(secret, c.Token) {
		return true
	}
	if c.User != "" && c.failures.Left(client, time.Now()) && equal(user, c.User) && equal(secret, c.Password) {
		return true
	}
	c.failures.Spend(client, time.Now())
	c.refused.Add(1)
	return false
}

// equal compares in a time that says nothing about the secret, its length included.
func equal(given, secret string) bool {
	one, two := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret))
	return hmac.Equal(one[:], two[:])
}

func (c *Control) setCookie(w http.ResponseWriter, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: c.cookie, Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, Secure: c.Encrypted,
		SameSite: http.SameSiteStrictMode,
	})
}

// deny answers who may not come in: a browser that wants a page is sent to the login, a program is told how to identify itself.
func (c *Control) deny(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	challenge := "Bearer"
	// A browser would show a dialog of its own over the page.
	if c.User != "" && r.Header.Get("Sec-Fetch-Mode") == "" {
		challenge = "Basic"
	}
	w.Header().Set("WWW-Authenticate", challenge+` realm="edge-infer"`)
	http.Error(w, "not logged in", http.StatusUnauthorized)
}

// ShowLogin serves the form.
func (c *Control) ShowLogin(w http.ResponseWriter, r *http.Request) {
	if c.authorized(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	c.writeLogin(w, http.StatusOK, "")
}

// writeLogin fills the page in by hand: with a template, which may call any exported method, the linker leaves none out of the program.
func (c *Control) writeLogin(w http.ResponseWriter, code int, problem string) {
	if problem != "" {
		problem = `<p class="problem" role="alert">` + html.EscapeString(problem) + `</p>`
	}
	fields := `<label>Token <input name="secret" type="password" autocomplete="current-password" required autofocus></label>`
	if c.User != "" {
		fields = `<label>User <input name="user" autocomplete="username" autocapitalize="none" required autofocus></label>
<label>Password <input name="secret" type="password" autocomplete="current-password" required></label>`
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = strings.NewReplacer("<!-- problem -->", problem, "<!-- fields -->", fields).WriteString(w, loginPage) // the client may be gone
}

// Login begins a session for who sends the right secret.
func (c *Control) Login(w http.ResponseWriter, r *http.Request) {
	client := r.RemoteAddr
	allowed := c.failures.Left(client, time.Now())
	if c.Required() && !c.check(r.PostFormValue("user"), r.PostFormValue("secret"), client) {
		if allowed {
			c.writeLogin(w, http.StatusUnauthorized, "Wrong token or password.")
		} else {
			c.writeLogin(w, http.StatusTooManyRequests, "Too many attempts. Wait a minute and try again.")
		}
		return
	}
	c.setCookie(w, c.sessions.begin(time.Now().Add(sessionLength)), sessionLength)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// Logout ends the browser's session here too, so that nobody comes in with a copy of its cookie.
func (c *Control) Logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(c.cookie); err == nil {
		if err := c.sessions.end(cookie.Value, time.Now()); err != nil {
			c.Logger.Warn("logout not saved, the session will be valid again after a restart", "error", err)
		}
	}
	c.setCookie(w, "", -time.Second)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// Restricted serves only who shows a right to come in, and gives the connection of who does a place among the authenticated ones.
func (c *Control) Restricted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.authorized(r) {
			c.deny(w, r)
			return
		}
		markAuthenticated(r)
		next.ServeHTTP(w, r)
	})
}
