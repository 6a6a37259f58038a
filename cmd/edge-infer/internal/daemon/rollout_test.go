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
	"testing"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/rollout"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestABundleIsRolledOut: over a real broker and a registry, to daemons whose connections are cut and whose cameras go on. A poisoned
// bundle stops at the first device; a good one reaches all, and no frame is lost.
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

	cuts := programtest.NewCuts(t, fmt.Sprintf("127.0.0.1:%d", port), 0.3, 10*time.Second)
	all := make([]*updatedDaemon, count)
	for i := range all {
		all[i] = p.startDaemon(fmt.Sprintf("gate-%d", i), file, "--mqtt", "tcp://"+cuts.Address)
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
		d.endsWithAllFrames(t)
	}
	t.Logf("%d of %d connections were cut, %d bytes", cuts.Cut.Load(), cuts.Connections.Load(), cuts.Bytes.Load())
}
