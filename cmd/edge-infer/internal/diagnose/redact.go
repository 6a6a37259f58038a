package diagnose

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/internal/redact"
)

// secretWords matches values after words like password, token or Authorization in logs and headers; the word is kept.
var secretWords = regexp.MustCompile(
	`(?i)((?:authorization|proxy-authorization|cookie)["']?\s*[:=]\s*["']?|` +
		`(?:bearer|basic|digest)\s+|` +
		`(?:pass|passwd|password|passphrase|token|secret|api[-_]?key)["']?\s*[:=]\s*["']?)` +
		`((?:bearer|basic|digest)\s+)?[^\s"',;}]+`)

// privateKey matches PEM blocks of private keys, also truncated ones.
var privateKey = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// redactor removes secrets from texts.
type redactor struct{ known *strings.Replacer }

// minSecret is the least length of a secret that is replaced everywhere. Replacing shorter ones would make texts unreadable; they are still
// removed from addresses and after secretWords.
const minSecret = 3

func newRedactor(secrets []string) *redactor {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // longest first: one may contain another
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= minSecret {
			pairs = append(pairs, secret, redact.Hidden)
		}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

func (r *redactor) redact(text string) string {
	text = privateKey.ReplaceAllString(r.known.Replace(text), redact.Hidden)
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\n")
		out.WriteString(secretWords.ReplaceAllString(redact.Text(body), "${1}"+redact.Hidden))
		out.WriteString(line[len(body):])
	}
	return out.String()
}
