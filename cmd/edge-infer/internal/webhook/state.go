package webhook

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// stateName is the name of the file beside the queue with the stored state, which doctor reads too.
const stateName = "state.json"

// state is the part of a sender's state that is stored.
type state struct {
	// Gone identifies the receiver that has answered 410 Gone; empty if none has. Nothing is sent to it any more.
	Gone string `json:"gone,omitempty"`
	// Dead is the number of events that receivers have refused too often, Last and Reason are the newest one's.
	Dead   uint64    `json:"dead,omitempty"`
	Last   time.Time `json:"last,omitzero"`
	Reason string    `json:"reason,omitempty"`
}

// readState returns the stored state, or the zero state.
func readState(directory string) (s state) {
	if directory == "" {
		return s
	}
	text, err := os.ReadFile(filepath.Join(directory, stateName))
	if err != nil || json.Unmarshal(text, &s) != nil {
		return state{}
	}
	return s
}

// receiver identifies the receiver without disclosing its address.
func (s *Sender) receiver() string {
	sum := sha256.Sum256([]byte(s.URL))
	return hex.EncodeToString(sum[:8])
}

// disabled reports whether the receiver has answered 410 Gone.
func (s *Sender) disabled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Gone != ""
}

// change changes the stored state. Without a directory it lasts as long as the process.
func (s *Sender) change(to func(*state)) {
	s.mu.Lock()
	to(&s.state)
	now := s.state
	s.mu.Unlock()
	if s.events.Directory == "" {
		return
	}
	text, err := json.Marshal(&now)
	if err == nil {
		err = atomicfile.Write(filepath.Join(s.events.Directory, stateName), text, 0o600)
	}
	if err != nil {
		s.Logger.Warn("state of a webhook not stored, a restart forgets it", "error", err)
	}
}

// Record is the state of a webhook that a running or earlier daemon has stored.
type Record struct {
	Disabled bool   // the receiver has answered 410 Gone
	Dead     uint64 // events that were given up because the receiver refused them
	Last     time.Time
	Reason   string // of the newest one
}

// ReadRecord reads the record of a sender that need not be open.
func (s *Sender) ReadRecord() Record {
	stored := readState(s.Spool.Directory)
	return Record{Disabled: stored.Gone == s.receiver(), Dead: stored.Dead, Last: stored.Last, Reason: stored.Reason}
}
