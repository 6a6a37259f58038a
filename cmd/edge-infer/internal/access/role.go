package access

import (
	"fmt"
	"strings"
)

// Role is what a client may do. Each role includes those before it.
type Role int

// The roles, by the words of a token file.
const (
	NoRole      Role = iota
	RoleMetrics      // metrics: read metrics and statistics
	RoleView         // view: see images, events and settings, and run the model of a server
	RoleControl      // control: change settings
)

// roleNames are the words of a token file.
func roleNames() map[string]Role {
	return map[string]Role{"metrics": RoleMetrics, "view": RoleView, "control": RoleControl}
}

// Token is a bearer token.
type Token struct {
	Role   Role
	Secret string
	Name   string // of its owner, for the audit log; may be empty
}

// ParseTokens reads a token file. Each line is a role, a token and optionally the name of its owner, or a token alone, which has the role
// control. Empty lines and those that begin with # are skipped.
func ParseTokens(text string) ([]Token, error) {
	var tokens []Token
	number := 0
	for line := range strings.Lines(text) {
		number++
		fields := strings.Fields(line)
		switch {
		case len(fields) == 0 || strings.HasPrefix(fields[0], "#"):
		case len(fields) == 1:
			tokens = append(tokens, Token{Role: RoleControl, Secret: fields[0]})
		default:
			role, known := roleNames()[fields[0]]
			if !known || len(fields) > 3 {
				return nil, fmt.Errorf("token file: line %d must be a token, or a role (metrics, view or control), a token and a name", number)
			}
			token := Token{Role: role, Secret: fields[1]}
			if len(fields) == 3 {
				token.Name = fields[2]
			}
			tokens = append(tokens, token)
		}
	}
	return tokens, nil
}
