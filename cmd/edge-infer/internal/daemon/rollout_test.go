package daemon

import (
	"fmt"
	"io"
	"log"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/rollout"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestABundleIsRolledOut: over a real broker and a registry, to daemons whose cameras go on. A poisoned bundle stops at the first device; a
// good one reaches all, and no frame is lost.
func TestABundleIsRolledOut(t *testing.T) {
	t.Parallel()
	count := countOf(t, "EDGE_INFER_DAEMONS", 2)
	p := newPublisher(t)
	server := httptest.NewServer(registry.New(registry.WithReferrersSupport(true), registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	broker := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	p.publish(nil)
	file := filepath.Join(p.dir, "edge-infer.yaml")
	settings := fmt.Sprintf("model: {path: belt}\nbundle: {keys: [%s], trial: 2s}\n", p.public)
	require.NoError(t, os.WriteFile(file, []byte(settings), 0o600))

	type daemon struct {
		*programtest.Program
		store  catalogue.Store
		totals chan programtest.Totals
	}
	all := make([]*daemon, count)
	for i := range all {
		cache := t.TempDir()
		d := &daemon{store: catalogue.Store{Dir: filepath.Join(cache, "models")}, totals: make(chan programtest.Totals, 1)}
		p.install(d.store)
		d.Program = programtest.StartWith(t, []string{"CACHE_DIRECTORY=" + cache, "XDG_STATE_HOME=" + t.TempDir()}, "--config", file,
			"--name", fmt.Sprintf("gate-%d", i), "--camera", "belt=demo?width=320&height=240&fps=5", "--mqtt", broker, "--json")
		d.Frame()
		go func() {
			_, totals := d.Rest()
			d.totals <- totals
		}()
		all[i] = d
	}
	roll := func() (*rollout.Result, error) {
		location := fmt.Sprintf("%s/models/belt:%d", strings.TrimPrefix(server.URL, "http://"), p.version)
		_, err := (&bundle.Push{File: p.newest(), To: bundle.Source{Location: location}}).Run(t.Context())
		require.NoError(t, err)
		r := &rollout.Rollout{
			Fleet:    rollout.Fleet{Access: mqtt.Access{Brokers: []string{broker}}, ID: strconv.Itoa(p.version)},
			Job:      fmt.Sprintf("belt-%d", p.version),
			Document: payload.JobDocument{Operation: payload.UpdateModel, From: location}, Stages: []float64{1, 100},
			Patience: 10 * programtest.Patience,
		}
		require.NoError(t, r.Check())
		return r.Run(t.Context())
	}
	require.Eventually(t, func() bool {
		list, err := (&rollout.Fleet{Access: mqtt.Access{Brokers: []string{broker}}, ID: "list"}).List(t.Context(), "gate-*")
		return err == nil && len(list) == count
	}, programtest.Patience, 10*time.Millisecond)

	begun := time.Now()
	p.publish(blind)
	result, err := roll()
	require.ErrorContains(t, err, "1 of 1 devices have failed")
	require.Len(t, result.Reasons, 1)
	assert.Contains(t, result.Reasons[0].Text, "failed: it finds other objects than the running model: 0.000 agreement")
	t.Logf("poisoned: %v, %+v", time.Since(begun), result)

	begun = time.Now()
	p.publish(nil)
	result, err = roll()
	require.NoError(t, err, "%+v", result)
	assert.Equal(t, count, result.Succeeded)
	t.Logf("good: %v, %+v", time.Since(begun), result)
	for _, d := range all {
		assert.EqualValues(t, p.version, bundle.Installed(d.store, "belt").Version)
		require.NoError(t, d.Command.Process.Signal(syscall.SIGTERM))
		camera := (<-d.totals).Cameras[0]
		assert.Zero(t, camera.Failed)
		assert.LessOrEqual(t, camera.Captured-camera.Inferred-camera.Dropped, uint64(1), "one frame may wait at the end: %+v", camera)
	}
}
