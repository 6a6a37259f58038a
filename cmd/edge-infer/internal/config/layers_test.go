package config

import (
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func write(t *testing.T, path, text string) string {
	t.Helper()
	require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// A secret stands in the environment or in a file of its own, and any character may be in a camera's password.
func TestReferences(t *testing.T) {
	dir := t.TempDir()
	secret := write(t, filepath.Join(dir, "password"), "p@ss/w:rd 1%\n")
	environment := map[string]string{"GATE_USER": "admin", "BROKER": "tcp://broker:1883"}
	s := Sources{
		Scope: AllSections(),
		File: write(t, filepath.Join(dir, "edge-infer.yaml"), `
name: plain-$${HOME}-${GATE_USER}
mqtt: {url: "${BROKER}", user: "${file:`+secret+`}"}
cameras:
  - {name: gate, uri: "rtsp://${GATE_USER}:${file:`+secret+`}@192.0.2.1/stream"}
`),
		Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set },
	}
	c, mistakes := s.Check()
	require.Empty(t, mistakes)
	assert.Equal(t, "plain-${HOME}-admin", c.Name)
	assert.Equal(t, "tcp://broker:1883", c.MQTT.URL)
	assert.Equal(t, "p@ss/w:rd 1%", c.MQTT.User)
	assert.Equal(t, "rtsp://admin:p%40ss%2Fw%3Ard%201%25@192.0.2.1/stream", c.Cameras[0].URI)
}

// What a reference names and what is not there are told together, each with its line and a remedy.
func TestReferencesToNothing(t *testing.T) {
	dir := t.TempDir()
	empty := write(t, filepath.Join(dir, "empty"), "\n")
	path := write(t, filepath.Join(dir, "edge-infer.yaml"), "name: ${NOBODY_SET_THIS}\nmqtt:\n  user: ${file:"+empty+
		"}\n  ca: ${file:/nowhere/ca}\n  key: ${file:/dev/zero}\n")
	_, mistakes := (&Sources{File: path}).Check()
	var told []string
	for _, mistake := range mistakes {
		told = append(told, mistake.Error())
	}
	assert.Equal(t, []string{
		"config " + path + " line 1: name: ${NOBODY_SET_THIS}: there is no such environment variable " +
			"(set it, or write ${file:PATH}, or $${ for a plain ${)",
		"config " + path + " line 3: mqtt.user: ${file:" + empty + "}: the file is empty",
		"config " + path + " line 4: mqtt.ca: ${file:/nowhere/ca}: no such file or directory (name a file that this user can read)",
		"config " + path + " line 5: mqtt.key: ${file:/dev/zero}: a pipe or a device, not a regular file (name a file that this user can read)",
	}, told)
}

// A file that is a pipe is a mistake: reading it would not end.
func TestAPipeIsNoFile(t *testing.T) {
	dir := t.TempDir()
	path, pipe := write(t, filepath.Join(dir, "edge-infer.yaml"), "name: gate\n"), filepath.Join(dir, "conf.d", "pipe.yaml")
	require.NoError(t, os.Mkdir(filepath.Dir(pipe), 0o755))
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	_, err := (&Sources{File: path}).Load()
	require.ErrorContains(t, err, "config: read "+pipe+": a pipe or a device, not a regular file")
	_, err = (&Sources{File: pipe}).Load()
	require.ErrorContains(t, err, "config: read "+pipe+": a pipe or a device, not a regular file")
	for _, text := range (&Sources{File: path}).Secrets(&Config{Web: Web{TokenFile: pipe}, Upload: Upload{CredentialsFile: pipe}}) {
		require.Empty(t, text)
	}
	_, err = readDrawnZones(pageFile{path: pipe})
	require.ErrorContains(t, err, "a pipe or a device, not a regular file")
}

// Files of conf.d come after the file itself, in the order of their names: a later setting wins, cameras add up, and a mistake names its
// own file and line.
func TestFragments(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "odd[name]*")
	s := Sources{Scope: AllSections(), File: write(t, filepath.Join(dir, "edge-infer.yaml"),
		"log: debug\ndetect: {max_detections: 10, confidence: 0.5}\ncameras:\n  - {name: gate, uri: demo}\n")}
	write(t, filepath.Join(dir, "conf.d", "20-yard.yaml"), "detect: {max_detections: 30}\ncameras:\n  - {name: yard, uri: demo}\n")
	second := write(t, filepath.Join(dir, "conf.d", "10-door.yaml"), "detect: {max_detections: 20}\ncameras:\n  - {name: door, uri: demo}\n")
	write(t, filepath.Join(dir, "conf.d", "notes.txt"), "no settings")
	c, err := s.Load()
	require.NoError(t, err)
	var names []string
	for _, camera := range c.Cameras {
		names = append(names, camera.Name)
	}
	assert.Equal(t, []string{"gate", "door", "yard"}, names)
	assert.Equal(t, Detect{
		Confidence: 0.5, IoU: 0.45, MaxDetections: 30, Top: 5, Track: true, Profile: "static", Masks: "polygon", DepthUnit: "relative",
	}, c.Detect)
	assert.Equal(t, "debug", c.Log)

	write(t, second, "\ncameras:\n  - name: gate\n    uri: demo\n")
	_, mistakes := (&Sources{File: s.File}).Check()
	require.Len(t, mistakes, 1)
	assert.Contains(t, mistakes[0].Error(), "config "+second+" line 3: ")
	write(t, second, "detect:\n  maximum: 3\n")
	_, err = s.Load()
	assert.ErrorContains(t, err, "config "+second+` line 2: unknown key "maximum"`)
}

// Where no camera waits, a request to an inference server may take longer, unless a source says how long.
func TestCommandsWithoutCamerasWaitForServers(t *testing.T) {
	for _, test := range []struct {
		scope Scope
		text  string
		want  time.Duration
	}{
		{AllSections(), "", Default().Remote.Timeout},
		{NetworkSections(), "", patientTimeout},
		{ImageSections(), "", patientTimeout},
		{ImageSections(), "remote: {timeout: 2s}\n", 2 * time.Second},
	} {
		file := filepath.Join(t.TempDir(), "edge-infer.yaml")
		require.NoError(t, os.WriteFile(file, []byte(test.text), 0o600))
		c, err := (&Sources{File: file, Scope: test.scope}).Load()
		require.NoError(t, err)
		require.Equal(t, test.want, c.Remote.Timeout, test)
	}
}
