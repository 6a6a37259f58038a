package web

import (
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"fmt"
	"html"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/web/rate"
)

//go:embed page/login.html
var loginPage string

// access knows who may come in: who shows the token, the user's password, or a cookie that was given for one of them.
type access struct {
	token, user, password string
	cookie                string // its name
	encrypted             bool
	sessions              sessions
	failures              rate.Limit
	refused               atomic.Uint64 // wrong secrets
}

func newAccess(token, user, password string, port int, encrypted bool) *access {
	a := &access{token: token, user: user, password: password, encrypted: encrypted, failures: rate.Limit{PerSecond: 1.0 / 12, Burst: 5}}
	// Cookies do not belong to a port, so the port is in the name: several daemons on one host must not log each other out.
	a.cookie = fmt.Sprintf("edge-infer-%d", port)
	if encrypted {
		a.cookie = "__Host-" + a.cookie
	}
	a.sessions.key = sha256.Sum256(fmt.Appendf(nil, "edge-infer session %q %q %q", token, user, password))
	return a
}

// required reports whether anyone is asked at all.
func (a *access) required() bool { return a.token != "" || a.user != "" }

// granted reports whether the request shows a right to come in.
func (a *access) granted(r *http.Request) bool {
	if !a.required() {
		return true
	}
	if cookie, err := r.Cookie(a.cookie); err == nil && a.sessions.valid(cookie.Value, time.Now()) {
		return true
	}
	client := hostOf(r.RemoteAddr)
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		return a.check("", token, client)
	}
	if user, password, basic := r.BasicAuth(); basic {
		return a.check(user, password, client)
	}
	return false
}

// check compares secrets. An address that has guessed wrongly too often is not heard for a while with passwords, which people can remember and
// guess. A token is too long for that, so the right one always counts: nobody who shares the owner's address can lock the owner out.
func (a *access) check(user, secret, client string) bool {
	if a.token != "" && same(secret, a.token) {
		return true
	}
	if a.user != "" && a.failures.Left(client, time.Now()) && same(user, a.user) && same(secret, a.password) {
		return true
	}
	a.failures.Spend(client, time.Now())
	a.refused.Add(1)
	return false
}

// same compares in a time that says nothing about the secret, its length included.
func same(given, secret string) bool {
	one, two := sha256.Sum256([]byte(given)), sha256.Sum256([]byte(secret))
	return hmac.Equal(one[:], two[:])
}

func (a *access) setCookie(w http.ResponseWriter, value string, age time.Duration) {
	http.SetCookie(w, &http.Cookie{
		Name: a.cookie, Value: value, Path: "/", MaxAge: int(age.Seconds()), HttpOnly: true, Secure: a.encrypted, SameSite: http.SameSiteStrictMode,
	})
}

// refuse answers who may not come in: a browser that wants a page is sent to the login, a program is told how to identify itself.
func (a *access) refuse(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	challenge := "Bearer"
	// A browser would show a dialog of its own over the page.
	if a.user != "" && r.Header.Get("Sec-Fetch-Mode") == "" {
		challenge = "Basic"
	}
	w.Header().Set("WWW-Authenticate", challenge+` realm="edge-infer"`)
	http.Error(w, "not logged in", http.StatusUnauthorized)
}

func (a *access) showLogin(w http.ResponseWriter, r *http.Request) {
	if a.granted(r) {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	a.writeLogin(w, http.StatusOK, "")
}

// writeLogin fills the page in by hand: with a template, which may call any exported method, the linker leaves none out of the program.
func (a *access) writeLogin(w http.ResponseWriter, code int, problem string) {
	if problem != "" {
		problem = `<p class="problem" role="alert">` + html.EscapeString(problem) + `</p>`
	}
	fields := `<label>Token <input name="secret" type="password" autocomplete="current-password" required autofocus></label>`
	if a.user != "" {
		fields = `<label>User <input name="user" autocomplete="username" autocapitalize="none" required autofocus></label>
<label>Password <input name="secret" type="password" autocomplete="current-password" required></label>`
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = strings.NewReplacer("<!-- problem -->", problem, "<!-- fields -->", fields).WriteString(w, loginPage) // the client may be gone
}

func (a *access) login(w http.ResponseWriter, r *http.Request) {
	client := hostOf(r.RemoteAddr)
	heard := a.failures.Left(client, time.Now())
	if a.required() && !a.check(r.PostFormValue("user"), r.PostFormValue("secret"), client) {
		if heard {
			a.writeLogin(w, http.StatusUnauthorized, "That was not right.")
		} else {
			a.writeLogin(w, http.StatusTooManyRequests, "Too many attempts. Wait a minute and try again.")
		}
		return
	}
	a.setCookie(w, a.sessions.begin(time.Now().Add(sessionLength)), sessionLength)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// logout ends the browser's session here too, so that nobody comes in with a copy of its cookie.
func (s *Server) logout(w http.ResponseWriter, r *http.Request) {
	a := s.access
	if cookie, err := r.Cookie(a.cookie); err == nil {
		if err := a.sessions.end(cookie.Value, time.Now()); err != nil {
			s.Logger.Warn("a session that ended will be valid again after a restart", "error", err)
		}
	}
	a.setCookie(w, "", -time.Second)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}
