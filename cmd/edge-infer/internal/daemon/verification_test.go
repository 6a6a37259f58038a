package daemon

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// verifier is a verification service: it drops bolts, calls nuts M8 and confirms the rest.
type verifier struct {
	*httptest.Server
	hangs atomic.Bool

	mu    sync.Mutex
	asked map[string]string // labels by object
}

func newVerifier(t *testing.T, secret string) *verifier {
	hook, err := standardwebhooks.NewWebhook(secret)
	require.NoError(t, err)
	v := &verifier{asked: map[string]string{}}
	v.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // killed
		}
		assert.NoError(t, hook.Verify(body, r.Header))
		var q struct {
			Data struct {
				Object, Label string
				Image         []byte
			}
		}
		assert.NoError(t, json.Unmarshal(body, &q))
		assert.True(t, len(q.Data.Image) == 0 || strings.HasPrefix(string(q.Data.Image), "\xff\xd8"))
		v.mu.Lock()
		v.asked[q.Data.Object] = q.Data.Label
		v.mu.Unlock()
		if v.hangs.Load() {
			<-r.Context().Done() // killed
			return
		}
		switch q.Data.Label {
		case "bolt":
			fmt.Fprint(w, `{"verdict": "drop"}`)
		case "nut":
			fmt.Fprint(w, `{"verdict": "relabel", "label": "M8"}`)
		default:
			fmt.Fprint(w, `{"verdict": "confirm"}`)
		}
	}))
	t.Cleanup(v.Close)
	return v
}

// others returns the objects that were asked about and are no bolts.
func (v *verifier) others() (objects []string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	for object, label := range v.asked {
		if label != "bolt" {
			objects = append(objects, object)
		}
	}
	return objects
}

// TestEventsAreVerified: while the service hangs, frames go on and no event is published. After a kill the events that were held are asked
// about again and published. What the service drops is in no event, row or snapshot, while detections and counts go on.
func TestEventsAreVerified(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	service := newVerifier(t, secret)
	service.hangs.Store(true)
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	messages := programtest.Subscribe(t, port, "edge-infer/gate/#")
	directory := t.TempDir()
	file := filepath.Join(directory, "edge-infer.yaml")
	settings := fmt.Sprintf("name: gate\nverify: {url: %q, secret: %q, timeout: 30s}\n", service.URL+"/hunt-path", secret)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	page := fmt.Sprintf("http://127.0.0.1:%d/", programtest.FreePort(t))
	start := func() *programtest.Program {
		return programtest.StartWith(t, []string{"XDG_STATE_HOME=" + directory}, "--config", file, "--camera",
			"belt=demo?width=320&height=240&fps=10", "--mqtt", fmt.Sprintf("127.0.0.1:%d", port), "--web", strings.Trim(page, "htp:/"), "--json")
	}
	p := start()
	for len(service.others()) == 0 {
		_, more := p.Frame()
		require.True(t, more)
	}
	first := service.others()
	readFrames(t, p, 30) // nobody waits for the service
	require.Eventually(t, func() bool {
		paths, err := filepath.Glob(filepath.Join(directory, "edge-infer", "gate", "verify", "*"))
		require.NoError(t, err)
		for _, path := range paths {
			text, err := os.ReadFile(path)
			require.NoError(t, err)
			if strings.Contains(string(text), first[0]) {
				return true
			}
		}
		return false
	}, programtest.Patience, programtest.Patience/1000, "the event is not on disk")
	require.NoError(t, p.Command.Process.Kill())
	service.hangs.Store(false)
	p = start()
	go p.Discard()
	missing := map[string]bool{}
	for _, object := range first {
		missing[object] = true
	}
	ids, kinds, topics := map[string]bool{}, map[string]int{}, map[string]bool{}
	detected, stored := false, false
	visitor := programtest.Visitor(t)
	for enough := false; !enough; {
		name, text, _ := strings.Cut(<-messages, " ")
		topics[name] = true
		detected = detected || strings.HasSuffix(name, "/detections") && strings.Contains(text, `"bolt"`)
		if !strings.HasSuffix(name, "/events") {
			continue
		}
		var e struct {
			ID, Type, Label, Object string
			Verified                *bool
		}
		require.NoError(t, json.Unmarshal([]byte(text), &e))
		require.NotNil(t, e.Verified, text)
		require.True(t, *e.Verified, text)
		require.NotContains(t, []string{"bolt", "nut"}, e.Label)
		require.False(t, ids[e.ID], "twice: %s", text)
		ids[e.ID] = true
		delete(missing, e.Object)
		kinds[e.Type+" "+e.Label]++
		if _, list := programtest.Get(t, visitor, page+"api/events?limit=1000"); strings.Contains(string(list), `"M8"`) {
			require.NotContains(t, string(list), `"bolt"`)
			require.Contains(t, string(list), `"verified":true`)
			stored = true
		}
		enough = len(missing) == 0 && kinds["new M8"] > 0 && kinds["end M8"] > 0 && detected && stored
	}
	require.True(t, topics["edge-infer/gate/belt/count/bolt"])
	require.False(t, topics["edge-infer/gate/belt/snapshot/bolt"])
	require.False(t, topics["edge-infer/gate/belt/snapshot/nut"])
	_, metrics := programtest.Get(t, visitor, page+"metrics")
	require.Regexp(t, `edge_infer_verify_objects_total{outcome="dropped"} [1-9]`, string(metrics))
	_, status := programtest.Get(t, visitor, page+"api/status")
	require.Contains(t, string(status), `"relabelled":`)
	require.NoError(t, p.Stop(syscall.SIGTERM), "%s", p.Stderr)
	for _, text := range []string{p.Stderr.String(), string(status), string(metrics)} {
		require.NotContains(t, text, "hunt")
		require.NotContains(t, text, strings.TrimPrefix(secret, "whsec_"))
	}
}
