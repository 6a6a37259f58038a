package diagnose

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/telemetry"
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
	bucket := write("bucket", "[default]\naws_access_key_id = hunt-id\naws_secret_access_key=hunt/bucket\n")
	hook := write("hook", "whsec_hunthunthunthunthunthunthunthunt\n")
	camera, server := write("camera", "hunt/camera?1 &\n"), write("server", "hunt-server")
	settings := &config.Sources{
		File: write("edge-infer.yaml", `name: gate
cameras:
  - {name: yard, uri: "rtsp://admin:${file:`+camera+`}@192.0.2.1/stream"}
  - {name: door, uri: "http://192.0.2.2/video?user=viewer&pwd=hunt-query"}
  - {name: lane, uri: demo, record: "rtsp://root:hunt-record@192.0.2.5/a"}
  - {name: roof, uri: "rtsp://root:hunt-plain@192.0.2.3/a"}
  - {name: pipe, uri: "gst:rtspsrc location=rtsp://u:hunt-pipe@192.0.2.4 user-pw=hunt-pw ! decodebin"}
mqtt: {url: "tls://broker:8883", password_file: `+brokers+`}
web: {listen: "127.0.0.1:0", token_file: `+pages+`}
remote: {password_file: `+server+`, user: "${SERVER_USER}"}
upload: {endpoint: "https://s3.example.org", bucket: clips, credentials_file: `+bucket+`}
webhooks:
  - {name: chat, url: "https://chat.example.org/services/T0/hunt-path?key=hunt-key", secret: whsec_hunthunthunthunthunthunthunthunt+a}
  - {name: alarm, url: "http://u:hunt-hook@192.0.2.9/", secret_file: `+hook+`}
`),
		Environment: func(name string) (string, bool) {
			value, set := map[string]string{
				"EDGE_INFER_MQTT_PASSWORD": "hunt-variable", "SERVER_USER": "hunt-user", "EDGE_INFER_REMOTE_PASSWORD": "hunt-remote",
				"AWS_SECRET_ACCESS_KEY": "hunt-aws",
			}[name]
			return value, set
		},
		Scope: config.AllSections(),
	}
	c, err := settings.Load()
	require.NoError(t, err)
	log := write("log", `gate edge-infer: open rtsp://admin:hunt%2Fcamera%3F1%20&@192.0.2.1/stream: refused
plain hunt-record, hunt-broker, hunt-page, hunt-server, hunt-variable, hunt-remote, hunt-user and hunt/camera?1 &
posted to https://chat.example.org/services/T0/hunt-path?key=hunt-key and /services/T0/hunt-path?key=hunt-key with
whsec_hunthunthunthunthunthunthunthunt and whsec_hunthunthunthunthunthunthunthunt+a
upload failed with hunt-id and hunt/bucket, hunt-aws
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
		Log: []string{"cat", log}, Commands: [][]string{{"cat", log}, {filepath.Join(dir, "none")}},
	}
	write("etc/nvpmodel.conf", "# hunt-plain\n< POWER_MODEL ID=0 NAME=15W >\n")
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
		"mqtt.password_file", "the last line", "webhooks.chat", "https://chat.example.org ", "edge-infer.yaml line 9",
		"\n## Last lines of the log\n", "/etc/nvpmodel.conf\t# ***\\n< POWER_MODEL ID=0 NAME=15W >\n",
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

// TestMachineFilesAreReplayed: from the files in a bundle the sensors of a board are read again, on any machine.
func TestMachineFilesAreReplayed(t *testing.T) {
	for _, board := range []string{"agx-orin", "orin-nano", "thor", "xavier", "plain-pc"} {
		recorded, err := os.ReadFile(filepath.Join("..", "telemetry", "testdata", board+".txt"))
		require.NoError(t, err)
		unpack := func(lines string) string {
			root := t.TempDir()
			for line := range strings.Lines(lines) {
				path, content, found := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
				if !found {
					continue
				}
				file := filepath.Join(root, path)
				require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o755))
				content = strings.NewReplacer(`\n`, "\n", `\0`, "\x00").Replace(content) + "\n"
				require.NoError(t, os.WriteFile(file, []byte(content), 0o600))
			}
			return root
		}
		read := func(root string) *telemetry.Reading {
			r := telemetry.Reader{Root: root, FilesOnly: true, Disk: "/no/such/directory"}
			defer r.Close()
			reading := r.Read()
			reading.Time = time.Time{}
			return reading
		}
		root := unpack(string(recorded))
		b := &Bundle{
			Settings: &config.Sources{Scope: config.AllSections()}, Config: config.Default(), Root: root, Devices: &Devices{},
			Log: []string{"true"}, Commands: [][]string{{"true"}},
		}
		_, section, found := strings.Cut(string(b.text(t.Context())), "## "+machineFilesTitle+"\n\n")
		require.True(t, found)
		again := read(unpack(strings.ReplaceAll("\n"+section, "\n    ", "\n")[1:]))
		require.Equal(t, read(root), again, board)
		if board != "plain-pc" {
			require.NotEmpty(t, again.Temperatures, board)
		}
	}
}
