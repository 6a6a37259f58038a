package config

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// addedSources returns sources whose state directory and configuration file are temporary.
func addedSources(t *testing.T, file string) (sources *Sources, state string) {
	t.Helper()
	dir := t.TempDir()
	path := filepath.Join(dir, "edge-infer.yaml")
	require.NoError(t, os.WriteFile(path, []byte(file), 0o600))
	state = filepath.Join(dir, "state")
	return &Sources{File: path, Environment: func(name string) (string, bool) { return state, name == "STATE_DIRECTORY" }}, state
}

func names(c *Config) (all []string) {
	for i := range c.Cameras {
		all = append(all, c.Cameras[i].Name)
	}
	return all
}

func TestAddedCameras(t *testing.T) {
	t.Setenv("SECRET", "leaked")
	sources, state := addedSources(t, "model: {path: demo}\ncameras: [{name: gate, uri: demo}]\n")
	added := &AddedCameras{Sources: sources}
	require.NoError(t, added.Writable())
	require.NoError(t, added.Add(AddedCamera{Name: "yard", URI: "rtsp://viewer:pass@192.0.2.10/${SECRET}", Record: "rtsp://192.0.2.10/main"}))
	info, err := os.Stat(filepath.Join(state, "cameras.yaml"))
	require.NoError(t, err)
	require.Equal(t, os.FileMode(0o600), info.Mode())
	c, err := sources.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"gate", "yard"}, names(c))
	require.Equal(t, "rtsp://viewer:pass@192.0.2.10/${SECRET}", c.Cameras[1].URI, "no variable of the program goes to a camera")
	require.Equal(t, "rtsp://192.0.2.10/main", c.Cameras[1].Record)
	listed, err := added.Names()
	require.NoError(t, err)
	require.Equal(t, []string{"yard"}, listed)

	zones := &Zones{Sources: sources}
	_, _, err = zones.Get("yard")
	require.NoError(t, err, "an added camera can have zones")

	require.NoError(t, os.WriteFile(sources.File, []byte("model: {path: demo}\ncameras: [{name: yard, uri: demo}]\n"), 0o600))
	c, err = sources.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"yard"}, names(c))
	require.Equal(t, "demo", c.Cameras[0].URI, "a configured camera takes the place of an added one")
	require.NoError(t, os.WriteFile(sources.File, []byte("model: {path: demo}\n"), 0o600))
	require.ErrorContains(t, added.Remove("yard"), "the last camera cannot be removed")
	require.NoError(t, added.Add(AddedCamera{Name: "usb", URI: "/dev/video7"}))
	require.NoError(t, added.Remove("yard"))
	c, err = sources.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"usb"}, names(c))
}

func TestAddedCamerasThatAreRefused(t *testing.T) {
	sources, state := addedSources(t, "model: {path: demo}\ncameras: [{name: gate, uri: demo}]\n")
	added := &AddedCameras{Sources: sources}
	for _, test := range []struct {
		camera AddedCamera
		want   string
	}{
		{AddedCamera{Name: "gate", URI: "demo"}, `there is a camera "gate" already`},
		{AddedCamera{Name: "", URI: "demo"}, "name"},
		{AddedCamera{Name: "a/b", URI: "demo"}, "a/b"},
		{AddedCamera{Name: "yard", URI: ""}, "must be an address"},
		{AddedCamera{Name: "yard", URI: "/etc/passwd"}, "are added in the configuration file"},
		{AddedCamera{Name: "yard", URI: "file:///etc/passwd"}, "are added in the configuration file"},
		{AddedCamera{Name: "yard", URI: "gst:filesrc location=/etc/passwd ! filesink location=/tmp/x"}, "are added in the configuration file"},
		{AddedCamera{Name: "yard", URI: "rtsp://192.0.2.1/", Record: "/var/lib/x"}, "are added in the configuration file"},
		{AddedCamera{Name: "yard", URI: "rtsp://192.0.2.1/#speed=2"}, "speed"},
	} {
		require.ErrorContains(t, added.Add(test.camera), test.want, "%+v", test.camera)
	}
	require.NoFileExists(t, filepath.Join(state, "cameras.yaml"))
	require.ErrorContains(t, added.Remove("gate"), "remove it from the configuration file")
	require.ErrorContains(t, added.Remove("none"), "was not added here")

	require.NoError(t, os.MkdirAll(state, 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(state, "cameras.yaml"), []byte("cameras: [{nme: x}]\n"), 0o600))
	_, err := sources.Load()
	require.ErrorContains(t, err, "cameras added on the page")
	require.ErrorContains(t, err, "mend it, or remove it")
}

// TestCamerasOfTheCommandLineAreAll: who names cameras for one run does not want others.
func TestCamerasOfTheCommandLineAreAll(t *testing.T) {
	sources, _ := addedSources(t, "model: {path: demo}\ncameras: [{name: gate, uri: demo}]\n")
	require.NoError(t, (&AddedCameras{Sources: sources}).Add(AddedCamera{Name: "yard", URI: "/dev/video7"}))
	sources.Cameras = []string{"demo"}
	c, err := sources.Load()
	require.NoError(t, err)
	require.Equal(t, []string{"cam0"}, names(c))
	require.ErrorContains(t, (&AddedCameras{Sources: sources}).Writable(), "those of --camera: start it with --config FILE")
}

// TestAnAddedCameraNeedsAModel: the demo network knows nothing that a real camera shows, and the next start would be refused.
func TestAnAddedCameraNeedsAModel(t *testing.T) {
	sources, state := addedSources(t, "cameras: [{name: gate, uri: demo}]\n")
	require.ErrorContains(t, (&AddedCameras{Sources: sources}).Add(AddedCamera{Name: "usb", URI: "/dev/video7"}), "no model is set")
	require.NoFileExists(t, filepath.Join(state, "cameras.yaml"))
}

func TestWithLogin(t *testing.T) {
	for _, test := range []struct{ address, user, password, want string }{
		{"rtsp://192.0.2.1/a?b=@", "", "", "rtsp://192.0.2.1/a?b=@"},
		{"rtsp://192.0.2.1/a?b=@", "me", "p@ss:w/rd", "rtsp://me:p%40ss%3Aw%2Frd@192.0.2.1/a?b=@"},
		{"https://cam.example", "me", "x", "https://me:x@cam.example"},
		{"", "me", "x", ""},
	} {
		got, err := WithLogin(test.address, test.user, test.password)
		require.NoError(t, err)
		require.Equal(t, test.want, got)
	}
	for _, address := range []string{"0", "csi://0", "rtsp://you:y@192.0.2.1/a"} {
		_, err := WithLogin(address, "me", "x")
		require.Error(t, err, address)
	}
}
