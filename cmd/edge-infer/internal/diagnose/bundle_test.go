package diagnose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// TestNoSecretGetsIn puts secrets wherever a machine has them, and has logs and findings tell them in every form.
func TestNoSecretGetsIn(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	// Each of them begins with the same letters, which nothing else has.
	brokers, pages := write("mqtt", "hunt-broker\n"), write("page", "hunt-page")
	camera, server := write("camera", "hunt/camera?1 &\n"), write("server", "hunt-server")
	settings := &config.Sources{
		File: write("edge-infer.yaml", `name: gate
cameras:
  - {name: yard, uri: "rtsp://admin:${file:`+camera+`}@192.0.2.1/stream"}
  - {name: door, uri: "http://192.0.2.2/video?user=viewer&pwd=hunt-query"}
  - {name: roof, uri: "rtsp://root:hunt-plain@192.0.2.3/a"}
  - {name: pipe, uri: "gst:rtspsrc location=rtsp://u:hunt-pipe@192.0.2.4 user-pw=hunt-pw ! decodebin"}
mqtt: {url: "tls://broker:8883", password_file: `+brokers+`}
web: {listen: "127.0.0.1:0", token_file: `+pages+`}
remote: {password_file: `+server+`, user: "${SERVER_USER}"}
`),
		Environment: func(name string) (string, bool) {
			value, set := map[string]string{
				"EDGE_INFER_MQTT_PASSWORD": "hunt-variable", "SERVER_USER": "hunt-user", "EDGE_INFER_REMOTE_PASSWORD": "hunt-remote",
			}[name]
			return value, set
		},
		Scope: config.AllSections(),
	}
	c, err := settings.Load()
	require.NoError(t, err)
	log := write("log", `gate edge-infer: open rtsp://admin:hunt%2Fcamera%3F1%20&@192.0.2.1/stream: refused
plain hunt-broker, hunt-page, hunt-server, hunt-variable, hunt-remote, hunt-user and hunt/camera?1 &
another program: password=hunt-1 token: hunt-2 {"secret":"hunt-3"} Authorization: Bearer hunt-4
Authorization: Basic hunt-5==
mqtt connect mqtts://someone:hunt-6@broker and ?access_token=hunt-7&x=1
-----BEGIN RSA PRIVATE KEY-----
hunt-8
-----END RSA PRIVATE KEY-----
the last line
`)
	write("etc/nv_tegra_release", "# R36 (release), REVISION: 4.3\nmore\n")
	write("etc/os-release", "ID=debian\nPRETTY_NAME=\"Debian GNU/Linux 12\"\n")
	b := &Bundle{
		Program: "edge-infer 1.2.3", Settings: settings, Config: c, Root: dir, Devices: &Devices{NoGPU: "no driver"},
		Checks: Checks{
			{Name: "camera yard", Status: Fail, Detail: "rtsp://admin:hunt/camera?1 &@192.0.2.1: 401", Remedy: "see hunt-plain"},
		},
		Log: []string{"cat", log},
	}
	path := filepath.Join(dir, "report.md")
	require.NoError(t, b.Write(t.Context(), path))
	info, err := os.Stat(path)
	require.NoError(t, err)
	require.EqualValues(t, 0o600, info.Mode().Perm())
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	for line := range strings.Lines(string(text)) {
		require.NotContains(t, line, "hunt")
	}
	for _, want := range []string{
		"edge-infer 1.2.3", "R36 (release), REVISION: 4.3", "Debian GNU/Linux 12", "FAIL  camera yard", "no driver", "192.0.2.3",
		"mqtt.password_file", "the last line", "edge-infer.yaml line 8", "\n## Last lines of the log\n",
	} {
		require.Contains(t, string(text), want)
	}

	b.Log = []string{filepath.Join(dir, "none")}
	require.NoError(t, b.Write(t.Context(), path), "a machine without a journal")
	require.ErrorContains(t, b.Write(t.Context(), filepath.Join(dir, "none", "x")), "report: ")
}

func TestNamesOfVariablesOnly(t *testing.T) {
	require.Equal(t, []string{"EDGE_INFER_A", "LD_LIBRARY_PATH"},
		variables([]string{"LD_LIBRARY_PATH=/x", "HOME=/root", "EDGE_INFER_A=secret"}))
}

func FuzzRedact(f *testing.F) {
	f.Add("password=", "x y")
	f.Add("a\n", "\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		const secret = "hunter-2-forty-two"
		require.NotContains(t, newRedactor([]string{secret}).redact(before+secret+after), secret)
	})
}
