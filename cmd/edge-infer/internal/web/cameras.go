package web

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
)

// Cameras adds, finds and sets cameras. Its methods are safe for concurrent use, and their errors are shown to the user.
type Cameras interface {
	// Added returns the names of the cameras that were added on the page.
	Added() ([]string, error)
	// Writable returns the error that prevents adding and removing, or nil.
	Writable() error
	// Add saves a camera, which is opened soon.
	Add(camera NewCamera) error
	// Remove removes an added camera.
	Remove(name string) error
	// Set gives a setting of a camera a value in the form of an MQTT command; empty puts the configured one in force again.
	Set(camera, setting, value string) error
	// Search looks for ONVIF cameras, which takes seconds.
	Search(ctx context.Context, search Search) ([]FoundCamera, error)
}

// NewCamera is a camera to add, and the body of that request: keys are the fields' names in lower case. User and Password go into URI and
// Record.
type NewCamera struct {
	Name, URI, Record string
	User, Password    string
}

// Search is a search for cameras, and the body of that request.
type Search struct {
	Addresses      []string // to ask instead of the local networks
	User, Password string
}

// FoundCamera is a camera that has answered.
type FoundCamera struct {
	Name    string `json:"name"` // proposed
	Title   string `json:"title"`
	Address string `json:"address"`
	URI     string `json:"uri,omitempty"`    // stream for the network, without login
	Record  string `json:"record,omitempty"` // a larger one to record
	Streams string `json:"streams,omitempty"`
	Reason  string `json:"reason,omitempty"` // why there is no stream
}

// Settings are the values of a camera that can be set while it runs.
type Settings struct {
	Detect    bool     `json:"detect"` // false pauses detection
	Threshold float64  `json:"threshold"`
	Interval  int      `json:"interval"` // frames
	Labels    []string `json:"labels"`   // empty for all
}

// searchLimit is the timeout of a search.
const searchLimit = time.Minute

var errNoCameras = errors.New("cameras cannot be changed here")

// cameraRoutes passes the patterns and handlers of cameras on: control those that change something.
func (s *Server) cameraRoutes(view func(string, func(http.ResponseWriter, *http.Request)), control func(string, http.HandlerFunc)) {
	view("GET /api/cameras", withParameters(s.listCameras))
	control("POST /api/cameras", withParameters(s.addCamera))
	control("DELETE /api/cameras/{camera}", withParameters(s.removeCamera))
	control("PUT /api/cameras/{camera}/settings/{setting}", withParameters(s.setCamera))
	control("POST /api/cameras/search", withParameters(s.searchCameras))
}

// listCameras responds with the cameras that were added on the page, and with why none can be added.
func (s *Server) listCameras(w http.ResponseWriter, r *http.Request) {
	answer := struct {
		Added   []string `json:"added"`
		Problem string   `json:"problem,omitempty"`
	}{}
	var err error
	switch {
	case s.access.Role(r) < access.RoleControl:
		err = errors.New("your token has the role view; cameras are changed with one of the role control")
	case s.Cameras == nil:
		err = errNoCameras
	default:
		answer.Added, err = s.Cameras.Added()
		if err == nil {
			err = s.Cameras.Writable()
		}
	}
	if err != nil {
		answer.Problem = err.Error()
	}
	writeJSON(w, http.StatusOK, answer)
}

// readJSON decodes a request body, or writes an error response.
func readJSON(w http.ResponseWriter, r *http.Request, what string, value any) bool {
	err := decodeOne(r.Body, value)
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, fmt.Errorf("%s: %w", what, err))
	}
	return err == nil
}

// change calls do, and responds with its error or without content. The next status has what was changed.
func (s *Server) change(w http.ResponseWriter, do func() error) {
	err := errNoCameras
	if s.Cameras != nil {
		err = do()
	}
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	s.recent.forget()
	w.WriteHeader(http.StatusNoContent)
}

func (s *Server) addCamera(w http.ResponseWriter, r *http.Request) {
	var camera NewCamera
	if readJSON(w, r, "camera", &camera) {
		s.change(w, func() error { return s.Cameras.Add(camera) })
	}
}

func (s *Server) removeCamera(w http.ResponseWriter, r *http.Request) {
	s.change(w, func() error { return s.Cameras.Remove(r.PathValue("camera")) })
}

// setCamera sets one setting of a camera. The body is {"value": TEXT}, with the text of an MQTT command.
func (s *Server) setCamera(w http.ResponseWriter, r *http.Request) {
	name := r.PathValue("camera")
	if !s.known(name) {
		writeError(w, http.StatusNotFound, fmt.Errorf("no camera %q", name))
		return
	}
	var body struct {
		Value string `json:"value"`
	}
	if readJSON(w, r, "setting", &body) {
		s.change(w, func() error { return s.Cameras.Set(name, r.PathValue("setting"), body.Value) })
	}
}

// searchCameras looks for cameras for longer than other requests may take.
func (s *Server) searchCameras(w http.ResponseWriter, r *http.Request) {
	var search Search
	if !readJSON(w, r, "search", &search) {
		return
	}
	if s.Cameras == nil {
		writeError(w, http.StatusUnprocessableEntity, errNoCameras)
		return
	}
	if !s.searching.TryLock() {
		writeError(w, http.StatusConflict, errors.New("a search is running already: wait until it has ended"))
		return
	}
	defer s.searching.Unlock()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(searchLimit + s.limits.write))
	ctx, cancel := context.WithTimeout(r.Context(), searchLimit)
	defer cancel()
	found, err := s.Cameras.Search(ctx, search)
	if err != nil && len(found) == 0 {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	writeJSON(w, http.StatusOK, map[string][]FoundCamera{"cameras": found})
}
