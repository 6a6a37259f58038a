package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestConfigCheckFindsWhatAReloadRefuses, each mistake by itself and two at a time.
func TestConfigCheckFindsWhatAReloadRefuses(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	check := func(text string) (output string, err error) {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		said, err := programtest.Command(t, "config", "check", path).CombinedOutput()
		return string(said), err
	}
	const sound = "name: gate\ncameras: [{name: belt, uri: demo}]\n"
	for _, mistake := range programtest.Mistakes(t, sound) {
		said, err := check(mistake.YAML)
		if mistake.InUse {
			assert.NoError(t, err, "%s: as a rule the daemon uses it: %s", mistake.Name, said)
			continue
		}
		assert.ErrorContains(t, err, "exit status 1", mistake.Name)
		assert.Contains(t, said, "config "+path+": ", mistake.Name)
		assert.Contains(t, said, mistake.Want, mistake.Name)
	}
	said, err := check(sound + "model: {path: /none.onnx}\nweb: {listen: '127.0.0.1:0', token_file: /none}\n")
	require.Error(t, err)
	require.Contains(t, said, "model /none.onnx: no such file")
	require.Contains(t, said, "web token: open /none")
	said, err = check(sound + "detect: {max_detections: many}\nlog: [loud]\n")
	require.Error(t, err)
	require.Equal(t, "edge-infer: config "+path+` line 3: detect.max_detections "many" must be a whole number`+"\n"+
		"config "+path+` line 4: log "[loud]" must be one piece of text`+"\n", said)
	require.NoError(t, os.WriteFile(path, []byte(sound+"detect: {max_detections: 0, surplus: 3}\n"), 0o600))
	command := programtest.Command(t, "config", "check", path, "--confidence", "high")
	command.Env = append(command.Environ(), "EDGE_INFER_BATCH=-1")
	output, err := command.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1")
	require.Equal(t, "edge-infer: config "+path+` line 3: unknown key "surplus"`+"\n"+
		"config "+path+` line 3: detect.max_detections "0" must be 1 to 30000`+"\n"+
		`environment EDGE_INFER_BATCH: engine.batch "-1" must be 0 to 256`+"\n"+
		`--confidence: detect.confidence "high" must be a number`+"\n", string(output))
	said, err = check(sound)
	require.NoError(t, err, said)
	require.Equal(t, path+": no mistakes, 1 cameras\n", said)
}

// A network that TensorRT alone could run is known by its file before its plan is built: names of its keypoints, which a file with 17 need
// not say, its labels, and whether it finds what zones could count.
func TestConfigCheckKnowsANetworkBeforeItsPlan(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.StandInGPU(t)
	path := filepath.Join(t.TempDir(), "edge-infer.yaml")
	check := func(network, text string) string {
		text = "name: gate\nmodel: {path: " + network + "}\ncameras:\n  - name: belt\n    uri: demo\n    analytics:\n" +
			"      zones: [{name: yard, points: [{x: 0, y: 0}, {x: 1, y: 0}, {x: 0, y: 1}], " + text + "}]\n"
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		said, _ := programtest.CommandWith(t, append(environment, "EDGE_INFER_ONNXRUNTIME=/none/libonnxruntime.so"), "config", "check",
			path).CombinedOutput()
		return string(said)
	}
	pose := constant(t, 0, []int64{1, 56, 84}, map[string]string{"task": "pose", "kpt_shape": "[17, 3]", "names": "{0: 'person'}"})
	require.Equal(t, path+": no mistakes, 1 cameras\n", check(pose, "anchor: left_wrist"))
	require.Contains(t, check(pose, "anchor: left_wing"), "left_wing")
	require.Contains(t, check(pose, "labels: [bird]"), "bird")
	classifier := constant(t, 0, []int64{1, 2}, map[string]string{
		"task": "classify", "names": "{0: 'a', 1: 'b'}", "preprocess": "torchvision",
	})
	require.Equal(t, path+": no mistakes, 1 cameras\n", check(classifier, "labels: [bird]"), "as for one that runs")
}
