package migrate

import (
	"bytes"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func TestText(t *testing.T) {
	for _, test := range []struct {
		name, was, now string
		changes        []string
	}{
		{
			"a page's address",
			"# mine\nweb: 127.0.0.1:8080  # the page\nlog: debug\n", "# mine\nweb:\n  listen: 127.0.0.1:8080  # the page\nlog: debug\n",
			[]string{"line 2: web is now web.listen"},
		},
		{"alone, quoted", `web: "off"`, "web:\n  listen: \"off\"", []string{"line 1: web is now web.listen"}},
		{"as it is now", "web:\n  listen: \"off\"\n", "web:\n  listen: \"off\"\n", nil},
		{"empty", "web:\nlog: info\n", "web:\nlog: info\n", nil},
		{
			"variables", "# gate\nEnvironment=EDGE_INFER_DEVICE_NAME=gate \"EDGE_INFER_DEVICE=0\"\nEDGE_INFER_NAME=x\nEDGE_INFER_NAMES=y\n",
			"# gate\nEnvironment=EDGE_INFER_NAME=gate \"EDGE_INFER_GPU=0\"\nEDGE_INFER_NAME=x\nEDGE_INFER_NAMES=y\n",
			[]string{"line 2: EDGE_INFER_DEVICE_NAME is now EDGE_INFER_NAME", "line 2: EDGE_INFER_DEVICE is now EDGE_INFER_GPU"},
		},
		{
			"a compose file", "services:\n  eye: {environment: {EDGE_INFER_ONLY: person}}\n",
			"services:\n  eye: {environment: {EDGE_INFER_CLASSES: person}}\n",
			[]string{"line 2: EDGE_INFER_ONLY is now EDGE_INFER_CLASSES"},
		},
		{
			"renamed keys",
			"device: gate\nengine: {device: all, batch: 4}\ndetect:\n  labels: [person]  # only these\n  max: 50\nlook: {tile: 640, merge: wbf}\n" +
				"web:\n  picture_rate: 5\ncameras:\n  - name: a\n    motion: {floor_rate: 2}\n  - {name: b, motion: {enabled: true, floor_rate: 3}}\n",
			"name: gate\nengine: {gpu: all, batch: 4}\ndetect:\n  classes: [person]  # only these\n  max_detections: 50\n" +
				"inference: {tile: 640, tile_merge: wbf}\nweb:\n  frame_rate: 5\n" +
				"cameras:\n  - name: a\n    motion: {min_rate: 2}\n  - {name: b, motion: {enabled: true, min_rate: 3}}\n",
			[]string{
				"line 1: device is now name", "line 2: engine.device is now engine.gpu", "line 4: detect.labels is now detect.classes",
				"line 5: detect.max is now detect.max_detections", "line 6: look.merge is now inference.tile_merge", "line 6: look is now inference",
				"line 8: web.picture_rate is now web.frame_rate", "line 11: cameras[].motion.floor_rate is now cameras[].motion.min_rate",
				"line 12: cameras[].motion.floor_rate is now cameras[].motion.min_rate",
			},
		},
		{"windows' line ends", "web: a:1\r\nlog: info\r\n", "web:\n  listen: a:1\r\nlog: info\r\n", []string{"line 1: web is now web.listen"}},
		{"no text", "", "", nil},
	} {
		now, changes, err := Text([]byte(test.was))
		require.NoError(t, err, test.name)
		require.Equal(t, test.now, string(now), test.name)
		var told []string
		for _, change := range changes {
			told = append(told, change.String())
		}
		require.Equal(t, test.changes, told, test.name)
		again, changes, err := Text(now)
		require.NoError(t, err, test.name)
		require.Empty(t, changes, "%s: once is enough", test.name)
		require.Equal(t, string(now), string(again))
	}
	for _, flow := range []string{"{web: \"off\", log: info}", "web: |\n  off\nlog: info\n"} {
		_, _, err := Text([]byte(flow))
		require.ErrorContains(t, err, "line 1: web is written in a way that only a person can change: name it web.listen", flow)
	}
}

func TestFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "edge-infer.yaml")
	const was = "device: gate # by the door\nweb: 127.0.0.1:8080\n"
	require.NoError(t, os.WriteFile(path, []byte(was), 0o640))
	if os.Geteuid() == 0 {
		require.NoError(t, os.Chown(path, 0, 44))
	}
	_, mistakes := (&config.Sources{File: path}).Check()
	require.Len(t, mistakes, 2)
	require.ErrorContains(t, mistakes[0], "line 1: unknown key \"device\" (it is name now: edge-infer config migrate FILE)")
	require.ErrorContains(t, mistakes[1], "line 2: web")

	changes, err := File(path, false)
	require.NoError(t, err)
	require.Len(t, changes, 2)
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Equal(t, was, string(text), "a dry run")

	_, err = File(path, true)
	require.NoError(t, err)
	text, err = os.ReadFile(path + BackupSuffix)
	require.NoError(t, err)
	require.Equal(t, was, string(text))
	for _, file := range []string{path, path + BackupSuffix} {
		info, err := os.Stat(file)
		require.NoError(t, err)
		require.Equal(t, os.FileMode(0o640), info.Mode().Perm())
		if os.Geteuid() == 0 {
			require.EqualValues(t, 44, info.Sys().(*syscall.Stat_t).Gid, "the service's group reads it")
		}
	}
	c, mistakes := (&config.Sources{File: path}).Check()
	require.Empty(t, mistakes)
	require.Equal(t, "127.0.0.1:8080", c.Web.Listen)
	require.Equal(t, "gate", c.Name)

	changes, err = File(path, true)
	require.NoError(t, err)
	require.Empty(t, changes, "nothing left")
	require.NoError(t, os.WriteFile(path, []byte(was), 0o640))
	_, err = File(path, true)
	require.ErrorContains(t, err, "there is a copy already")
}

// FuzzText: what a file says stays the same but for the names, and no bytes upset the reader.
func FuzzText(f *testing.F) {
	f.Add([]byte("web: a\n# b\ndevice: c\n"))
	f.Add([]byte("EDGE_INFER_NAME=a\n"))
	f.Add([]byte("- web: a"))
	f.Add([]byte("web: &a !!str b"))
	f.Fuzz(func(t *testing.T, was []byte) {
		now, changes, err := Text(was)
		if err != nil || len(changes) > 0 {
			return
		}
		require.True(t, bytes.Equal(was, now))
	})
}
