package dossier

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/capture"
)

const hidden = "***"

// said matches what is named a secret in words of logs and headers: the name is kept, what follows is not.
var said = regexp.MustCompile(
	`(?i)((?:authorization|proxy-authorization|cookie)["']?\s*[:=]\s*["']?|` +
		`(?:bearer|basic|digest)\s+|` +
		`(?:pass|passwd|password|passphrase|token|secret|api[-_]?key)["']?\s*[:=]\s*["']?)` +
		`((?:bearer|basic|digest)\s+)?[^\s"',;}]+`)

// keyFile matches PEM's blocks of private keys, also one that is cut off.
var keyFile = regexp.MustCompile(`(?s)-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(-----END [A-Z ]*PRIVATE KEY-----|$)`)

// redactor leaves secrets out of texts.
type redactor struct{ known *strings.Replacer }

// shortest is the length of a secret that is looked for in all texts. One that is shorter would make them unreadable; where it stands in an
// address or behind its name it is left out all the same.
const shortest = 3

func newRedactor(secrets []string) *redactor {
	secrets = slices.Clone(secrets)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) }) // one may be a part of another
	var pairs []string
	for _, secret := range secrets {
		if len(secret) >= shortest {
			pairs = append(pairs, secret, hidden)
		}
	}
	return &redactor{strings.NewReplacer(pairs...)}
}

func (r *redactor) redact(text string) string {
	text = keyFile.ReplaceAllString(r.known.Replace(text), hidden)
	var out strings.Builder
	for line := range strings.Lines(text) {
		body := strings.TrimRight(line, "\n")
		out.WriteString(said.ReplaceAllString(capture.Redact(body), "${1}"+hidden))
		out.WriteString(line[len(body):])
	}
	return out.String()
}
