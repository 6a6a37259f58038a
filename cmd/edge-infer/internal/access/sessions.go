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

// sessions creates and verifies session cookies: END.ROLE.ID.CLIENT.SIGNATURE, where END is Unix time, ROLE a number, ID random and CLIENT
// the client's name in base64. Only sessions ended by a logout are stored, in a file if configured, so that a restart does not revive them.
// It is safe for concurrent use.
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

// begin returns a new session of a client that expires at end.
func (s *sessions) begin(client Client, end time.Time) string {
	signed := fmt.Sprintf("%d.%d.%s.%s", end.Unix(), client.Role, rand.Text(), base64.RawURLEncoding.EncodeToString([]byte(client.Name)))
	return signed + "." + s.signature(signed)
}

func (s *sessions) signature(signed string) string {
	signature := hmac.New(sha256.New, s.key[:])
	signature.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

// client returns the client of a session, with NoRole unless it has a valid signature and has neither expired nor been ended.
func (s *sessions) client(session string, now time.Time) Client {
	signed, ok := s.signed(session)
	if !ok {
		return Client{}
	}
	end, ok := sessionEnd(signed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, ended := s.ended[signed]; !ok || ended || !now.Before(end) {
		return Client{}
	}
	parts := strings.Split(signed, ".")
	if len(parts) != 4 {
		return Client{}
	}
	role, err := strconv.Atoi(parts[1])
	if err != nil {
		return Client{}
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[3])
	if err != nil {
		return Client{}
	}
	return Client{Role: Role(role), Name: string(name)}
}

// end invalidates a session, across restarts if there is a file.
func (s *sessions) end(session string, now time.Time) error {
	if s.client(session, now).Role == NoRole { // others must not use memory
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
