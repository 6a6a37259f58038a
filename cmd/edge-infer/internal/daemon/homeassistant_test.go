package daemon

import (
	"encoding/json"
	"fmt"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestLabelsNeedEvidenceForEntities: a label that was counted once has no entities in Home Assistant yet, one of the camera's filter has
// them at once. The image that somebody asked for stays although crops and scenes come after it.
func TestLabelsNeedEvidenceForEntities(t *testing.T) {
	t.Parallel()
	port := programtest.FreePort(t)
	programtest.Mosquitto(t, port)
	spool := t.TempDir()
	components := func(lines <-chan string, wanted, unwanted string) map[string]map[string]any {
		t.Helper()
		const topic = "homeassistant/device/edge-infer-gate/camera-belt/config "
		for deadline := time.After(programtest.Patience); ; {
			select {
			case line := <-lines:
				text, found := strings.CutPrefix(line, topic)
				var message struct {
					Components map[string]map[string]any `json:"components"`
				}
				if found && json.Unmarshal([]byte(text), &message) == nil && len(message.Components[wanted]) > 1 &&
					len(message.Components[unwanted]) < 2 {
					return message.Components
				}
			case <-deadline:
				require.Fail(t, "no entity "+wanted)
			}
		}
	}
	run := func(more ...string) *programtest.Program {
		return programtest.StartWith(t, []string{"EDGE_INFER_MQTT_SPOOL=" + spool}, append([]string{
			"--camera", "belt=demo?width=480&height=360&fps=10", "--mqtt", fmt.Sprintf("tcp://127.0.0.1:%d", port), "--name", "gate",
		}, more...)...)
	}
	discovered := programtest.Subscribe(t, port, "homeassistant/device/edge-infer-gate/camera-belt/config")
	p := run()
	found := components(discovered, "count", "count_bolt")
	require.Contains(t, found, "line_belt_in", "the line of the demo takes no entity away")

	require.NoError(t, exec.Command(testtool.Program(t, "mosquitto_pub"), "-h", "127.0.0.1", "-p", fmt.Sprint(port), "-q", "1", "-t",
		"edge-infer/gate/belt/snapshot/set", "-m", "PRESS").Run())
	images := programtest.Subscribe(t, port, "edge-infer/gate/belt/#")
	requested := 0
	for deadline, crops := time.After(programtest.Patience), 0; requested == 0 || crops < 3; {
		select {
		case line := <-images:
			if strings.HasPrefix(line, "edge-infer/gate/belt/snapshot ") {
				requested++
			}
			if strings.HasPrefix(line, "edge-infer/gate/belt/snapshot/") && requested > 0 {
				crops++
			}
		case <-deadline:
			require.Fail(t, "no image that was asked for, or no crops after it")
		}
	}
	require.Equal(t, 1, requested)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	for drained := false; !drained; { // by then objects were counted, of which there are crops
		select {
		case line := <-discovered:
			require.NotContains(t, line, `"count_`)
		default:
			drained = true
		}
	}

	p = run("--classes", "bolt,gear") // those that are asked for have entities at once, and only they
	found = components(discovered, "count_gear", "count_washer")
	require.Equal(t, "Bolt count", found["count_bolt"]["name"])
	require.Equal(t, "sensor.edge_infer_gate_belt_count_bolt", found["count_bolt"]["default_entity_id"])
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
