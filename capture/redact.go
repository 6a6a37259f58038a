package capture

import (
	"regexp"
	"strings"
)

// secret matches name=value in a query or a pipeline if the name suggests a secret.
var secret = regexp.MustCompile(
	`(?i)([a-z0-9_-]*(?:pass|passwd|password|pwd|pw|token|secret|key|auth|signature|sig|user-id|username|user)=)` +
		`("[^"]*"|'[^']*'|[^\s&"'!]*)`)

// Redact returns a camera URI or pipeline without user names, passwords and tokens, for messages and logs.
func Redact(uri string) string {
	var out strings.Builder
	rest := uri
	for {
		head, tail, found := strings.Cut(rest, "://")
		out.WriteString(head)
		if !found {
			break
		}
		out.WriteString("://")
		end := strings.IndexAny(tail, " \t\r\n\"'")
		if end < 0 {
			end = len(tail)
		}
		out.WriteString(redactUser(tail[:end]))
		rest = tail[end:]
	}
	if !strings.Contains(uri, "=") {
		return out.String()
	}
	return secret.ReplaceAllString(out.String(), "${1}***")
}

// redactUser replaces the user info before the @ of an address. A user name or password may contain an unencoded '/', '?' or '#'; then what
// looks like the port is not a number, or a colon follows later. When in doubt, more is hidden.
func redactUser(address string) string {
	end := strings.IndexAny(address, "/?#")
	if end < 0 {
		end = len(address)
	}
	authority, rest := address[:end], address[end:]
	at := strings.LastIndexByte(authority, '@')
	_, port, found := strings.Cut(authority[at+1:], ":")
	malformedPort := found && !digits(port) && !strings.HasPrefix(authority[at+1:], "[")
	colon, last := strings.IndexByte(rest, ':'), strings.LastIndexByte(rest, '@')
	if last >= 0 && (malformedPort || colon >= 0 && colon < last) {
		at = end + last
	}
	if at < 0 {
		return address
	}
	return "***" + address[at:]
}
