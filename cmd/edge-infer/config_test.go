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
	const sound = "device: gate\ncameras: [{name: belt, uri: demo}]\n"
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
	said, err = check(sound + "detect: {max: many}\nlog: [loud]\n")
	require.Error(t, err)
	require.Equal(t, "edge-infer: config "+path+` line 3: detect.max "many" must be a whole number`+"\n"+
		"config "+path+` line 4: log "[loud]" must be one piece of text`+"\n", said)
	require.NoError(t, os.WriteFile(path, []byte(sound+"detect: {max: 0, maximum: 3}\n"), 0o600))
	command := programtest.Command(t, "config", "check", path, "--conf", "high")
	command.Env = append(command.Environ(), "EDGE_INFER_BATCH=-1")
	output, err := command.CombinedOutput()
	require.ErrorContains(t, err, "exit status 1")
	require.Equal(t, "edge-infer: config "+path+` line 3: unknown key "maximum"`+"\n"+
		"config "+path+` line 3: detect.max "0" must be 1 to 30000`+"\n"+
		`environment EDGE_INFER_BATCH: engine.batch "-1" must be 0 to 256`+"\n"+
		`--conf: detect.confidence "high" must be a number`+"\n", string(output))
	said, err = check(sound)
	require.NoError(t, err, said)
	require.Equal(t, path+": no mistakes, 1 cameras\n", said)
}
