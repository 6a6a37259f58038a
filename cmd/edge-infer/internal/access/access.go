// Package access decides who may use the web page and the inference server: tokens with roles, a password, browser sessions, the host and
// origin of requests, and limits on requests and connections.
package access

import (
	"crypto/hmac"
	"crypto/sha256"
	_ "embed"
	"errors"
	"fmt"
	"html"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"time"
)

//go:embed login.html
var loginPage string

// Secrets are the credentials: Tokens, or a User and a Password. Without them everyone has access.
type Secrets struct {
	Tokens         []Token
	User, Password string
}

// Required reports whether a login is required.
func (s *Secrets) Required() bool { return len(s.Tokens) > 0 || s.User != "" }

// Check returns an error for secrets that are too short or contradictory, and for missing ones unless the address is loopback.
func (s *Secrets) Check(address string, loopback bool) error {
	const shortestToken, shortestPassword = 16, 8
	switch {
	case len(s.Tokens) > 0 && s.User+s.Password != "":
		return errors.New("set either a token or a user and a password, not both")
	case (s.User == "") != (s.Password == ""):
		return errors.New("user and password must be set together")
	case s.Password != "" && len(s.Password) < shortestPassword:
		return fmt.Errorf("the password has %d characters, it needs %d", len(s.Password), shortestPassword)
	case !loopback && !s.Required():
		return fmt.Errorf("%s is reachable from other machines: set a token, or a user and a password, or listen on 127.0.0.1", address)
	}
	for _, t := range s.Tokens {
		if len(t.Secret) < shortestToken {
			return fmt.Errorf("the token has %d characters, it needs %d (openssl rand -hex 24 prints one)", len(t.Secret), shortestToken)
		}
	}
	return nil
}

// Control accepts requests with a token, the password, or a session cookie. Set the exported fields and call Open; afterwards it is safe
// for concurrent use.
type Control struct {
	Secrets
	Port      int    // of the page
	Encrypted bool   // the page speaks TLS
	File      string // stores sessions ended by a logout; empty for memory only
	Logger    *slog.Logger

	cookie   string // its name
	sessions sessions
	failures RateLimit
	refused  atomic.Uint64 // wrong secrets
}

// Open reads the sessions that were ended in earlier runs.
func (c *Control) Open() error {
	c.failures.PerSecond, c.failures.Burst = 1.0/12, 5
	// Cookies are shared between ports, so the name contains the port: daemons on one host must not log each other out.
	c.cookie = fmt.Sprintf("edge-infer-%d", c.Port)
	if c.Encrypted {
		c.cookie = "__Host-" + c.cookie
	}
	c.sessions.file = c.File
	c.sessions.key = sha256.Sum256(fmt.Appendf(nil, "edge-infer session %v %q %q", c.Tokens, c.User, c.Password))
	return c.sessions.open(time.Now())
}

// Refused returns the number of wrong secrets.
func (c *Control) Refused() uint64 { return c.refused.Load() }

// Client is the sender of a request.
type Client struct {
	Role Role
	Name string // of the token or the user; empty if the token has none, or no login is required
}

// Role returns what the client of a request may do, by its session or secret.
func (c *Control) Role(r *http.Request) Role { return c.Client(r).Role }

// Client returns the sender of a request, identified by its session or secret.
func (c *Control) Client(r *http.Request) Client {
	if !c.Required() {
		return Client{Role: RoleControl}
	}
	if cookie, err := r.Cookie(c.cookie); err == nil {
		if client := c.sessions.client(cookie.Value, time.Now()); client.Role != NoRole {
			return client
		}
	}
	client := r.RemoteAddr
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		return c.check("", token, client)
	}
	if user, password, basic := r.BasicAuth(); basic {
		return c.check(user, password, client)
	}
	return Client{}
}

// check returns the client with a secret, with NoRole if the secret is wrong. After too many failures passwords of an address are rejected
// for a while. A right token is always accepted, as it is too long to be guessed: clients that share the owner's address cannot lock the
// owner out.
func (c *Control) check(user, secret, client string) Client {
	var found Client
	for _, t := range c.Tokens {
		if equal(secret, t.Secret) && t.Role > found.Role {
			found = Client{Role: t.Role, Name: t.Name}
		}
	}
	if found.Role != NoRole {
		return found
	}
	if c.User != "" && c.failures.Left(client, time.Now()) && equal(user, c.User) && equal(secret, c.Password) {
		return Client{Role: RoleControl, Name: c.User}
	}
	if c.failures.Spend(client, time.Now()) { // the log is bounded as well
		c.Logger.Warn("login refused", "client", ClientPrefix(client).Addr())
	}
	c.refused.Add(1)
	return Client{}
}

// equal compares in constant time, independent of the length.
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

// deny redirects a browser to the login page, and responds 401 to programs.
func (c *Control) deny(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet && r.URL.Path == "/" {
		http.Redirect(w, r, "/login", http.StatusSeeOther)
		return
	}
	challenge := "Bearer"
	// Browsers would open their own login dialog for Basic.
	if c.User != "" && r.Header.Get("Sec-Fetch-Mode") == "" {
		challenge = "Basic"
	}
	w.Header().Set("WWW-Authenticate", challenge+` realm="edge-infer"`)
	http.Error(w, "not logged in", http.StatusUnauthorized)
}

// ShowLogin serves the login form.
func (c *Control) ShowLogin(w http.ResponseWriter, r *http.Request) {
	if c.Role(r) != NoRole {
		http.Redirect(w, r, "/", http.StatusSeeOther)
		return
	}
	c.writeLogin(w, http.StatusOK, "")
}

// writeLogin fills in the page without a template package, which would keep the linker from removing unused methods.
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
	_, _ = strings.NewReplacer("<!-- problem -->", problem, "<!-- fields -->", fields).
		WriteString(w, loginPage)
	// the client may have disconnected
}

// Login starts a session if the secret is right.
func (c *Control) Login(w http.ResponseWriter, r *http.Request) {
	client := r.RemoteAddr
	allowed := c.failures.Left(client, time.Now())
	found := Client{Role: RoleControl}
	if c.Required() {
		found = c.check(r.PostFormValue("user"), r.PostFormValue("secret"), client)
	}
	if found.Role == NoRole {
		if allowed {
			c.writeLogin(w, http.StatusUnauthorized, "Wrong token or password.")
		} else {
			c.writeLogin(w, http.StatusTooManyRequests, "Too many attempts. Wait a minute and try again.")
		}
		return
	}
	c.setCookie(w, c.sessions.begin(found, time.Now().Add(sessionLength)), sessionLength)
	http.Redirect(w, r, "/", http.StatusSeeOther)
}

// Logout ends the session on the server too, so that copies of its cookie are invalid.
func (c *Control) Logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(c.cookie); err == nil {
		if err := c.sessions.end(cookie.Value, time.Now()); err != nil {
			c.Logger.Warn("logout not saved, the session will be valid again after a restart", "error", err)
		}
	}
	c.setCookie(w, "", -time.Second)
	http.Redirect(w, r, "/login", http.StatusSeeOther)
}

// Restricted serves requests of clients that have a role, and marks their connections as authenticated.
func (c *Control) Restricted(least Role, next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		role := c.Role(r)
		if role == NoRole {
			c.deny(w, r)
			return
		}
		MarkAuthenticated(r)
		if role < least {
			http.Error(w, "the role of this token does not allow this request", http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// Protected refuses requests that a page of another site makes a browser send: cross-origin ones and, where no login is required, those for
// the name of another host. DNS rebinding can give that name this machine's address.
func (c *Control) Protected(next http.Handler) http.Handler {
	next = http.NewCrossOriginProtection().Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !c.Required() && !local(r.Host) {
			http.Error(w, "use localhost or the IP address of this machine", http.StatusMisdirectedRequest)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// local reports whether a host is localhost or an IP address, which DNS cannot redirect.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	host = strings.Trim(host, "[]")
	_, err := netip.ParseAddr(host)
	return err == nil || host == "localhost"
}
