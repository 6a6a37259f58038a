package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"
)

// All mistakes of a file are told at once, each with its line, in words of the file.
func TestAllMistakesAtOnce(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	check := func(lines ...string) (told []string) {
		require.NoError(t, os.WriteFile(path, []byte(strings.Join(lines, "\n")+"\n"), 0o600))
		_, mistakes := (&Sources{File: path, Environment: nothing}).Check()
		for _, mistake := range mistakes {
			told = append(told, strings.TrimPrefix(mistake.Error(), "config "+path+" "))
		}
		return told
	}
	require.Equal(t, []string{
		`line 2: unknown key "confidense", did you mean "confidence"?`,
		`line 3: detect.max_detections "many" must be a whole number`,
		`line 4: detect.track "perhaps" must be true or false`,
		`line 5: mqtt "embedded" must be a group of settings on indented lines of their own`,
		`line 9: cameras[0].stall "soon" must be a time like 5s or 1m30s`,
		`line 10: cameras[1].analytics.zones "yard" must be a list, as in [a, b] or on lines that begin with -`,
		`line 11: thermal.margin "[1, 2]" must be a number`,
	}, check(
		"detect:", "  confidense: 0.5", "  max_detections: many", "  track: perhaps", "mqtt: embedded", "cameras:", "  - name: a",
		"    uri: demo", "    stall: soon",
		"  - {name: b, uri: demo, analytics: {zones: yard}}", "thermal: {margin: [1, 2]}"))
	told := check("name: a/b", "detect:", "  confidence: 2", "cameras:", "  - {name: a, uri: demo}", "  - {name: a, uri: demo}",
		"  - name: c", "    uri: foo://x", "web:", "  user: me")
	require.Len(t, told, 5)
	require.Equal(t, `line 1: name "a/b" must be a name without + / #`, told[0])
	require.Equal(t, `line 3: detect.confidence "2" must be over 0 and under 1`, told[1])
	require.Equal(t, `line 6: cameras[1].name "a" is used twice`, told[2])
	require.Contains(t, told[3], "line 8: camera c: parse foo://x: unknown scheme")
	require.Equal(t, `line 10: web.user and web.password_file: one needs the other`, told[4])
	require.Empty(t, check("base: &b {confidence: 0.5}", "detect: *b")[1:], "an anchor needs a place: only the unknown key is told")
	_, err := (&Sources{File: path, Environment: nothing}).Load()
	require.NotContains(t, err.Error(), "\n")
}

// nothing is an environment without variables.
func nothing(string) (string, bool) { return "", false }

// Errors of every kind and of every source are told together, in the order of the files and their lines, then of the environment and the
// flags. What only follows from one of them is not told.
func TestMistakesOfEveryKindAndSource(t *testing.T) {
	dir := t.TempDir()
	main := write(t, filepath.Join(dir, "edge-infer.yaml"), `detect:
  confidence: 7
  confidense: 3
  iou: none
mqtt: {key: k.pem, certifcate: c.pem}
cameras:
  - {name: gate, urll: demo, rate: -1, priority: 101}
  - door
  - {name: yard}
web: {user: me}
name: ${NOBODY_SET_THIS}
log: debug
log: loud
`)
	more := write(t, filepath.Join(dir, "conf.d", "more.yaml"), `cameras:
  - {name: gate, uri: "foo://x", tile: 7}
inference:
  weights: [1, much]
thermal: {margin: -1}
`)
	environment := map[string]string{"EDGE_INFER_THREADS": "-4", "EDGE_INFER_BATCH": "some", "EDGE_INFER_MQTT_CONTROL": "perhaps"}
	s := Sources{
		Environment: func(name string) (string, bool) { value, set := environment[name]; return value, set },
	}
	flags := pflag.NewFlagSet("run", pflag.ContinueOnError)
	s.Flags(flags)
	s.CascadeFlag(flags)
	require.NoError(t, flags.Parse([]string{
		"--config", main, "--top", "0", "--max-detections", "few", "--remote-timeout=soon", "--cascade", "a b",
	}))
	require.Contains(t, flags.FlagUsages(), `GPU number, several separated by commas, or all; run distributes the cameras over them (default "0")`)
	c, mistakes := s.Check()
	var all []string
	for _, mistake := range mistakes {
		all = append(all, mistake.Error())
	}
	require.Equal(t, []string{
		"config " + main + ` line 2: detect.confidence "7" must be over 0 and under 1`,
		"config " + main + ` line 3: unknown key "confidense", did you mean "confidence"?`,
		"config " + main + ` line 4: detect.iou "none" must be a number`,
		"config " + main + ` line 5: unknown key "certifcate", did you mean "certificate"?`,
		"config " + main + ` line 7: unknown key "urll", did you mean "uri"?`,
		"config " + main + ` line 7: cameras[0].rate "-1" must be 0 to 1000 a second`,
		"config " + main + ` line 7: cameras[0].priority "101" must be 1 to 100`,
		"config " + main + ` line 8: cameras[1] "door" must be a group of settings on indented lines of their own`,
		"config " + main + ` line 9: cameras[2].uri "" must be an address, a file, a device number or demo`,
		"config " + main + ` line 10: web.user and web.password_file: one needs the other`,
		"config " + main + ` line 11: name: ${NOBODY_SET_THIS}: there is no such environment variable ` +
			"(set it, or write ${file:PATH}, or $${ for a plain ${)",
		"config " + main + ` line 13: log is set already on line 12: keep one of them`,
		"config " + more + ` line 2: camera gate: parse foo://x: unknown scheme foo:// ` +
			`(give a device number, /dev/videoN, csi://N, rtsp://, http://, a file, a directory, gst:PIPELINE or demo)`,
		"config " + more + ` line 2: cameras[3].name "gate" is used twice`,
		"config " + more + ` line 2: cameras[3].tile: tiles of 7 pixels, must be an even number from 32 to 32768`,
		"config " + more + ` line 4: inference.weights[1] "much" must be a number`,
		"config " + more + ` line 5: thermal.margin "-1" must be 0 to 100`,
		`environment EDGE_INFER_BATCH: engine.batch "some" must be a whole number`,
		`environment EDGE_INFER_MQTT_CONTROL: mqtt.control: "perhaps" is not on or off`,
		`environment EDGE_INFER_THREADS: engine.threads "-4" must be 0 to 1024`,
		`--cascade: cascade "a b" must be NAME=MODEL.onnx, with the name that the attribute gets`,
		`--remote-timeout: remote.timeout "soon" must be a time like 5s or 1m30s`,
		`--max-detections: detect.max_detections "few" must be a whole number`,
		`--top: detect.top "0" must be 1 to 1000`,
	}, all)
	require.Equal(t, "debug", c.Log)
	_, err := s.Load()
	require.EqualError(t, err, all[0]+" (and 23 more: edge-infer config check lists all)")
	require.ErrorAs(t, err, new(UsageError))
}

// A file that is no YAML hides nothing of the others; what may follow from what stands in it is not told.
func TestMistakesBesideAFileThatIsNoYAML(t *testing.T) {
	dir := t.TempDir()
	main := write(t, filepath.Join(dir, "edge-infer.yaml"), "web: {user: me}\nmqtt: {key: k.pem}\nname: a/b\n")
	more := write(t, filepath.Join(dir, "conf.d", "more.yaml"), "web: {password_file: p\n")
	_, mistakes := (&Sources{File: main, Environment: nothing}).Check()
	require.Len(t, mistakes, 2)
	require.EqualError(t, mistakes[0], "config "+main+` line 3: name "a/b" must be a name without + / #`)
	require.ErrorContains(t, mistakes[1], "config "+more+" line 1: ")
}

// What follows the syntax in an unusual way is read as before.
func TestUnusualFilesFit(t *testing.T) {
	for _, text := range []string{
		"detect: {<<: {max_detections: 5}}\n", "name: 12\n", "detect:\n", "cameras: []\n", "cameras:\n- uri: 0\n  name: a\n",
		"name: &d gate\nmqtt: {user: *d}\n",
		"name: !!str 12\n", "detect: {confidence: 1}\n",
		"cameras: [{name: a, uri: demo, analytics: {objects: {score: {person: 0.5}}}}]\n", "name: |\n  gate\n",
	} {
		_, found, err := Default().merge([]byte(text))
		require.NoError(t, err, text)
		require.Empty(t, found, text)
	}
}

// Errors that quote a line with an address contain no part of its password, in whatever form the file has it.
func TestErrorsContainNoPasswords(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f.yaml")
	for _, text := range []string{
		"cameras:\n  - name: c\n    uri: rtsp://admin:hunter #2@127.0.0.1/x",
		"cameras:\n  - name: c\n    uri: rtsp://admin:11 #hunter@127.0.0.1/x",
		"cameras: [{name: c, uri: rtsp://admin:12 #hunter@127.0.0.1/x\n}]",
		"cameras: [{name: c, uri: 'rtsp://admin:my hunter@127.0.0.1:1/x'}]",
		"cameras: [{name: c, uri: rtsp://admin:hunter, hunter@127.0.0.1:1/x}]",
		"cameras: [{name: c, uri: [rtsp://admin:hunter@127.0.0.1:1/x]}]",
		"cameras: [{name: c, stall: rtsp://admin:hunter@127.0.0.1:1/aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa}]",
		"cameras: [{name: c, uri: demo, stall: 'rtsp://admin:hunterhunterhunterhunterhunterhunterhunter@127.0.0.1:1'}]",
		"cameras: [{name: 'rtsp://admin:hunter@127.0.0.1', uri: demo}]",
		"cameras: [rtsp://admin:hunter@127.0.0.1]",
		"cameras: [{name: c, uri: 'https://cam:x/v?loginpas=hunter&sid=hunter'}]",
		"cameras: [{name: c, uri: 'rtsp://cam/v?loginpas=hunter#decoder=x'}]",
		"rtsp://admin:hunter@127.0.0.1: 1",
		"mqtt: {url: 'tcp://user:hunter cret@127.0.0.1:1'}",
		"mqtt: {url: tcp://user:hunter, x@127.0.0.1: 2}",
		"mqtt: {url: 'tcp://user:hunter@127.0.0.1:1'}",
		"model: {path: demo}\nengine: {backend: 'rtsp://user:hunter@h'}",
	} {
		require.NoError(t, os.WriteFile(path, []byte("model: {path: demo}\n"+strings.TrimPrefix(text, "model: {path: demo}\n")+"\n"), 0o600))
		_, mistakes := (&Sources{File: path, Environment: nothing}).Check()
		require.NotEmpty(t, mistakes, text)
		for _, mistake := range mistakes {
			require.NotContains(t, mistake.Error(), "hunter", text)
			require.NotContains(t, mistake.Error(), ":11", text)
			require.NotContains(t, mistake.Error(), ":12", text)
		}
	}
	write(t, path, "cameras:\n  - name: c\n    uri: rtsp://admin:12 #34@127.0.0.1/x\n")
	_, mistakes := (&Sources{File: path, Environment: nothing}).Check()
	require.Len(t, mistakes, 1)
	require.EqualError(t, mistakes[0], "config "+path+` line 3: an address ends before " #", which begins a comment: put the address in quotation marks`)
}
