package web

import (
	"crypto/hmac"
	"crypto/sha256"
	"crypto/subtle"
	"embed"
	"encoding/base64"
	"fmt"
	"html/template"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// sessionLength is how long a browser stays logged in.
const sessionLength = 7 * 24 * time.Hour

// access knows who may come in: who shows the token, the user's password, or a cookie that was given for one of them.
type access struct {
	token, user, password string
	cookie                string
	encrypted             bool
	key                   [sha256.Size]byte // signs cookies; follows from the secrets, so that it outlives a restart but not a new password
	failures              rate
}

func newAccess(token, user, password string, port int, encrypted bool) *access {
	a := &access{token: token, user: user, password: password, encrypted: encrypted}
	// Cookies do not belong to a port, so the port is in the name: several daemons on one host must not log each other out.
	a.cookie = fmt.Sprintf("edge-infer-%d", port)
	if encrypted {
		a.cookie = "__Host-" + a.cookie
	}
	a.key = sha256.Sum256(fmt.Appendf(nil, "edge-infer session %q %q %q", token, user, password))
	a.failures = rate{perSecond: 1.0 / 12, burst: 5}
	return a
}

// required reports whether anyone is asked at all.
func (a *access) required() bool { return a.token != "" || a.user != "" }

// granted reports whether the request shows a right to come in.
func (a *access) granted(r *http.Request) bool {
	if !a.required() {
		return true
	}
	if cookie, err := r.Cookie(a.cookie); err == nil && a.valid(cookie.Value, time.Now()) {
		return true
	}
	if _, present := r.Header["Authorization"]; !present {
		return false
	}
	client := hostOf(r.RemoteAddr)
	if token, bearer := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); bearer {
		return a.check("", token, client)
	}
	user, password, _ := r.BasicAuth()
	return a.check(user, password, client)
}

// check compares secrets. An address that guesses wrongly too often is not heard for a while.
func (a *access) check(user, secret, client string) bool {
	a.failures.mutex.Lock()
	_, suspect := a.failures.spent[clientAddress(client)]
	a.failures.mutex.Unlock()
	if suspect && !a.failures.left(client, time.Now()) {
		return false
	}
	if a.token != "" && same(secret, a.token) || a.user != "" && same(user, a.user) && same(secret, a.password) {
		return true
	}
	a.failures.allow(client, time.Now())
	return false
}
