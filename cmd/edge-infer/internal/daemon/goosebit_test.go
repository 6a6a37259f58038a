package daemon

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// goosebit is a real update server. Its interface for people is used as they use it, for devices as programs do.
type goosebit struct {
	t       *testing.T
	address string // http://HOST:PORT
	token   string // of a person
}

// startGoosebit starts the server that EDGE_INFER_TEST_GOOSEBIT has, see make hawkbit-check.
func startGoosebit(t *testing.T) *goosebit {
	installed := os.Getenv("EDGE_INFER_TEST_GOOSEBIT")
	if installed == "" {
		t.Skip("no goosebit: make hawkbit-check")
	}
	dir, port := t.TempDir(), programtest.FreePort(t)
	server := exec.CommandContext(t.Context(), filepath.Join(installed, "venv/bin/python"),
		programtest.Project("cmd/edge-infer/internal/hawkbit/goosebit/server.py"), fmt.Sprint(port))
	server.Env = append(os.Environ(), "GOOSEBIT_DB_URI=sqlite://"+filepath.Join(dir, "db.sqlite3"), "GOOSEBIT_POLL_TIME=00:00:02",
		"GOOSEBIT_ARTIFACTS_DIR="+filepath.Join(dir, "artifacts"))
	server.Dir = dir
	log, err := os.Create(filepath.Join(dir, "log"))
	require.NoError(t, err)
	server.Stdout, server.Stderr = log, log
	require.NoError(t, server.Start())
	t.Cleanup(func() {
		_ = server.Process.Signal(syscall.SIGKILL)
		_ = server.Wait()
		_ = log.Close()
	})
	g := &goosebit{t: t, address: fmt.Sprintf("http://127.0.0.1:%d", port)}
	var login struct {
		Token string `json:"access_token"`
	}
	require.Eventually(t, func() bool {
		response, err := http.PostForm(g.address+"/setup", url.Values{"username": {"admin@example.org"}, "password": {"a password"}})
		if err != nil {
			return false
		}
		defer response.Body.Close()
		return json.NewDecoder(response.Body).Decode(&login) == nil && login.Token != ""
	}, programtest.Patience, 100*time.Millisecond)
	g.token = login.Token
	return g
}

// ask performs a request of a person and reads the answer.
func (g *goosebit) ask(method, path, kind string, body io.Reader, answer any) {
	request, err := http.NewRequestWithContext(g.t.Context(), method, g.address+"/api/v1/"+path, body)
	require.NoError(g.t, err)
	request.Header.Set("Authorization", "Bearer "+g.token)
	request.Header.Set("Content-Type", kind)
	response, err := http.DefaultClient.Do(request)
	require.NoError(g.t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	require.NoError(g.t, err)
	require.Equal(g.t, http.StatusOK, response.StatusCode, "%s", text)
	require.NoError(g.t, json.Unmarshal(text, answer), "%s", text)
}

func (g *goosebit) change(method, path string, body any) {
	text, err := json.Marshal(body)
	require.NoError(g.t, err)
	g.ask(method, path, "application/json", bytes.NewReader(text), new(struct{}))
}

// upload gives the server an image and returns its id there.
func (g *goosebit) upload(path string) (id int) {
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	part, err := form.CreateFormFile("file", filepath.Base(path))
	require.NoError(g.t, err)
	data, err := os.ReadFile(path)
	require.NoError(g.t, err)
	_, err = part.Write(data)
	require.NoError(g.t, err)
	require.NoError(g.t, form.Close())
	var answer struct{ ID int }
	g.ask(http.MethodPut, "software", form.FormDataContentType(), &body, &answer)
	return answer.ID
}

// rollOut gives a feed of devices a version, and waits until each of them has ended it in a state.
func (g *goosebit) rollOut(name, feed string, software int, version, state string, devices ...string) {
	g.change(http.MethodPut, "rollouts", map[string]any{"name": name, "feed": feed, "software_id": software})
	var left []deviceState
	require.Eventually(g.t, func() bool {
		left = nil
		for _, d := range g.devices() {
			if slices.Contains(devices, d.ID) && (d.State != state || d.Version != version) {
				left = append(left, d)
			}
		}
		return len(left) == 0
	}, 10*programtest.Patience, 500*time.Millisecond, "%s: %+v", name, &left)
}

// deviceState is a device as the server shows it.
type deviceState struct {
	ID      string `json:"id"`
	Version string `json:"sw_version"`
	State   string `json:"last_state"`
}

func (g *goosebit) devices() []deviceState {
	var answer struct{ Devices []deviceState }
	g.ask(http.MethodGet, "devices", "application/json", http.NoBody, &answer)
	return answer.Devices
}

// TestGoosebitStagesBundles: to real daemons whose connections are cut. A poisoned bundle gets no further than the first device; a good one
// reaches all, and no frame is lost.
func TestGoosebitStagesBundles(t *testing.T) {
	g := startGoosebit(t)
	count := countOf(t, "EDGE_INFER_DAEMONS", 3)
	p := newPublisher(t)
	p.publish(nil)
	cuts := programtest.NewCuts(t, strings.TrimPrefix(g.address, "http://"), 0.3, time.Second)
	file := filepath.Join(p.dir, "edge-infer.yaml")
	settings := fmt.Sprintf("model: {path: belt}\nbundle: {keys: [%s], trial: 2s}\nhawkbit: {url: \"http://%s/DEFAULT\"}\n", p.public,
		cuts.Address)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	all := make([]*updatedDaemon, count)
	for i := range all {
		all[i] = p.startDaemon(fmt.Sprintf("gate-%d", i), file, "--mqtt", "off")
	}
	require.Eventually(t, func() bool {
		registered := 0
		for _, d := range g.devices() {
			if d.State == "Registered" {
				registered++
			}
		}
		return registered == count
	}, programtest.Patience, time.Second, "%+v", g.devices())
	rest := []string{}
	for i := 1; i < count; i++ {
		rest = append(rest, fmt.Sprintf("gate-%d", i))
	}
	g.change(http.MethodPatch, "devices", map[string]any{"devices": []string{"gate-0"}, "feed": "first"})
	g.change(http.MethodPatch, "devices", map[string]any{"devices": rest, "feed": "rest"})

	begun := time.Now()
	p.publish(blind)
	g.rollOut("poisoned", "first", g.upload(p.image()), "1", "Error", "gate-0")
	t.Logf("poisoned: %v", time.Since(begun))

	begun = time.Now()
	p.publish(nil)
	good := g.upload(p.image())
	g.change(http.MethodPatch, "devices", map[string]any{"devices": []string{"gate-0"}, "force_update": true}) // it has failed before
	g.rollOut("good", "first", good, "3", "Finished", "gate-0")
	g.rollOut("good for all", "rest", good, "3", "Finished", rest...)
	t.Logf("good: %v on %d devices; %d of %d connections were cut, %d bytes", time.Since(begun), count, cuts.Cut.Load(),
		cuts.Connections.Load(), cuts.Bytes.Load())
	for _, d := range all {
		assert.EqualValues(t, p.version, bundle.Installed(d.store, "belt").Version)
		d.endsWithAllFrames(t)
	}
}

// image returns the newest bundle as an image of SWUpdate.
func (p *publisher) image() string {
	path := filepath.Join(p.dir, fmt.Sprintf("belt-%d.swu", p.version))
	_, err := (&bundle.Make{
		Model: filepath.Join(p.dir, "belt.onnx"), Name: "belt", Version: int64(p.version), Sign: []string{p.secret}, Output: path,
	}).Run(p.t.Context())
	require.NoError(p.t, err)
	return path
}
