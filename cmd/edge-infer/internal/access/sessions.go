package access

import (
	"bytes"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// sessionLength is how long a browser stays logged in.
const sessionLength = 7 * 24 * time.Hour

// sessions creates and verifies session cookies: END.ROLE.NAME.SIGNATURE, where END is Unix time, ROLE a number and NAME random. Only
// sessions ended by a logout are stored, in a file if configured, so that a restart does not revive them. It is safe for concurrent use.
type sessions struct {
	key  [sha256.Size]byte // signing key, derived from the secrets: sessions survive a restart, but not a new password
	file string            // ended sessions, one per line; empty for memory only

	mutex sync.Mutex
	ended map[string]time.Time // expiry by signed part
}

// open reads the sessions ended in earlier runs.
func (s *sessions) open(now time.Time) error {
	s.ended = map[string]time.Time{}
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("ended sessions: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		signed := strings.TrimSpace(line)
		if end, ok := sessionEnd(signed); ok && now.Before(end) {
			s.ended[signed] = end
		}
	}
	return nil
}

// begin returns a new session of a role that expires at end.
func (s *sessions) begin(role Role, end time.Time) string {
	signed := fmt.Sprintf("%d.%d.%s", end.Unix(), role, rand.Text())
	return signed + "." + s.signature(signed)
}

func (s *sessions) signature(signed string) string {
	signature := hmac.New(sha256.New, s.key[:])
	signature.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

// role returns the role of a session, NoRole unless it has a valid signature and has neither expired nor been ended.
func (s *sessions) role(session string, now time.Time) Role {
	signed, ok := s.signed(session)
	if !ok {
		return NoRole
	}
	end, ok := sessionEnd(signed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, ended := s.ended[signed]; !ok || ended || !now.Before(end) {
		return NoRole
	}
	_, rest, _ := strings.Cut(signed, ".")
	number, _, _ := strings.Cut(rest, ".")
	role, err := strconv.Atoi(number)
	if err != nil {
		return NoRole
	}
	return Role(role)
}

// end invalidates a session, across restarts if there is a file.
func (s *sessions) end(session string, now time.Time) error {
	if s.role(session, now) == NoRole { // others must not use memory
		return nil
	}
	signed, _ := s.signed(session)
	end, _ := sessionEnd(signed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.ended[signed] = end
	var text bytes.Buffer
	for signed, end := range s.ended {
		if now.Before(end) {
			fmt.Fprintln(&text, signed)
		} else {
			delete(s.ended, signed)
		}
	}
	if s.file == "" {
		return nil
	}
	err := os.MkdirAll(filepath.Dir(s.file), 0o700)
	if err == nil {
		err = atomicfile.Write(s.file, text.Bytes(), 0o600)
	}
	if err != nil {
		return fmt.Errorf("ended sessions: %w", err)
	}
	return nil
}

// signed returns the signed part of a session, if the signature is valid.
func (s *sessions) signed(session string) (string, bool) {
	dot := strings.LastIndexByte(session, '.')
	if dot < 0 {
		return "", false
	}
	signed := session[:dot]
	return signed, hmac.Equal([]byte(session[dot+1:]), []byte(s.signature(signed)))
}

func sessionEnd(signed string) (time.Time, bool) {
	unix, _, named := strings.Cut(signed, ".")
	end, err := strconv.ParseInt(unix, 10, 64)
	return time.Unix(end, 0), named && err == nil
}
