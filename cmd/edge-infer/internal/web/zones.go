package web

import (
	"errors"
	"sync"
	"time"

	"github.com/edge-infer/edge-infer/postprocess/zone"
)

// Zones stores the zones and lines of cameras. Its methods are safe for concurrent use.
type Zones interface {
	// Get returns the saved or configured zones and lines, and their version.
	Get(camera string) (analytics zone.Config, version string, err error)
	// Set replaces this version, or any version if it is empty, and returns the next one. It returns ErrOutdated if the version is not
	// the latest. Its error is shown to the user.
	Set(camera, version string, analytics zone.Config) (next string, err error)
	// Writable returns the error that prevents saving, or nil.
	Writable() error
}

// ErrOutdated is returned if zones have changed since they were read.
var ErrOutdated = errors.New("the zones of this camera have changed since they were loaded: press Revert to load them, then draw again")

var errNoZoneFile = errors.New("zones cannot be saved without a configuration file: copy the text into one and start with --config")

// writableInterval is the time for which the result of Zones.Writable, which writes a file, is cached.
const writableInterval = 10 * time.Second

// writable caches the result of Zones.Writable.
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

// editProblem returns why zones cannot be saved; empty if they can.
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
