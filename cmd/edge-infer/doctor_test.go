package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	mqttbroker "github.com/edge-infer/edge-infer/mqtt/broker"
	"github.com/edge-infer/edge-infer/mqtt/mqtttest"
)

// examined runs doctor as a person does and returns the status of each check.
func examined(t *testing.T, args ...string) (checks map[string]string, details string, err error) {
	t.Helper()
	c := programtest.Command(t, append([]string{"doctor", "--json", "--root", t.TempDir()}, args...)...)
	c.Env = append(c.Env, "EDGE_INFER_LIBCUDA=/none/libcuda.so.1")
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	var found struct {
		Version int `json:"v"`
		Failed  int
		Checks  []struct{ Check, Status, Detail, Fix string }
	}
	require.NoError(t, json.Unmarshal(output, &found), "%s%s", output, &stderr)
	assert.Equal(t, 1, found.Version)
	checks = map[string]string{}
	failed := 0
	for _, check := range found.Checks {
		checks[check.Check] = check.Status
		details += check.Check + ": " + check.Detail + "\n"
		assert.Equal(t, check.Status == "OK", check.Fix == "", "%+v", check)
		if check.Status == "FAIL" {
			failed++
		}
	}
	assert.Equal(t, failed, found.Failed)
	if failed > 0 {
		assert.Equal(t, fmt.Sprintf("edge-infer: doctor: %d of %d checks failed\n", failed, len(found.Checks)), stderr.String())
	} else {
		assert.Empty(t, stderr.String())
	}
	return checks, details, err
}

func TestDoctor(t *testing.T) {
	t.Parallel()
	checks, details, err := examined(t, "--camera", "demo", "--mqtt-listen", "127.0.0.1:0", "--engine", "onnxruntime")
	require.NoError(t, err, details)
	for _, check := range []string{"ONNX Runtime", "camera cam0", "model", "MQTT broker", "cache directory", "event directory"} {
		assert.Equal(t, "OK", checks[check], "%s\n%s", check, details)
	}
	assert.Contains(t, details, "model: demo on onnxruntime ")
	assert.Contains(t, details, " ms per image\n")
}

func TestDoctorFails(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "config.yaml")
	require.NoError(t, os.WriteFile(file, []byte(fmt.Sprintf(
		"cameras: [{name: gate, uri: /none.mp4}]\nmodel: {path: /none.onnx}\nmqtt: {url: \"tcp://127.0.0.1:%d\"}\n", programtest.FreePort(t))), 0o600))
	checks, details, err := examined(t, "--config", file)
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	for _, check := range []string{"camera gate", "model", "MQTT broker"} {
		assert.Equal(t, "FAIL", checks[check], "%s\n%s", check, details)
	}
	assert.Contains(t, details, "model: model /none.onnx: no such file")
	assert.Contains(t, details, "connection refused")
}

// The text is for people: a line for each check.
func TestDoctorText(t *testing.T) {
	t.Parallel()
	c := programtest.Command(t, "doctor", "--mqtt", "off", "--engine", "onnxruntime", "--library", "/none.so")
	output, err := c.Output()
	var exit *exec.ExitError
	require.ErrorAs(t, err, &exit)
	assert.Equal(t, 1, exit.ExitCode())
	assert.Contains(t, string(output), "FAIL  ONNX Runtime      no usable libonnxruntime, tried /none.so: no such file\n")
	assert.Contains(t, string(output),
		"WARN  camera            none configured\n                        fix: add one: --camera 0, or --camera demo to try the program\n")
	assert.Contains(t, string(output), "OK    MQTT broker       off\n")
}

// Secrets reach doctor from wherever the daemon takes them.
// TestDoctorSaysWhatABrokerRefuses: mosquitto takes the messages, and grants the subscriptions, that its list of rights forbids, and drops
// them.
func TestDoctorSaysWhatABrokerRefuses(t *testing.T) {
	t.Parallel()
	for rights, want := range map[string]string{
		"topic readwrite #\n":             `"status":"OK","detail":"tcp://ADDRESS accepts \"gate\""`,
		"topic write edge-infer/gate/#\n": `"status":"WARN","detail":"tcp://ADDRESS accepts \"gate\", but it grants edge-infer/gate/+/set, and passes on `,
		"topic read edge-infer/gate/#\n":  `"status":"WARN","detail":"tcp://ADDRESS accepts \"gate\", but it refuses messages to edge-infer/gate/error"`,
	} {
		file := filepath.Join(t.TempDir(), "acl")
		require.NoError(t, os.WriteFile(file, []byte(rights), 0o644))
		broker := mqtttest.StartMosquitto(t, "allow_anonymous true", "acl_file "+file)
		c := programtest.Command(t, "doctor", "--json", "--root", t.TempDir(), "--name", "gate", "--mqtt", "tcp://"+broker.Address)
		c.Env = append(c.Env, "EDGE_INFER_LIBCUDA=/none/libcuda.so.1")
		output, _ := c.CombinedOutput() // other things may be missing here
		assert.Contains(t, string(output), strings.ReplaceAll(want, "ADDRESS", broker.Address), rights)
	}
}

func TestDoctorLogsInAsTheDaemonWould(t *testing.T) {
	t.Parallel()
	broker := &mqttbroker.Broker{Address: "127.0.0.1:0", User: "edge", Password: "right", Logger: slog.New(slog.DiscardHandler)}
	require.NoError(t, broker.Open())
	t.Cleanup(func() { _ = broker.Close() })
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "mqtt-password"), []byte("right\n"), 0o600))
	for i, test := range []struct{ name, environment, status string }{
		{"the environment's", "EDGE_INFER_MQTT_PASSWORD=right", "OK"},
		{"a wrong one of the environment", "EDGE_INFER_MQTT_PASSWORD=wrong", "FAIL"},
		{"none", "", "FAIL"},
		{"a file that the environment names", "EDGE_INFER_MQTT_PASSWORD_FILE=" + dir + "/mqtt-password", "OK"},
		{"the service manager's", "CREDENTIALS_DIRECTORY=" + dir, "OK"},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			// Names of their own: a broker ends the connection of a client whose identifier another one uses.
			name := fmt.Sprintf("doctor%d", i)
			c := programtest.Command(t, "doctor", "--json", "--root", t.TempDir(), "--name", name, "--mqtt-user", "edge")
			c.Env = append(c.Env, "EDGE_INFER_MQTT="+broker.URL(), "EDGE_INFER_LIBCUDA=/none/libcuda.so.1", test.environment)
			output, _ := c.CombinedOutput()
			assert.Contains(t, string(output), `"check":"MQTT broker","status":"`+test.status+`"`, "%s", output)
			assert.NotContains(t, string(output), `"right"`)
		})
	}
}
