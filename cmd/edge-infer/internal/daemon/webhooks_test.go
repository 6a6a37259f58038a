package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/jpeg"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/rclone/gofakes3"
	"github.com/rclone/gofakes3/s3mem"
	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestWebhooksOfARun: the events of a run arrive at a receiver that verifies them, with links to what is stored, while another one hangs;
// both are in status and metrics, snapshots are uploaded, and no secret is in the output.
func TestWebhooksOfARun(t *testing.T) {
	t.Parallel()
	const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
	var mu sync.Mutex
	kinds, frames := map[string]int{}, []string{}
	receiver := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		hook, err := standardwebhooks.NewWebhook(secret)
		assert.NoError(t, err)
		assert.NoError(t, hook.Verify(body, r.Header))
		var m struct {
			Type string
			Data struct{ Object, Frame string }
		}
		assert.NoError(t, json.Unmarshal(body, &m))
		mu.Lock()
		defer mu.Unlock()
		kinds[m.Type]++
		if m.Type == "event.end" && m.Data.Frame != "" {
			frames = append(frames, m.Data.Frame)
		}
	}))
	defer receiver.Close()
	end := make(chan struct{})
	hanging := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-end }))
	defer hanging.Close()
	defer close(end)
	storage := s3mem.New()
	require.NoError(t, storage.CreateBucket(t.Context(), "clips"))
	s3 := httptest.NewServer(gofakes3.New(storage, gofakes3.WithV4Auth(map[string]string{"hunt-id": "hunt-key"})).Server())
	defer s3.Close()
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, `
webhooks:
  - {name: alarm, url: %q, secret: %q}
  - {name: slow, url: %q, secret: %q}
upload: {endpoint: %q, bucket: clips}
`, receiver.URL+"/hunt-path", secret, hanging.URL+"/hunt-path", secret, s3.URL), 0o600))
	p := programtest.StartWith(t, []string{"AWS_ACCESS_KEY_ID=hunt-id", "AWS_SECRET_ACCESS_KEY=hunt-key"}, "--config", file,
		"--camera", "belt=demo?width=320&height=240&fps=15", "--mqtt", "off", "--web", "127.0.0.1:0")
	page := p.PrintedAfter("web page at ")
	var frame string
	require.Eventually(t, func() bool {
		mu.Lock()
		defer mu.Unlock()
		if kinds["event.new"] == 0 || len(frames) == 0 {
			return false
		}
		frame = frames[0]
		return true
	}, programtest.Patience, 50*time.Millisecond, "no new and end with a frame: %v", kinds)
	visitor := programtest.Visitor(t)
	code, image := programtest.Get(t, visitor, page+strings.TrimPrefix(frame, "/"))
	require.Equal(t, http.StatusOK, code)
	require.Equal(t, "\xff\xd8", string(image[:2]))
	require.Eventually(t, func() bool {
		all, err := storage.ListBucket(t.Context(), "clips", nil, gofakes3.ListBucketPage{})
		require.NoError(t, err)
		return len(all.Contents) > 0 && strings.HasPrefix(all.Contents[0].Key, "belt/") && strings.HasSuffix(all.Contents[0].Key, ".jpg")
	}, programtest.Patience, 50*time.Millisecond, "no snapshot in the bucket")
	_, metrics := programtest.Get(t, visitor, page+"metrics")
	require.Contains(t, string(metrics), `edge_infer_webhook_events_total{outcome="delivered",webhook="alarm"}`)
	require.Contains(t, string(metrics), `edge_infer_webhook_events_total{outcome="delivered",webhook="slow"} 0`)
	_, status := programtest.Get(t, visitor, page+"api/status")
	require.Contains(t, string(status), `"name":"slow"`)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	mu.Lock()
	defer mu.Unlock()
	require.Zero(t, kinds["event.update"])
	for _, text := range []string{p.Stderr.String(), string(status), string(metrics)} {
		require.NotContains(t, text, "hunt")
		require.NotContains(t, text, strings.TrimPrefix(secret, "whsec_"))
	}
}

// TestNotificationsOfARun: a notification of ntfy has the camera, a sentence and the image of the object.
func TestNotificationsOfARun(t *testing.T) {
	t.Parallel()
	type notification struct {
		title, text string
		image       []byte
	}
	all := make(chan notification, 1000)
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		assert.NoError(t, err)
		all <- notification{r.Header.Get("Title"), r.Header.Get("Message"), body}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "edge-infer.yaml")
	require.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "webhooks:\n  - {name: phone, url: %q, format: ntfy, filter: {events: [new]}}\n",
		server.URL+"/topic"), 0o600))
	p := programtest.StartWith(t, nil, "--config", file, "--camera", "belt=demo?width=320&height=240&fps=5", "--mqtt", "off", "--json")
	n := <-all
	for n.text == "" { // no image was stored in time
		n = <-all
	}
	require.Equal(t, "belt", n.title)
	require.Regexp(t, `^[a-z]+, \d+ %$`, n.text)
	_, err := jpeg.DecodeConfig(bytes.NewReader(n.image))
	require.NoError(t, err)
	require.NoError(t, p.Stop(syscall.SIGTERM), "%s", p.Stderr)
}
