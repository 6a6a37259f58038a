package web

import (
	"errors"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Zones keeps the zones and lines of cameras. Its methods may be called from any goroutine, several at once.
type Zones interface {
	// Get gives what was saved last, or is configured, and its version.
	Get(camera string) (analytics zone.Config, version string, err error)
	// Set saves what was made of that version, of any version when it is empty, and gives the next one. Its error is shown as it is;
	// ErrOutdated when the version is not the last one any more.
	Set(camera, version string, analytics zone.Config) (next string, err error)
	// Writable says why Set could not save, nil when it could.
	Writable() error
}

// ErrOutdated is of zones that somebody else has changed since they were read.
var ErrOutdated = errors.New("the zones of this camera have changed since they were loaded: press Revert to load them, then draw again")

var errNoZoneFile = errors.New("zones cannot be saved without a configuration file: copy the text into one and start with --config")

// writableInterval is how long it is believed that zones can be saved, or cannot: to find out, something is written.
const writableInterval = 10 * time.Second

// writable remembers the last trial.
type writable struct {
	mutex   sync.Mutex
	checked time.Time
	problem string
}

func (w *writable) forget() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.checked = time.Time{}
}

// editProblem says why zones cannot be saved; empty when they can.
func (s *Server) editProblem(now time.Time) string {
	if s.Zones == nil {
		return errNoZoneFile.Error()
	}
	w := &s.writable
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.checked.IsZero() || now.Sub(w.checked) >= writableInterval {
		w.checked, w.problem = now, ""
		if err := s.Zones.Writable(); err != nil {
			w.problem = err.Error()
		}
	}
	return w.problem
}
