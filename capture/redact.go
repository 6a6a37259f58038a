package capture

import "github.com/edge-infer/edge-infer/internal/redact"

// Redact returns a camera URI or pipeline without user names, passwords, tokens and values of queries, for messages and logs. Parameters of
// this program, such as #transport=, are kept.
func Redact(uri string) string { return redact.Text(uri) }
