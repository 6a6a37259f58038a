package web

import (
	"errors"
	"net/http"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/access"
)

// Notifications are sent to browsers whose page is closed. Its methods are safe for concurrent use, and their errors are shown to the user.
type Notifications interface {
	// Key returns the key that browsers subscribe for, in base64 of URLs.
	Key() (string, error)
	// Subscribe has a browser get notifications from now on, or changes which ones.
	Subscribe(s Subscription) error
	// Unsubscribe ends them.
	Unsubscribe(endpoint string) error
}

// Subscription is a browser at its push service, and the body of that request: keys are the fields' names in lower case.
type Subscription struct {
	Endpoint, P256dh, Auth string
	Cameras, Labels        []string // that it gets notifications of; empty for all
}

var errNoNotifications = errors.New("there are no notifications here")

// notificationPages serve the notifications of browsers.
type notificationPages struct{ *Server }

// routes passes the patterns and handlers of notifications on: control those that change something.
func (s notificationPages) routes(view func(string, func(http.ResponseWriter, *http.Request)), control func(string, http.HandlerFunc)) {
	view("GET /sw.js", func(w http.ResponseWriter, r *http.Request) { // its path is what it may act for
		w.Header().Set("Cache-Control", "no-cache")
		http.ServeFileFS(w, r, page, "page/files/worker.js")
	})
	view("GET /api/notifications", withParameters(s.show))
	control("POST /api/notifications", withParameters(s.subscribe))
	control("DELETE /api/notifications", withParameters(s.unsubscribe))
}

// show responds with the key to subscribe for, or why this is not possible.
func (s notificationPages) show(w http.ResponseWriter, r *http.Request) {
	answer := struct {
		Key     string `json:"key,omitempty"`
		Problem string `json:"problem,omitempty"`
	}{}
	var err error
	switch {
	case s.access.Role(r) < access.RoleControl:
		err = errors.New("your token has the role view; notifications need one of the role control")
	case s.Notifications == nil:
		err = errNoNotifications
	default:
		answer.Key, err = s.Notifications.Key()
	}
	if err != nil {
		answer.Problem = err.Error()
	}
	writeJSON(w, http.StatusOK, answer)
}

func (s notificationPages) subscribe(w http.ResponseWriter, r *http.Request) {
	s.change(w, r, func(n Notifications, body Subscription) error { return n.Subscribe(body) })
}

func (s notificationPages) unsubscribe(w http.ResponseWriter, r *http.Request) {
	s.change(w, r, func(n Notifications, body Subscription) error { return n.Unsubscribe(body.Endpoint) })
}

// change calls do with the body, and responds with its error or without content.
func (s notificationPages) change(w http.ResponseWriter, r *http.Request, do func(Notifications, Subscription) error) {
	var body Subscription
	if !readJSON(w, r, "subscription", &body) {
		return
	}
	err := errNoNotifications
	if s.Notifications != nil {
		err = do(s.Notifications, body)
	}
	if err != nil {
		writeError(w, http.StatusUnprocessableEntity, err)
		return
	}
	w.WriteHeader(http.StatusNoContent)
}
