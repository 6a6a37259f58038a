// Package redact hides the secrets of addresses in texts that people read: messages, logs, status, reports.
package redact

import (
	"net/netip"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands in the place of a secret.
const Hidden = "***"

// named matches name=value in a pipeline or a text if the name suggests a secret.
var named = regexp.MustCompile(
	`(?i)([a-z0-9_-]*(?:pass|passwd|password|passphrase|pas|pwd|pw|psw|token|secret|key|auth|authbasic|credential|credentials|sid|session|` +
		`signature|sig|user-id|username|user|usr|login)=)` +
		`("[^"]*"|'[^']*'|[^\s&"'!]*)`)

var (
	// start matches the beginning of an address.
	start = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://`)
	// another matches the beginning of a further address in a list or a text.
	another = regexp.MustCompile(`[\s,;|(<\["'=](?:tcp|mqtts?|tls|ssl|wss?|grpcs?|https?|rtsps?|rtmps?|srt|udp)://`)
	// host matches what follows the user's @ in an address.
	host = regexp.MustCompile(`^(\[[0-9A-Fa-f:.%a-z]+\]|[^\s/?#:@,;&='"\[\]]+)([/:?#]?)`)
	// hosts matches host:port, or several separated by commas, without a user. Punctuation of a text may follow.
	hosts = regexp.MustCompile(`^(?:\[[^\]]*\]|[^:@,\[\]]*)(?::[0-9]*)?(?:,(?:\[[^\]]*\]|[^:@,\[\]]*)(?::[0-9]*)?)*[.,;:)>\]}]*$`)
)

// own lists the parameters that this program defines for addresses of cameras. They hold no secrets.
var own = []string{
	"certificate", "decoder", "flip", "format", "fps", "frames", "height", "latency", "loop", "mode", "seed", "transport", "width",
}

// Named returns a text with the values hidden whose names suggest a secret, as in password=***.
func Named(text string) string {
	if !strings.Contains(text, "=") {
		return text
	}
	return named.ReplaceAllString(text, "${1}"+Hidden)
}

// Text returns an address, a pipeline or any other text without the users, passwords and values of queries of its addresses, and without
// values whose names suggest a secret. In an address, everything between // and the last @ before the path is hidden, also if the password
// contains unencoded special characters; when in doubt, more is hidden.
func Text(text string) string {
	var out strings.Builder
	first, rest := true, text
	for {
		at := start.FindStringIndex(rest)
		if at == nil {
			break
		}
		before, scheme, tail := rest[:at[0]], strings.ToLower(strings.TrimSuffix(rest[at[0]:at[1]], "://")), rest[at[1]:]
		a := address{text: tail, own: scheme == "csi" || scheme == "v4l2" || scheme == "file" || scheme == "demo"}
		a.ownFragment = scheme == "rtsp" || scheme == "rtsps"
		switch {
		case strings.HasSuffix(before, `"`), strings.HasSuffix(before, "'"):
			a.text, a.alone = quoted(tail, before[len(before)-1]), true
		case first && !strings.ContainsAny(before, " \t\r\n\"'"):
			a.alone = true
		}
		shown, length := a.redact()
		out.WriteString(rest[:at[1]] + shown)
		first, rest = first && length < len(tail) && another.MatchString(tail[max(length-1, 0):]), tail[length:]
	}
	out.WriteString(rest)
	return Named(out.String())
}

// quoted returns the part of a text before the closing quotation mark.
func quoted(text string, mark byte) string {
	end, last := -1, -1
	for i := 0; i < len(text); i++ {
		switch {
		case text[i] == '\\':
			i++
		case text[i] == mark:
			last = i
			if end < 0 {
				end = i
			}
		}
	}
	switch {
	case end < 0:
		return text
	case !strings.Contains(text[:end], "@") && !hosts.MatchString(authority(text[:end])): // the mark is a part of the password
		return text[:last]
	}
	return text[:end]
}

// authority returns the part of an address before the path.
func authority(text string) string {
	if end := strings.IndexAny(text, "/?#"); end >= 0 {
		return text[:end]
	}
	return text
}

// address is what follows the scheme of an address, and what may follow the address in a text.
type address struct {
	text             string
	alone            bool // nothing follows except other addresses
	own, ownFragment bool // the query, or the fragment, has parameters of this program
}

// redact returns the address without secrets and how much of the text it was.
func (a address) redact() (shown string, length int) {
	text := a.text
	if next := another.FindStringIndex(text); next != nil && a.mayEnd(text[:next[0]]) {
		text = text[:next[0]]
	}
	prefix := ""
	user := a.user(text)
	if user >= 0 {
		prefix = Hidden
	} else if first := word(authority(text)); !hosts.MatchString(first) { // a password whose end is missing
		prefix, user = Hidden, len(first)
	} else {
		user = 0
	}
	rest := text[user:]
	if !a.alone {
		rest = rest[:len(word(rest))]
	}
	return prefix + a.parameters(rest), user + len(rest)
}

// mayEnd reports whether an address may end with the text. One that stands alone goes on over what looks like another address, which may be
// in a password or a query.
func (a address) mayEnd(text string) bool {
	if !a.alone {
		return hosts.MatchString(word(authority(text))) || strings.Contains(authority(text), "@")
	}
	return !strings.ContainsAny(text, "?#@") && hosts.MatchString(authority(text))
}

// word returns the text before the first space or quotation mark.
func word(text string) string {
	if end := strings.IndexAny(text, " \t\r\n\"'"); end >= 0 {
		return text[:end]
	}
	return text
}

// user returns the position of the @ that ends user and password, -1 if there is none.
func (a address) user(text string) int {
	before := authority(text)
	inside := strings.LastIndexByte(before, '@')
	broken := inside < 0 && !hosts.MatchString(word(before))
	if !a.alone && !broken {
		limit := max(inside, 0) // the password may contain spaces, what follows it does not
		text = text[:limit+len(word(text[limit:]))]
	}
	for at := strings.LastIndexByte(text, '@'); at > inside; at = strings.LastIndexByte(text[:at], '@') {
		between := text[min(len(before), at):at]
		value := strings.ContainsRune(between[strings.LastIndexAny(between, "?&")+1:], '=') && strings.Contains(between, "?")
		if broken || strings.Contains(between, ":") || inside >= 0 && !value || isHost(text[at+1:]) {
			return at
		}
	}
	return inside
}

// isHost reports whether a text begins with what must be the host of an address: a path or a port follows, or it is an IP address.
func isHost(text string) bool {
	match := host.FindStringSubmatch(text)
	if match == nil {
		return false
	}
	_, err := netip.ParseAddr(strings.Trim(match[1], "[]"))
	return match[2] != "" || err == nil
}

// parameters hides the values of the query and of the fragment.
func (a address) parameters(text string) string {
	path, rest, _ := strings.Cut(text, "#")
	fragment := text[len(path):]
	path, query, found := strings.Cut(path, "?")
	if found {
		path += "?" + hideValues(query, a.own)
	}
	if fragment != "" {
		path += "#" + hideValues(rest, a.ownFragment)
	}
	return path
}

// hideValues hides the values of name=value&name=value, except those of the program's own parameters if there may be any.
func hideValues(query string, mayBeOwn bool) string {
	if query == "" {
		return ""
	}
	values := strings.FieldsFunc(query, func(r rune) bool { return r == '&' || r == ';' })
	for i, value := range values {
		name, _, found := strings.Cut(value, "=")
		switch {
		case mayBeOwn && slices.Contains(own, name):
		case found:
			values[i] = name + "=" + Hidden
		default:
			values[i] = Hidden
		}
	}
	return strings.Join(values, "&")
}
