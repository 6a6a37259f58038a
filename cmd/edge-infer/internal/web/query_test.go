package web

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/assert"
)

// TestQueriesThatAreNotUnderstood are refused and not answered as if they asked for something else.
func TestQueriesThatAreNotUnderstood(t *testing.T) {
	server := &Server{History: &oneDay{}, Events: openStore(t)}
	serve(t, server, busy())
	for path, want := range map[string]string{
		"api/cameras/cam0/history?from=abc":                `unknown parameter \"from\": this address takes day`,
		"api/cameras/cam0/history?day=2026-11-20&to=x":     `unknown parameter \"to\": this address takes day`,
		"api/cameras/cam0/history?day=2026-11-20&day=":     "day is given 2 times",
		"api/cameras/cam0/history?day=2026-11-20%zz":       "the query is invalid",
		"api/cameras/cam0/history?day=2026-11-20;camera=a": "the query is invalid",
		"api/cameras/cam0/analytics?v=1":                   `unknown parameter \"v\": this address takes none`,
		"api/status?camera=cam0":                           `unknown parameter \"camera\": this address takes none`,
		"api/detections?camera=cam0":                       `unknown parameter \"camera\": this address takes none`,
		"api/events?cam=cam0":                              `unknown parameter \"cam\": this address takes limit, cursor, after, before, camera, label, zone, attribute`,
		"api/events?limit=ten":                             "limit must be 1 to 1000",
		"api/images?cam=cam0":                              "specify 1 to 64 cameras",
	} {
		code, text, _ := ask(t, "GET", server.URL()+path, nil)
		assert.Equal(t, http.StatusBadRequest, code, path)
		assert.Contains(t, text, want, path)
	}
	for _, path := range []string{
		"api/events?limit=&camera=&label=&zone=", "api/events?camera=cam0&attribute=colour%3Dred&limit=1000&after=2026-11-25T18:00:00Z",
		"api/cameras/cam0/history?day=", "api/status?",
	} {
		code, text, _ := ask(t, "GET", server.URL()+path, nil)
		assert.Equal(t, http.StatusOK, code, "%s: %s", path, text)
	}
}
