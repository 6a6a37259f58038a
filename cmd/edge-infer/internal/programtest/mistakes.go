package programtest

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/demo"
)

// Mistake is a valid configuration file with which no run can start.
type Mistake struct {
	Name, YAML string
	Want       string // part of the error
	InUse      bool   // an address is in use, which a check cannot distinguish from a running daemon
}

// Mistakes returns configurations whose error is only found by opening something. sound is a valid configuration that each extends.
func Mistakes(t testing.TB, sound string) []Mistake {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	none := filepath.Join(dir, "none")
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	t.Cleanup(func() { _ = taken.Close() })
	broken, short, empty := file("broken.onnx", "no model"), file("short", "1234\n"), file("empty", "\n")
	role := file("role", "root 0123456789abcdef\n")
	all := slices.Concat(pipes(t, dir), []Mistake{
		{Name: "model missing", YAML: "model: {path: " + none + "}", Want: "no such file"},
		{Name: "model broken", YAML: "model: {path: " + broken + "}", Want: "broken.onnx"},
		{
			Name: "no images", YAML: "model: {path: " + Project("engine/enginetest/testdata/tensors.onnx") + "}",
			Want: "the model takes no images",
		},
		{Name: "labels missing", YAML: "model: {labels: " + none + "}", Want: "labels: open"},
		{Name: "labels of too many classes", YAML: "model: {labels: " + file("labels", "one\ntwo\n") + "}", Want: "2 labels"},
		{Name: "layout", YAML: "model: {layout: yolov5}", Want: "yolov5"},
		{Name: "library missing", YAML: "engine: {backend: onnxruntime=cpu, library: " + none + ".so}", Want: "none.so"},
		{Name: "no such engine here", YAML: "engine: {backend: tensorrt, library: " + none + ".so}", Want: "CUDA"},
		{Name: "authority missing", YAML: "mqtt: {url: 'tls://127.0.0.1:1', ca: " + none + "}", Want: "read CA certificates"},
		{Name: "authority empty", YAML: "mqtt: {url: 'tls://127.0.0.1:1', ca: " + empty + "}", Want: "no PEM certificate in it"},
		{
			Name: "certificate missing", YAML: "mqtt: {url: 'tls://127.0.0.1:1', certificate: " + none + ", key: " + none + "}",
			Want: "load certificate",
		},
		{Name: "password missing", YAML: "mqtt: {url: 'tcp://127.0.0.1:1', user: me, password_file: " + none + "}", Want: "read password file"},
		{Name: "broker without a password", YAML: "mqtt: {user: me}", Want: `user "me" has no password`},
		{Name: "broker's port", YAML: "mqtt: {listen: '127.0.0.1:99999'}", Want: "99999"},
		{Name: "broker's address in use", YAML: fmt.Sprintf("mqtt: {listen: '%s'}", taken.Addr()), Want: "address already in use", InUse: true},
		{Name: "token missing", YAML: "web: {listen: '127.0.0.1:0', token_file: " + none + "}", Want: "web token: open"},
		{Name: "token empty", YAML: "web: {listen: '127.0.0.1:0', token_file: " + empty + "}", Want: "is empty"},
		{Name: "token short", YAML: "web: {listen: '127.0.0.1:0', token_file: " + short + "}", Want: "the token has 4 characters, it needs 16"},
		{
			Name: "page's certificate missing", YAML: "web: {listen: '127.0.0.1:0', certificate: " + none + ", key: " + none + "}",
			Want: "web: certificate",
		},
		{Name: "page for everybody", YAML: "web: {listen: '0.0.0.0:0'}", Want: "set a token"},
		{Name: "page's port", YAML: "web: {listen: '127.0.0.1:99999'}", Want: "99999"},
		{Name: "page's address in use", YAML: fmt.Sprintf("web: {listen: '%s'}", taken.Addr()), Want: "address already in use", InUse: true},
		{Name: "events in a file", YAML: "events: {directory: " + short + "/best}", Want: "events.directory"},
		{Name: "events where nothing can be written", YAML: "events: {directory: /proc/x}", Want: "events.directory"},
		{Name: "token of no role", YAML: "web: {listen: '127.0.0.1:0', token_file: " + role + "}", Want: "token file: line 1"},
	})
	for i := range all {
		all[i].YAML = sound + all[i].YAML + "\n"
	}
	video := "cameras: [{name: belt, uri: " + none + ".mp4}]\n"
	return append(all, Mistake{Name: "video missing", YAML: "name: gate\nmodel: {path: demo}\n" + video, Want: "none.mp4"},
		Mistake{Name: "no model", YAML: "name: gate\n" + video, Want: "no model is set"})
}

// pipes returns mistakes of settings that name a pipe, which blocks who opens it to read.
func pipes(t testing.TB, dir string) (all []Mistake) {
	pipe, model := filepath.Join(dir, "pipe"), filepath.Join(dir, "beside.onnx")
	require.NoError(t, os.WriteFile(model, demo.Model(), 0o600))
	for _, path := range []string{pipe, engine.PreprocessFile(model)} {
		require.NoError(t, syscall.Mkfifo(path, 0o600))
	}
	const server = "engine: {backend: 'triton=SCHEME://127.0.0.1:1/net'}\nremote: "
	plain, encrypted := strings.Replace(server, "SCHEME", "grpc", 1), strings.Replace(server, "SCHEME", "grpcs", 1)
	for _, test := range [][3]string{
		{"model", "model: {path: PIPE}", "model PIPE"},
		{"labels", "model: {labels: PIPE}", "labels: read PIPE"},
		{"preprocessing", "model: {path: " + model + "}", "preprocess: read " + engine.PreprocessFile(model)},
		{"authority", "mqtt: {url: 'tls://127.0.0.1:1', ca: PIPE}", "read CA certificates: read PIPE"},
		{"certificate", "mqtt: {url: 'tls://127.0.0.1:1', certificate: PIPE, key: PIPE}", "load certificate PIPE: read PIPE"},
		{"password", "mqtt: {url: 'tcp://127.0.0.1:1', user: me, password_file: PIPE}", "open mqtt: read password file: read PIPE"},
		{"broker's password", "mqtt: {user: me, password_file: PIPE}", "open embedded broker: read password file: read PIPE"},
		{"page's token", "web: {listen: '127.0.0.1:0', token_file: PIPE}", "web token: read PIPE"},
		{"page's certificate", "web: {listen: '127.0.0.1:0', certificate: PIPE, key: PIPE}", "web: certificate PIPE: read PIPE"},
		{"page's password", "web: {listen: '127.0.0.1:0', user: me, password_file: PIPE}", "web password: read PIPE"},
		{
			"secret", "webhooks: [{name: alarm, url: 'http://127.0.0.1:1/', secret_file: PIPE}]",
			"webhook alarm: signing secret: read password file: read PIPE",
		},
		{"server's token", plain + "{token_file: PIPE}", "cannot read the server's token: remote: read PIPE"},
		{"server's authority", encrypted + "{ca: PIPE}", "read CA certificates: read PIPE"},
		{"server's password", plain + "{user: me, password_file: PIPE}", "cannot read the server's token: remote: read PIPE"},
	} {
		for i := range test {
			test[i] = strings.ReplaceAll(test[i], "PIPE", pipe)
		}
		all = append(all, Mistake{Name: test[0] + " in a pipe", YAML: test[1], Want: test[2] + ": a pipe or a device"})
	}
	return all
}
