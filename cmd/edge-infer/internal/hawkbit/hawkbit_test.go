package hawkbit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patience is how long anything may take on a loaded machine.
const patience = time.Minute

// device stands for an updater.
type device struct {
	mu      sync.Mutex
	active  string
	offered []*update.Job
	asked   []string
}

func (d *device) Offer(job *update.Job) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.active != job.ID {
		d.active = job.ID
		d.offered = append(d.offered, job)
	}
}

func (d *device) Withdraw(_ update.Sender, id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.active == id
}

func (d *device) Asked(_ string, err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, fmt.Sprint(err))
}

func (d *device) jobs() []*update.Job {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.offered
}

// failure is the last error of a turn, "<nil>" for none.
func (d *device) failure() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) == 0 {
		return ""
	}
	return d.asked[len(d.asked)-1]
}

// server is the part of hawkBit that devices talk to, for one device, gate 1.
type server struct {
	*httptest.Server

	mu       sync.Mutex
	links    map[string]string // of the next answers to polls
	answers  map[string]string // by path behind the device's resource
	status   int               // of every answer, 0 for as usual
	received []string          // requests with a body: method, path and body
	tokens   map[string]bool
}

const resourcePath = "/DEFAULT/controller/v1/gate%201"

func newServer(t *testing.T) *server {
	s := &server{links: map[string]string{}, answers: map[string]string{}, tokens: map[string]bool{}}
	s.Server = httptest.NewServer(s)
	t.Cleanup(s.Close)
	return s
}

func (s *server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.tokens[r.Header.Get("Authorization")] = true
	path, ours := strings.CutPrefix(r.URL.EscapedPath(), resourcePath)
	switch {
	case s.status != 0:
		w.WriteHeader(s.status)
	case !ours:
		w.WriteHeader(http.StatusNotFound)
	case r.Method != http.MethodGet:
		body, _ := io.ReadAll(r.Body)
		s.received = append(s.received, r.Method+" "+path+" "+string(body))
	case path == "":
		links := map[string]link{}
		for name, to := range s.links {
			links[name] = link{to}
		}
		polling := map[string]any{"polling": map[string]string{"sleep": "00:00:01"}}
		_ = json.NewEncoder(w).Encode(map[string]any{"config": polling, "_links": links})
	default:
		answer, known := s.answers[path]
		if !known {
			w.WriteHeader(http.StatusNotFound)
		}
		_, _ = io.WriteString(w, answer)
	}
}

// set changes what the server answers.
func (s *server) set(change func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	change()
}

// waitFor waits for a request with a body that contains a text.
func (s *server) waitFor(t *testing.T, text string) {
	t.Helper()
	assert.Eventually(t, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, one := range s.received {
			if strings.Contains(one, text) {
				return true
			}
		}
		return false
	}, patience, time.Millisecond, text)
	if t.Failed() {
		t.Fatalf("received: %q", s.received)
	}
}

// action is the answer for an action with one file.
func action(id, more, file string) string {
	return fmt.Sprintf(`{"id": %q, "deployment": {"download": "forced", "update": "forced"%s, "chunks": [{"part": "bApp", "name": "belt",
		"artifacts": [{"filename": "belt.tar", "hashes": {"sha1": "a9", "sha256": "b8"}, "size": 3, "_links": %s}]}]}}`, id, more, file)
}

// running polls a server until the test ends.
func running(t *testing.T, s *server, settings config.HawkBit) (*Client, *device) {
	d := &device{}
	c := &Client{
		Device: "gate 1", Updater: d, Logger: slog.New(slog.DiscardHandler),
		Attributes: func() map[string]string { return map[string]string{"sw_version": "3"} },
	}
	if settings.URL == "" {
		settings.URL = s.URL + "/DEFAULT"
	}
	c.Open(settings)
	ctx, cancel := context.WithCancel(t.Context())
	var ended sync.WaitGroup
	ended.Go(func() { c.Run(ctx) })
	t.Cleanup(func() {
		cancel()
		ended.Wait()
	})
	return c, d
}

// TestAnActionIsCarriedOut: from the registration to its end, whose report reaches the server although that is away at first.
func TestAnActionIsCarriedOut(t *testing.T) {
	s := newServer(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	s.links["configData"] = s.URL + resourcePath + "/configData"
	c, d := running(t, s, config.HawkBit{TokenFile: token})
	s.waitFor(t, `PUT /configData {"data":{"sw_version":"3"},"mode":"merge"}`)
	file := `{"download": {"href": "` + s.URL + `/files/belt.tar"}}`
	s.set(func() {
		delete(s.links, "configData")
		s.links["deploymentBase"] = "gate%201/deploymentBase/7?c=-1" // relative to the device's resource
		s.answers["/deploymentBase/7"] = action("7", `, "maintenanceWindow": "unavailable"`, file)
	})
	time.Sleep(2 * time.Second) // of two polls; without a maintenance window nothing happens
	require.Empty(t, d.jobs())
	s.set(func() { s.answers["/deploymentBase/7"] = action("7", "", file) })
	require.Eventually(t, func() bool { return len(d.jobs()) == 1 }, patience, time.Millisecond, "%s", d.failure())
	job := *d.jobs()[0]
	assert.Equal(t, update.Job{
		Sender: update.HawkBit, ID: "7", From: s.URL + "/files/belt.tar", Contents: "sha256:b8", PlainHTTP: true, Transport: job.Transport,
	}, job)
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, job.From, http.NoBody)
	require.NoError(t, err)
	response, err := job.Transport.RoundTrip(request)
	require.NoError(t, err)
	require.NoError(t, response.Body.Close())

	c.Report("7", &payload.JobUpdate{Status: payload.JobInProgress, Details: payload.JobDetails{Phase: "trial"}})
	s.waitFor(t, `POST /deploymentBase/7/feedback {"id":"7","status":{"execution":"proceeding","result":{"finished":"none"},"details":["trial"]}}`)
	s.set(func() { s.status = http.StatusServiceUnavailable })
	agreement := 0.98
	c.Report("7", &payload.JobUpdate{
		Status: payload.JobSucceeded, Details: payload.JobDetails{Model: "belt", Version: 4, Agreement: &agreement},
	})
	c.Report("6", nil)
	require.Eventually(t, func() bool { return d.failure() == "report: the server returned 503 Service Unavailable" }, patience,
		time.Millisecond)
	s.set(func() { s.status = 0 })
	s.waitFor(t, `{"id":"7","status":{"execution":"closed","result":{"finished":"success"},`+
		`"details":["belt version 4 is installed (0.980 agreement with the model before)"]}}`)
	s.set(func() { assert.Equal(t, map[string]bool{"TargetToken secret": true}, s.tokens) })
	require.Eventually(t, func() bool { return d.failure() == "<nil>" }, patience, time.Millisecond)
	assert.Len(t, d.jobs(), 1)
}

// TestActionsAreCanceled: one that is being done when it has ended, another one at once.
func TestActionsAreCanceled(t *testing.T) {
	s := newServer(t)
	c, d := running(t, s, config.HawkBit{Gateway: true})
	s.set(func() {
		s.links["cancelAction"] = s.URL + resourcePath + "/cancelAction/8"
		s.answers["/cancelAction/8"] = `{"id": "8", "cancelAction": {"stopId": "7"}}`
	})
	s.waitFor(t, `POST /cancelAction/8/feedback {"id":"8","status":{"execution":"closed","result":{"finished":"success"},"details":["the action is not`)
	d.mu.Lock()
	d.active = "9"
	d.mu.Unlock()
	s.set(func() { s.answers["/cancelAction/8"] = `{"id": "10", "cancelAction": {"stopId": "9"}}` })
	time.Sleep(2 * time.Second) // of two polls
	s.set(func() {
		for _, one := range s.received {
			assert.NotContains(t, one, "/cancelAction/10")
		}
	})
	c.Report("9", &payload.JobUpdate{Status: payload.JobCanceled, Details: payload.JobDetails{Reason: "the job was withdrawn"}})
	s.waitFor(t, `POST /cancelAction/10/feedback {"id":"10","status":{"execution":"closed","result":{"finished":"success"},"details":["the job was`)
}

// TestRefusedActions are reported and not tried.
func TestRefusedActions(t *testing.T) {
	s := newServer(t)
	_, d := running(t, s, config.HawkBit{})
	for id, test := range map[string]struct{ answer, reason string }{
		"1": {`{"id": "1", "deployment": {"update": "forced", "chunks": []}}`, "the action has 0 files instead of one"},
		"2": {action("2", "", `{}`), "belt.tar\\\" of the action has no address"},
		"3": {action("3", "", `{"download": {"href": "file:///etc/passwd"}}`), "an address that is not of http or https"},
		"4": {action("4", "", `{"download": {"href": "https://me:secret@example.org/"}}`), "an address that is not of http or https"},
		"5": {action("5", "", `{"download": {"href": ":"}}`), "an address that cannot be read"},
	} {
		s.set(func() {
			s.links["deploymentBase"] = s.URL + resourcePath + "/deploymentBase/" + id
			s.answers["/deploymentBase/"+id] = test.answer
		})
		s.waitFor(t, `POST /deploymentBase/`+id+`/feedback {"id":"`+id+`","status":{"execution":"closed","result":{"finished":"failure"},`)
		s.waitFor(t, test.reason)
	}
	assert.Empty(t, d.jobs())
}

// TestServersThatAreWrong: each has an error that says what to do, and is asked again.
func TestServersThatAreWrong(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*server)
		want   string
	}{
		"token": {
			func(s *server) { s.status = http.StatusUnauthorized },
			"the server returned 401 Unauthorized (the token of hawkbit.token_file is not that of this device; hawkbit.gateway: true for a gateway's)",
		},
		"no such action": {func(s *server) {
			s.links["deploymentBase"] = s.URL + resourcePath + "/deploymentBase/1"
		}, "action: the server returned 404"},
		"an action without an id": {func(s *server) {
			s.links["deploymentBase"] = s.URL + resourcePath + "/deploymentBase/1"
			s.answers["/deploymentBase/1"] = "{}"
		}, "action: the server has sent an action without an id"},
		"another program": {func(s *server) {
			s.links["deploymentBase"] = s.URL + resourcePath + "/deploymentBase/1"
			s.answers["/deploymentBase/1"] = "<html>"
		}, "action: the answer is not that of a hawkBit server (hawkbit.url is https://HOST/TENANT)"},
		"a long answer": {func(s *server) {
			s.links["cancelAction"] = s.URL + resourcePath + "/cancelAction/1"
			s.answers["/cancelAction/1"] = strings.Repeat(" ", maxAnswer+1)
		}, "cancellation: an answer of more than 1048576 bytes"},
		"an answer that ends early": {func(s *server) { s.status = http.StatusFound }, "the server returned 302 Found"},
	} {
		t.Run(name, func(t *testing.T) {
			s := newServer(t)
			test.change(s)
			_, d := running(t, s, config.HawkBit{})
			require.Eventually(t, func() bool { return strings.HasPrefix(d.failure(), test.want) }, patience, time.Millisecond, "%s", d.failure())
			s.set(func() { s.status, s.links = 0, map[string]string{} })
			require.Eventually(t, func() bool { return d.failure() == "<nil>" }, patience, time.Millisecond)
		})
	}
}

// TestTheTokenStaysWithItsServer: it is not sent to where a file is, nor to where the server redirects.
func TestTheTokenStaysWithItsServer(t *testing.T) {
	s, other := newServer(t), newServer(t)
	token := filepath.Join(t.TempDir(), "token")
	require.NoError(t, os.WriteFile(token, []byte("secret"), 0o600))
	session := newSession(config.HawkBit{URL: s.URL + "/DEFAULT", TokenFile: token, Gateway: true}, "gate 1")
	defer session.close()
	for _, to := range []string{other.URL, s.URL} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, to, http.NoBody)
		require.NoError(t, err)
		response, err := session.client.Do(request)
		require.NoError(t, err)
		require.NoError(t, response.Body.Close())
		assert.Empty(t, request.Header)
	}
	assert.Equal(t, map[string]bool{"": true}, other.tokens)
	assert.Equal(t, map[string]bool{"GatewayToken secret": true}, s.tokens)
	session.settings.TokenFile = "none"
	_, err := session.get(t.Context(), session.base, &resource{})
	require.EqualError(t, err, "hawkbit.token_file: read password file: open none: no such file or directory")
}

// TestSettingsChange: another server is asked at once, and none if there is none.
func TestSettingsChange(t *testing.T) {
	one, two := newServer(t), newServer(t)
	c, d := running(t, one, config.HawkBit{})
	require.Eventually(t, func() bool { return d.failure() == "<nil>" }, patience, time.Millisecond)
	c.Set(config.HawkBit{URL: two.URL + "/DEFAULT"})
	require.Eventually(t, func() bool { return two.asked() }, patience, time.Millisecond)
	c.Set(config.HawkBit{})
	c.Report("1", &payload.JobUpdate{})
	assert.Nil(t, c.Updater.(*device).jobs())
}

func (s *server) asked() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.tokens) > 0
}

// TestPauses are those of the server, within limits.
func TestPauses(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"00:05:00": 5 * time.Minute, "00:00:00": time.Second, "99:00:00": 24 * time.Hour, "": defaultPause, "1:2": defaultPause,
		"-1:00:00": defaultPause, "01:01:01": time.Hour + time.Minute + time.Second,
	} {
		var r resource
		r.Config.Polling.Sleep = text
		assert.Equal(t, want, r.pause(), text)
	}
}

// FuzzAnswers: whatever a server sends, an action has an id, and a file an address of http or https.
func FuzzAnswers(f *testing.F) {
	f.Add([]byte(action("7", "", `{"download": {"href": "belt.tar"}}`)))
	f.Add([]byte(`{"id": "8", "cancelAction": {"stopId": "7"}}`))
	f.Add([]byte(`{"config": {"polling": {"sleep": "00:00:01"}}, "_links": {"deploymentBase": {"href": "x"}}}`))
	from := &url.URL{Scheme: "https", Host: "example.org", Path: "/DEFAULT"}
	f.Fuzz(func(t *testing.T, data []byte) {
		var r resource
		if parse(data, &r) == nil {
			require.Positive(t, r.pause())
		}
		var c cancellation
		if parse(data, &c) == nil {
			require.NotEmpty(t, c.Cancel.Stop)
		}
		var d deployment
		if parse(data, &d) != nil {
			return
		}
		require.NotEmpty(t, d.ID)
		file, err := d.bundle()
		if err != nil {
			return
		}
		require.Less(t, len(file.contents()), len(data)+10)
		to, err := file.address(from)
		if err == nil && to.Scheme != "https" && to.Scheme != "http" {
			err = errors.New(to.Scheme)
			require.NoError(t, err)
		}
	})
}
