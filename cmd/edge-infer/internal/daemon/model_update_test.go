package daemon

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"aead.dev/minisign"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// publisher makes the bundles of the model belt, whose newest one the daemon finds at a path.
type publisher struct {
	t              *testing.T
	dir            string
	public, secret string // key, file
	version        int
	data           string // labelled images for the next bundles, empty for none
}

func newPublisher(t *testing.T) *publisher {
	public, secret, err := minisign.GenerateKey(nil)
	require.NoError(t, err)
	text, err := secret.MarshalText()
	require.NoError(t, err)
	p := &publisher{t: t, dir: t.TempDir(), public: public.String()}
	p.secret = filepath.Join(p.dir, "secret.key")
	require.NoError(t, os.WriteFile(p.secret, text, 0o600))
	return p
}

// newest is where the newest bundle is.
func (p *publisher) newest() string { return filepath.Join(p.dir, "belt.tar") }

// publish makes the next version, from the demo model as change leaves it.
func (p *publisher) publish(change func(*onnx.Model)) {
	model, err := onnx.Parse("demo", demo.Model())
	require.NoError(p.t, err)
	p.version++
	model.SetMetadata("release", strconv.Itoa(p.version))
	if change != nil {
		change(model)
	}
	file, made := filepath.Join(p.dir, "belt.onnx"), filepath.Join(p.dir, "made.tar")
	require.NoError(p.t, model.Save(file))
	_, err = (&bundle.Make{
		Model: file, Name: "belt", Version: int64(p.version), Sign: []string{p.secret}, Data: p.data,
		Output: made,
	}).Run(p.t.Context())
	require.NoError(p.t, err)
	require.NoError(p.t, os.Rename(made, p.newest()))
}

// blind makes a model that finds nothing.
func blind(m *onnx.Model) {
	for _, tensor := range m.Proto.Graph.Initializer {
		if len(tensor.Dims) == 4 {
			clear(tensor.RawData)
			clear(tensor.FloatData)
		}
	}
}

// updated is the part of the page's status about updates.
type updated struct {
	Engine struct{ Model string }
	Update update.Status
}

// updating starts a daemon that updates belt, and returns how it does.
func (p *publisher) updating(cache, state string) (*programtest.Program, func() updated) {
	t := p.t
	page := fmt.Sprintf("127.0.0.1:%d", programtest.FreePort(t))
	file := filepath.Join(p.dir, "edge-infer.yaml")
	settings := fmt.Sprintf("name: hall\nmodel: {path: belt}\nbundle: {from: %q, keys: [%s], every: 1s, trial: 1s}\n", p.newest(), p.public)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))
	run := programtest.StartWith(t, []string{"CACHE_DIRECTORY=" + cache, "XDG_STATE_HOME=" + state}, "--config", file,
		"--camera", "belt=demo?width=320&height=240&fps=10", "--mqtt", "off", "--web", page, "--json")
	client := programtest.Visitor(t)
	return run, func() (u updated) {
		response, err := client.Get("http://" + page + "/api/status")
		if err != nil {
			return u
		}
		defer response.Body.Close()
		if response.StatusCode == http.StatusOK {
			assert.NoError(t, json.NewDecoder(response.Body).Decode(&u))
		}
		return u
	}
}

// install installs the newest bundle as a person does.
func (p *publisher) install(store catalogue.Store) {
	keys, err := bundle.ReadKeys([]string{p.public})
	require.NoError(p.t, err)
	_, err = (&bundle.Pull{Source: bundle.Source{Location: p.newest()}, Store: store, Keys: keys}).Run(p.t.Context())
	require.NoError(p.t, err)
}

// TestModelsAreUpdatedWhileCamerasRun: a good model is installed without losing a frame. One that finds nothing, one with other classes and
// one that cannot be opened are refused, once each, and the model before runs on; a better one after them is installed.
func TestModelsAreUpdatedWhileCamerasRun(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	cache, state := t.TempDir(), t.TempDir()
	store := catalogue.Store{Dir: filepath.Join(cache, "models")}
	p.publish(nil)
	p.install(store)
	run, status := p.updating(cache, state)
	run.Frame()
	totals := make(chan programtest.Totals, 1)
	go func() {
		_, stats := run.Rest()
		totals <- stats
	}()
	outcome := func() (last *update.Outcome) {
		require.Eventually(t, func() bool {
			last = status().Update.Last
			return last != nil && last.Version == int64(p.version)
		}, programtest.Patience, 50*time.Millisecond, "%s", run.Stderr)
		return last
	}
	installed := func() int64 { return bundle.Installed(store, "belt").Version }

	p.publish(nil)
	good := outcome()
	require.True(t, good.Installed(), good.Reason)
	require.NotNil(t, good.Agreement)
	assert.InDelta(t, 1, *good.Agreement, 0.01)
	assert.EqualValues(t, 2, installed())
	assert.Equal(t, store.Path("belt"), status().Engine.Model)

	p.publish(blind)
	refused := outcome()
	assert.False(t, refused.Installed())
	assert.Contains(t, refused.Reason, "it finds other objects than the running model: 0.000 agreement")
	p.publish(func(m *onnx.Model) { m.SetMetadata("names", "{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e', 5: 'f'}") })
	assert.Contains(t, outcome().Reason, "it has other class names")
	p.publish(func(m *onnx.Model) { m.Proto.Graph.Node = m.Proto.Graph.Node[1:] })
	assert.Contains(t, outcome().Reason, "the new model cannot be opened")
	assert.EqualValues(t, 2, installed())
	assert.Empty(t, store.Candidate("belt"))
	assert.Equal(t, store.Path("belt"), status().Engine.Model)

	p.data = programtest.Scenes(t, 4, 7)
	p.publish(nil)
	last := outcome()
	require.True(t, last.Installed(), last.Reason)
	require.NotNil(t, last.Labelled)
	assert.Equal(t, 4, last.Labelled.Images)
	assert.InDelta(t, last.Labelled.Running, last.Labelled.Candidate, 1e-9)
	assert.Greater(t, last.Labelled.Candidate, 0.5)
	assert.EqualValues(t, p.version, installed())
	require.NoError(t, run.Command.Process.Signal(syscall.SIGTERM))
	camera := (<-totals).Cameras[0]
	assert.Zero(t, camera.Failed)
	assert.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
	remembered, err := update.ReadOutcome(filepath.Join(state, "edge-infer", "hall"))
	require.NoError(t, err)
	assert.Equal(t, last.Digest, remembered.Digest)
}

// countOf returns the number in an environment variable, for longer runs by hand, or the usual one.
func countOf(t *testing.T, variable string, usual int) int {
	text := os.Getenv(variable)
	if text == "" {
		return usual
	}
	count, err := strconv.Atoi(text)
	require.NoError(t, err)
	return count
}

// TestPowerCutsLeaveAGoodModel: whenever the power fails during an update, the next start runs a model that finds the objects, and the
// update is completed.
func TestPowerCutsLeaveAGoodModel(t *testing.T) {
	t.Parallel()
	cuts := countOf(t, "EDGE_INFER_POWER_CUTS", 4)
	p := newPublisher(t)
	cache, state := t.TempDir(), t.TempDir()
	store := catalogue.Store{Dir: filepath.Join(cache, "models")}
	p.publish(nil)
	p.install(store)
	random := rand.New(rand.NewPCG(1, 2))
	phases, versions := map[update.Phase]int{}, map[int64]bool{}
	finds := func(run *programtest.Program) {
		frame, more := run.Frame()
		for more && len(frame.Detections) == 0 {
			frame, more = run.Frame()
		}
		require.True(t, more, "%s", run.Stderr)
		run.Discard()
	}
	for cut := range cuts {
		switch cut % 4 { // the others go on with what was begun
		case 0:
			p.publish(blind)
		case 2:
			p.publish(nil)
		}
		run, status := p.updating(cache, state)
		finds(run)
		time.Sleep(time.Duration(random.IntN(6000)) * time.Millisecond)
		phases[status().Update.Phase]++
		require.NoError(t, run.Command.Process.Signal(syscall.SIGKILL))
		<-run.Done
		require.NoError(t, store.Verify("belt"), "cut %d", cut)
		versions[bundle.Installed(store, "belt").Version] = true
	}
	p.publish(nil)
	run, status := p.updating(cache, state)
	finds(run)
	require.Eventually(t, func() bool { return status().Update.Version == int64(p.version) }, programtest.Patience, 50*time.Millisecond,
		"%s", run.Stderr)
	t.Logf("%d cuts in these phases: %v; %d versions were in force after them", cuts, phases, len(versions))
}

// updatedDaemon is a daemon that has installed the first bundle of a publisher.
type updatedDaemon struct {
	*programtest.Program
	store  catalogue.Store
	state  string // directory
	totals chan programtest.Totals
}

// startDaemon starts a daemon of that name with a cache of its own, and waits for its first frame.
func (p *publisher) startDaemon(name, file string, arguments ...string) *updatedDaemon {
	cache := p.t.TempDir()
	d := &updatedDaemon{store: catalogue.Store{Dir: filepath.Join(cache, "models")}, totals: make(chan programtest.Totals, 1)}
	p.install(d.store)
	home := p.t.TempDir()
	d.state = filepath.Join(home, "edge-infer", name)
	d.Program = programtest.StartWith(p.t, []string{"CACHE_DIRECTORY=" + cache, "XDG_STATE_HOME=" + home},
		append([]string{
			"--config", file, "--name", name, "--camera", "belt=demo?width=320&height=240&fps=" + cameraRate(), "--json",
		}, arguments...)...)
	d.Frame()
	go func() {
		_, totals := d.Rest()
		d.totals <- totals
	}()
	return d
}

// endsWithAllFrames ends the daemon, whose frames must all have been inferred.
func (d *updatedDaemon) endsWithAllFrames(t *testing.T) {
	t.Helper()
	require.NoError(t, d.Command.Process.Signal(syscall.SIGTERM))
	camera := (<-d.totals).Cameras[0]
	assert.Zero(t, camera.Failed)
	assert.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
}

// cameraRate is the frame rate of a daemon's camera, lower where EDGE_INFER_DAEMONS asks for more of them than a small machine can serve.
func cameraRate() string {
	if count, err := strconv.Atoi(os.Getenv("EDGE_INFER_DAEMONS")); err == nil && count > 20 {
		return "1"
	}
	return "5"
}
