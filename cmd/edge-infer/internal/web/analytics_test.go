package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/audit"
	"github.com/edge-infer/edge-infer/postprocess/zone"
)

var labels = []string{"bolt", "nut"}

func TestAnalyticsYAML(t *testing.T) {
	c := yard()
	c.Zones[0].Loiter, c.Zones[0].Labels = 90*time.Second, []string{"bolt"}
	c.Lines[0].Direction = zone.In
	text, err := analyticsYAML(c)
	require.NoError(t, err)
	require.Equal(t, `analytics:
  zones:
    - name: inspection
      points:
        - {x: 0.55, y: 0.1}
        - {x: 0.95, y: 0.1}
        - {x: 0.95, y: 0.9}
        - {x: 0.55, y: 0.9}
      labels:
        - bolt
      loiter: 1m30s
  lines:
    - name: gate
      from: {x: 0.4, y: 0.98}
      to: {x: 0.4, y: 0.02}
      direction: in
`, text)
}

func TestAnalyticsRequests(t *testing.T) {
	s := &stage{analytics: map[string]zone.Config{}}
	source := frames("a")
	source.status.Cameras[0].Labels = labels
	record := filepath.Join(t.TempDir(), "audit.jsonl")
	server := &Server{Zones: s, Audit: &audit.Log{Path: record}}
	serve(t, server, source)
	for _, c := range []struct {
		camera, body string
		code         int
		want         string
	}{
		{"b", `{}`, 404, `no camera "b"`},
		{"a", ``, 422, `zones: EOF`},
		{"a", `{"zone":[]}`, 422, `zones: json: unknown field "zone"`},
		{"a", `{} {}`, 422, `zones: more than one document`},
		{"a", `null`, 422, `zones: null is no document (send {} to remove every zone)`},
		{"a", `{"zones":[{"name":"x","points":[{"x":0,"y":0}]}]}`, 422, `zone "x": needs 3 to 64 points, has 1`},
		{"a", `{"lines":[{"name":"x","from":{"x":0,"y":0},"to":{"x":2,"y":0}}]}`, 422, `line "x": to point (2, 0) is outside the image`},
		{"a", `{"lines":[{"name":"x","from":{"x":0,"y":0},"to":{"x":1,"y":0},"labels":["cat"]}]}`, 422, `line "x": label "cat" is not one of the model's: bolt, nut`},
	} {
		for method, path := range map[string]string{"PUT": "analytics", "POST": "analytics/check"} {
			code, text, _ := ask(t, method, server.URL()+"api/cameras/"+c.camera+"/"+path, strings.NewReader(c.body))
			require.Equal(t, c.code, code, c.body)
			var answer map[string]string
			require.NoError(t, json.Unmarshal([]byte(text), &answer))
			require.Equal(t, map[string]string{"error": c.want}, answer)
		}
	}
	body, err := json.Marshal(yard())
	require.NoError(t, err)
	path := server.URL() + "api/cameras/a/analytics"
	save := func(headers ...string) (int, string, http.Header) {
		return ask(t, "PUT", path, bytes.NewReader(body), headers...)
	}
	for _, header := range []string{"", "0", `""`} {
		code, text, _ := save("If-Match", header)
		require.Equal(t, http.StatusPreconditionRequired, code)
		require.JSONEq(t, `{"error":"If-Match must be the ETag of the zones that were read, or * to overwrite any version"}`, text)
	}
	code, text, headers := ask(t, "GET", path, nil)
	require.Equal(t, http.StatusOK, code)
	require.Contains(t, text, `"zones":[]`)
	read := headers.Get("ETag")
	code, _, headers = save("If-Match", read)
	require.Equal(t, http.StatusNoContent, code)
	require.Equal(t, yard(), s.kept("a"))
	code, text, _ = save("If-Match", read)
	require.Equal(t, http.StatusPreconditionFailed, code, "what was read before somebody else's save is not written over it")
	require.JSONEq(t, `{"error":"`+ErrOutdated.Error()+`"}`, text)
	for _, version := range []string{headers.Get("ETag"), "*"} {
		code, _, _ = save("If-Match", version)
		require.Equal(t, http.StatusNoContent, code)
	}
	server.Audit.Close()
	recorded, err := os.ReadFile(record)
	require.NoError(t, err)
	require.Equal(t, 3, bytes.Count(recorded, []byte(`"what":"PUT /api/cameras/a/analytics"`)), "%s", recorded)
	require.Equal(t, 3, bytes.Count(recorded, []byte("\n")), "refused requests are not recorded")
	code, text, _ = ask(t, "GET", server.URL()+"api/cameras/b/analytics", nil)
	require.Equal(t, http.StatusNotFound, code)
	require.JSONEq(t, `{"error":"no camera \"b\""}`, text)

	readOnly := &Server{}
	serve(t, readOnly, source)
	for _, method := range []string{"GET", "PUT"} {
		code, text, _ := ask(t, method, readOnly.URL()+"api/cameras/a/analytics", bytes.NewReader(body))
		require.Equal(t, http.StatusConflict, code)
		require.JSONEq(t, `{"error":"`+errNoZoneFile.Error()+`"}`, text)
	}
}

// TestEditableIsWhatASaveWouldDo.
func TestEditableIsWhatASaveWouldDo(t *testing.T) {
	s := &stage{analytics: map[string]zone.Config{}}
	source := frames("a")
	source.status.Cameras[0].Labels = labels
	type state struct {
		Editable   bool
		Uneditable string
	}
	editable := func(server *Server) (answer state) {
		code, text, _ := ask(t, "GET", server.URL()+"api/status", nil)
		require.Equal(t, http.StatusOK, code)
		require.NoError(t, json.Unmarshal([]byte(text), &answer))
		return answer
	}
	nowhere := &Server{}
	serve(t, nowhere, source)
	require.Equal(t, errNoZoneFile.Error(), editable(nowhere).Uneditable)
	server := &Server{Zones: s}
	serve(t, server, source)
	require.True(t, editable(server).Editable)
	s.readOnly = errors.New("read-only file system")
	server.writable.forget()
	answer := editable(server)
	require.False(t, answer.Editable)
	require.Equal(t, "read-only file system", answer.Uneditable)
}

// FuzzAnalytics: whatever a client sends is refused in one line, or becomes a text that the configuration reads back as the same.
func FuzzAnalytics(f *testing.F) {
	body, err := json.Marshal(yard())
	require.NoError(f, err)
	f.Add(body)
	f.Add([]byte(`{"width":640,"height":480,"zones":[{"name":"a: b","points":[{"x":1e-7,"y":0},{"x":640,"y":0},{"x":3,"y":480}],"min_time":1}]}`))
	f.Add([]byte(`{"zones":[{"name":"\u0000","points":[{"x":1e999}]}]}`))
	f.Add([]byte(`{"lines":[{"name":"- x\n","from":{"x":0.1,"y":0.2},"to":{"x":0.3,"y":0.2},"labels":["bolt"]}],"objects":{"score":{"":0.5}}}`))
	f.Add([]byte(`{"filter":{"limits":{"bolt":{"min_area":0.01}},"masks":[[{"x":0,"y":0},{"x":1,"y":0},{"x":1,"y":1}]]},"daily_reset":true}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := readAnalytics(bytes.NewReader(data), zone.Names{Labels: labels})
		if err != nil {
			require.NotContains(t, err.Error(), "\n")
			return
		}
		text, err := analyticsYAML(c)
		require.NoError(t, err)
		var back struct{ Analytics zone.Config }
		require.NoError(t, yaml.NewDecoder(strings.NewReader(text), yaml.Strict()).Decode(&back), "%s", text)
		require.NoError(t, back.Analytics.Validate(zone.Names{Labels: labels}))
		again, err := analyticsYAML(back.Analytics)
		require.NoError(t, err)
		require.Equal(t, text, again)
	})
}
