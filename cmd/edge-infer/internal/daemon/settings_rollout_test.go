package daemon

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/rollout"
	"github.com/edge-infer/edge-infer/mqtt"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

// TestSettingsAreRolledOut: over a real broker to running daemons, without losing a frame. A device that loses its broker by them goes
// back and says so, and one that would have to restart refuses them.
func TestSettingsAreRolledOut(t *testing.T) {
	t.Parallel()
	p := newPublisher(t)
	p.publish(nil)
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	broker := fmt.Sprintf("tcp://127.0.0.1:%d", port)
	file := filepath.Join(p.dir, "edge-infer.yaml")
	text := fmt.Sprintf("model: {path: belt}\nbundle: {keys: [%s], trial: 2s}\nmqtt: {url: %q}\n", p.public, broker)
	require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	all := []*updatedDaemon{p.startDaemon("gate-0", file), p.startDaemon("gate-1", file)}
	access := mqtt.Access{Brokers: []string{broker}}
	require.Eventually(t, func() bool {
		list, err := (&rollout.Fleet{Access: access, ID: "list"}).List(t.Context(), "gate-*")
		return err == nil && len(list) == len(all)
	}, programtest.Patience, programtest.Patience/1000)
	version := int64(0)
	roll := func(settings string) (*rollout.Result, error) {
		version++
		s := &bundle.Settings{Version: version, Settings: settings}
		document := payload.JobDocument{Operation: payload.UpdateSettings}
		var err error
		document.Settings, document.Signature, err = s.Sign(p.secret, nil)
		require.NoError(t, err)
		r := &rollout.Rollout{
			Fleet: rollout.Fleet{Access: access, ID: fmt.Sprint(version)}, Job: fmt.Sprintf("settings-%d", version), Document: document,
			Stages: []float64{50, 100}, Patience: 10 * programtest.Patience,
		}
		require.NoError(t, r.Check())
		return r.Run(t.Context())
	}

	result, err := roll("detect: {confidence: 0.6}\n")
	require.NoError(t, err, "%+v", result)
	assert.Equal(t, len(all), result.Succeeded)
	for refused, reason := range map[string]string{
		"mqtt: {url: \"tcp://127.0.0.1:1\"}\n": "failed: on trial the broker ceased to work",
		"log_format: json\n":                   "failed: they would need a restart of the program: ",
		"detect: {confidence: 7}\n":            "failed: ",
		"name: other\n":                        "rejected: name is each device's own, and not for a fleet",
	} {
		result, err = roll(refused)
		require.ErrorContains(t, err, "1 of 1 devices have failed", refused)
		require.Len(t, result.Reasons, 1)
		assert.Contains(t, result.Reasons[0].Text, reason)
	}
	state := config.FleetSettings{State: all[0].state}
	inForce, err := state.Read()
	require.NoError(t, err)
	assert.Equal(t, "detect: {confidence: 0.6}\n", string(inForce))
	result, err = roll("detect: {confidence: 0.3}\n")
	require.NoError(t, err, "%+v", result)
	for _, d := range all {
		d.endsWithAllFrames(t)
	}
}
