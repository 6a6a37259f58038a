package daemon

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// made returns the bytes of a bundle of the demo model.
func (p *publisher) made(version int, change func(*bundle.Make)) []byte {
	m := &bundle.Make{
		Model: filepath.Join(p.dir, "belt.onnx"), Name: "belt", Version: int64(version), Sign: []string{p.secret},
		Output: filepath.Join(p.t.TempDir(), "belt.tar"),
	}
	if change != nil {
		change(m)
	}
	_, err := m.Run(p.t.Context())
	require.NoError(p.t, err)
	data, err := os.ReadFile(m.Output)
	require.NoError(p.t, err)
	return data
}

// rewritten returns an archive with each entry as change leaves it; entries without a name are left out.
func rewritten(t *testing.T, data []byte, change func(header *tar.Header, contents []byte) []byte) []byte {
	var out bytes.Buffer
	from, to := tar.NewReader(bytes.NewReader(data)), tar.NewWriter(&out)
	for {
		header, err := from.Next()
		if err == io.EOF { //nolint:errorlint // as package tar says
			break
		}
		require.NoError(t, err)
		contents, err := io.ReadAll(from)
		require.NoError(t, err)
		contents = change(header, contents)
		header.Size = int64(len(contents))
		require.NoError(t, to.WriteHeader(header))
		_, err = to.Write(contents)
		require.NoError(t, err)
	}
	require.NoError(t, to.Close())
	return out.Bytes()
}

// largest returns the name of the largest entry, which is the model.
func largest(t *testing.T, data []byte) (name string) {
	most := int64(0)
	rewritten(t, data, func(header *tar.Header, contents []byte) []byte {
		if header.Size > most {
			most, name = header.Size, header.Name
		}
		return contents
	})
	return name
}

// TestAttacksByJobs: whoever may give a running daemon jobs gets nothing into it that no key has signed, and nothing older. Each is refused
// with one line, and the model runs on.
func TestAttacksByJobs(t *testing.T) {
	t.Parallel()
	p, stranger := newPublisher(t), newPublisher(t)
	p.publish(nil)
	old := p.made(1, nil)
	p.publish(nil)
	good := p.made(3, nil)
	model := largest(t, good)
	changed := func(header *tar.Header, contents []byte) []byte {
		if header.Name == model {
			contents = bytes.Clone(contents)
			contents[len(contents)/2] ^= 1
		}
		return contents
	}
	var bomb bytes.Buffer
	zip := gzip.NewWriter(&bomb)
	for range 64 {
		_, err := zip.Write(make([]byte, 1<<20))
		require.NoError(t, err)
	}
	require.NoError(t, zip.Close())

	files := map[string][]byte{
		"/replayed.tar": old, "/expired.tar": p.made(3, func(m *bundle.Make) { m.Expires = "2020-01-01" }),
		"/wrong-key.tar": p.made(3, func(m *bundle.Make) { m.Sign = []string{stranger.secret} }),
		"/unsigned.tar":  p.made(3, func(m *bundle.Make) { m.Sign = nil }),
		"/swapped.tar":   rewritten(t, good, changed), "/truncated.tar": good[:len(good)/2], "/compressed.tar": bomb.Bytes(),
		"/path.tar": rewritten(t, good, func(header *tar.Header, contents []byte) []byte {
			if header.Name == model {
				header.Name = "../../" + filepath.Base(model)
			}
			return contents
		}),
	}
	handler := http.NewServeMux()
	for path, data := range files {
		handler.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(data) })
	}
	handler.HandleFunc("/oversize.tar", func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Content-Length", "5000000000") })
	handler.HandleFunc("/bomb.tar", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Encoding", "gzip")
		_, _ = w.Write(bomb.Bytes())
	})
	handler.HandleFunc("/elsewhere.tar", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "http://files.example/belt.tar", http.StatusFound)
	})
	lies := registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0)))
	lying := false
	handler.HandleFunc("/v2/", func(w http.ResponseWriter, r *http.Request) {
		if lying && r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, filepath.Base(model)) {
			_, _ = w.Write(make([]byte, 1000))
			return
		}
		lies.ServeHTTP(w, r)
	})
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	location := strings.TrimPrefix(server.URL, "http://") + "/models/belt:3"
	goodFile := filepath.Join(t.TempDir(), "good.tar")
	require.NoError(t, os.WriteFile(goodFile, good, 0o600))
	_, err := (&bundle.Push{File: goodFile, To: bundle.Source{Location: location}}).Run(t.Context())
	require.NoError(t, err)
	lying = true

	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	updates := programtest.Subscribe(t, port, "edge-infer/hall/jobs/+/update")
	file := filepath.Join(p.dir, "edge-infer.yaml")
	settings := fmt.Sprintf("model: {path: belt}\nbundle: {keys: [%s], trial: 1s}\n", p.public)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	d := p.startDaemon("hall", file, "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port))

	for job, attack := range map[string]struct{ from, digest, reason string }{
		"replayed":           {reason: "version 1 of belt is older than the installed version 2 ("},
		"expired":            {reason: "version 3 of belt expired on 2020-01-01 ("},
		"wrong-key":          {reason: "it is signed by key "},
		"unsigned":           {reason: "it is not signed, and a key is set"},
		"swapped":            {reason: "it was changed or damaged"},
		"truncated":          {reason: "it is cut off"},
		"compressed":         {reason: "it is compressed: a bundle is a plain tar file"},
		"bomb":               {reason: "it is not a bundle"},
		"path":               {reason: "does not belong into a bundle"},
		"oversize":           {reason: "5000000000 bytes are announced, the limit is"},
		"elsewhere":          {reason: "http:// to files.example is neither encrypted nor authenticated"},
		"lying-registry":     {from: location, reason: "bytes are announced instead of"},
		"other-digest":       {from: server.URL + "/replayed.tar", digest: "sha256:0", reason: "that of the job sha256:0"},
		"file-of-the-device": {from: "/etc/passwd", reason: "it is neither an https:// address nor HOST/NAME:TAG of a registry"},
		"model-of-it":        {from: "belt", reason: "it is neither an https:// address nor HOST/NAME:TAG of a registry"},
		"unencrypted":        {from: "http://files.example/belt.tar", reason: "http:// to files.example is neither encrypted nor authenticated"},
	} {
		if attack.from == "" {
			attack.from = server.URL + "/" + job + ".tar"
		}
		text, err := json.Marshal(payload.NextJob{Execution: &payload.JobExecution{
			ID: job, Status: payload.JobQueued,
			Document: payload.JobDocument{Operation: payload.UpdateModel, From: attack.from, Digest: attack.digest},
		}})
		require.NoError(t, err)
		require.NoError(t, exec.Command(testtool.Program(t, "mosquitto_pub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-q", "1", "-r",
			"-t", "edge-infer/hall/jobs/notify-next", "-m", string(text)).Run())
		var report string
		for report == "" {
			select {
			case line := <-updates:
				if strings.Contains(line, "jobs/"+job+"/update {") && !strings.Contains(line, string(payload.JobInProgress)) {
					report = line
				}
			case <-time.After(programtest.Patience):
				require.FailNow(t, "no report", "%s: %s", job, d.Stderr)
			}
		}
		var update payload.JobUpdate
		_, message, _ := strings.Cut(report, " ")
		require.NoError(t, json.Unmarshal([]byte(message), &update))
		assert.Equal(t, payload.JobRejected, update.Status, job)
		assert.Contains(t, update.Details.Reason, attack.reason, job)
		assert.NotContains(t, update.Details.Reason, "\n", job)
		assert.EqualValues(t, 2, bundle.Installed(d.store, "belt").Version, job)
		assert.Empty(t, d.store.Candidate("belt"), job)
	}
	require.NoError(t, d.store.Verify("belt"))
	d.endsWithAllFrames(t)
}
