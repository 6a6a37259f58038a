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

	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// sessionLength is how long a browser stays logged in.
const sessionLength = 7 * 24 * time.Hour

// sessions are what browsers show instead of a secret: END.NAME.SIGNATURE, where the end is Unix time and the name random. Nothing is kept
// of those that are in force; those that have been ended before their time are, in a file where there is one, so that a restart does not
// revive them. Any goroutine may use them.
type sessions struct {
	key  [sha256.Size]byte // signs; follows from the secrets, so that sessions outlive a restart but no new password
	file string            // of the ended ones, one a line; empty for memory only

	mutex sync.Mutex
	ended map[string]time.Time // signed part of a session, and when it would have ended by itself
}

// open reads what has been ended in earlier runs.
func (s *sessions) open(now time.Time) error {
	s.ended = map[string]time.Time{}
	if s.file == "" {
		return nil
	}
	text, err := os.ReadFile(s.file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("web: ended sessions: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		signed := strings.TrimSpace(line)
		if end, ok := sessionEnd(signed); ok && now.Before(end) {
			s.ended[signed] = end
		}
	}
	return nil
}

// begin gives a new session.
func (s *sessions) begin(end time.Time) string {
	signed := strconv.FormatInt(end.Unix(), 10) + "." + rand.Text()
	return signed + "." + s.signature(signed)
}

func (s *sessions) signature(signed string) string {
	signature := hmac.New(sha256.New, s.key[:])
	signature.Write([]byte(signed))
	return base64.RawURLEncoding.EncodeToString(signature.Sum(nil))
}

// valid reports whether a session was given by a daemon with these secrets, and whether it is still in force.
func (s *sessions) valid(session string, now time.Time) bool {
	signed, ok := s.signed(session)
	if !ok {
		return false
	}
	end, ok := sessionEnd(signed)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	_, ended := s.ended[signed]
	return ok && now.Before(end) && !ended
}

// end makes a valid session invalid, for good when there is a file.
func (s *sessions) end(session string, now time.Time) error {
	if !s.valid(session, now) { // strangers end nothing, and fill no memory
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
		return fmt.Errorf("web: ended sessions: %w", err)
	}
	return nil
}

// signed is the part of a session that is signed, if the signature is ours.
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
