package main

import (
	"bytes"
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// openSized writes a network that takes images of any size and answers with one box in pixels of what it is given.
func openSized(t *testing.T) string {
	t.Helper()
	b := testnet.NewBuilder(1)
	rows := make([]float32, 300*6)
	copy(rows, []float32{64, 32, 128, 96, .9, 0})
	nothing := b.Node("Mul", "/none", []string{
		b.Node("ReduceMax", "/most", []string{b.Input("images", 1, 3, -1, -1)}), b.Floats("zero", []float32{0}, 1, 1, 1),
	})
	nothing = b.Node("Squeeze", "/flat", []string{nothing, b.Ints("axis", 0)})
	b.Rename(b.Node("Add", "/rows", []string{b.Floats("rows", rows, 1, 300, 6), nothing}), "output0")
	b.Output("output0", 1, 300, 6)
	m := b.Model(13)
	for key, text := range map[string]string{"task": "detect", "imgsz": "[640, 640]", "stride": "32", "names": "{0: 'thing'}"} {
		m.SetMetadata(key, text)
	}
	path := filepath.Join(t.TempDir(), "open.onnx")
	require.NoError(t, m.Save(path))
	return path
}

// A network that leaves its size open sees images in the shape that wastes least of it, unless it is told another.
func TestOpenSizeIsFitted(t *testing.T) {
	t.Parallel()
	model, dir := openSized(t), t.TempDir()
	images := filepath.Join(dir, "frames")
	require.NoError(t, os.Mkdir(images, 0o755))
	file, err := os.Create(filepath.Join(images, "a.png"))
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, image.NewGray(image.Rect(0, 0, 1280, 720))))
	require.NoError(t, file.Close())
	for _, test := range []struct {
		size string
		box  [4]float64
	}{{"", [4]float64{128, 40, 256, 168}}, {"384x640", [4]float64{128, 40, 256, 168}}, {"480x640", [4]float64{128, 0, 256, 72}}} {
		output := programtest.Output(t, "infer", "--model", model, "--engine", "onnxruntime=cpu", "--json", "--imgsz", test.size,
			images)
		var seen infer.Seen
		require.NoError(t, json.Unmarshal(output, &seen))
		require.Len(t, seen.Detections, 1)
		assert.Equal(t, test.box, seen.Detections[0].Box, test.size)
	}
	// Labelled images as well, and the reference sees what the network saw; tiles are squares.
	require.NoError(t, os.Mkdir(filepath.Join(dir, "labels"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "labels", "a.txt"), []byte("0 0.15 0.1444 0.1 0.1778\n"), 0o600))
	require.NoError(t, os.Rename(images, filepath.Join(dir, "images")))
	validate := func(flags ...string) (measured accuracy.Report) {
		arguments := []string{"validate", "--data", dir, "--model", model, "--engine", "onnxruntime=cpu", "--json"}
		output := programtest.Output(t, append(arguments, flags...)...)
		require.NoError(t, json.Unmarshal(output, &measured))
		return measured
	}
	measured := validate("--reference", "onnxruntime=cpu")
	assert.Contains(t, measured.Image, "640x384: letterbox")
	assert.Equal(t, measured.Image, measured.Reference.Image)
	assert.InDelta(t, 1, *measured.MAP, 1e-9)
	assert.Contains(t, validate("--imgsz", "480x640").Image, "640x480: letterbox")
	assert.Contains(t, validate("--tile", "320", "--convention", "service").Image, "640x640: letterbox")
	require.NoError(t, os.Rename(filepath.Join(dir, "images"), images))

	output := programtest.Output(t, "inspect", model, "--engine", "onnxruntime=cpu")
	assert.Regexp(t, `(?m)^image +640x640: letterbox.* \(the model leaves the size open: `, string(output))

	state := []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}
	run := func() *programtest.Program {
		return programtest.StartWith(t, state, "--camera", "belt="+images, "--loop", "--model", model, "--engine", "onnxruntime=cpu", "--mqtt",
			"off")
	}
	p := run()
	assert.Regexp(t, `^640x384\)`, p.PrintedAfter(", input "))
	p.Discard()
	known := filepath.Join(dir, "state", "images.json")
	require.Eventually(t, func() bool { _, err := os.Stat(known); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NoError(t, os.RemoveAll(images))
	p = run() // the camera is away
	assert.Regexp(t, `^640x384\)`, p.PrintedAfter(", input "))
	p.Discard()
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// A server's network that leaves its size open is given images in their own shape, though no file here says that it does; a server of
// this program takes tensors of any size then.
func TestOpenSizeOnAServerIsFitted(t *testing.T) {
	t.Parallel()
	model, dir := openSized(t), t.TempDir()
	img := filepath.Join(dir, "a.png")
	var text bytes.Buffer
	require.NoError(t, png.Encode(&text, image.NewGray(image.Rect(0, 0, 1280, 720))))
	require.NoError(t, os.WriteFile(img, text.Bytes(), 0o600))
	p := programtest.Start(t, "serve", model, "--engine", "onnxruntime=cpu", "--listen", "127.0.0.1:0")
	address := strings.TrimSpace(p.PrintedAfter("model open at "))
	assert.Equal(t, "images float32 [1 3 -1 -1]", strings.TrimSpace(p.PrintedAfter("takes ")), "tensors of any size")
	p.Discard()
	for _, scheme := range []string{"grpc", "http"} {
		output := programtest.Output(t, "infer", img, "--engine", "triton="+scheme+"://"+address+"/open", "--json")
		var seen infer.Seen
		require.NoError(t, json.Unmarshal(output, &seen))
		require.Len(t, seen.Detections, 1)
		assert.Equal(t, [4]float64{128, 40, 256, 168}, seen.Detections[0].Box, scheme)
	}
	camera := programtest.Start(t, "--camera", "belt=demo?width=640&height=360&fps=5", "--mqtt", "off",
		"--engine", "triton=grpc://"+address+"/open")
	assert.Regexp(t, `^640x384\)`, camera.PrintedAfter(", input "))
	camera.Discard()
	require.NoError(t, camera.Stop(syscall.SIGTERM))
	require.NoError(t, p.Stop(syscall.SIGTERM))

	p = programtest.Start(t, "serve", model, "--engine", "onnxruntime=cpu", "--listen", "127.0.0.1:0", "--imgsz", "480x640")
	address = strings.TrimSpace(p.PrintedAfter("model open at "))
	assert.Equal(t, "images float32 [1 3 480 640]", strings.TrimSpace(p.PrintedAfter("takes ")), "of that size alone")
	p.Discard()
	output := programtest.Output(t, "infer", img, "--engine", "triton=http://"+address+"/open", "--json")
	var seen infer.Seen
	require.NoError(t, json.Unmarshal(output, &seen))
	require.Len(t, seen.Detections, 1)
	assert.Equal(t, [4]float64{128, 0, 256, 72}, seen.Detections[0].Box, "whoever asks is told so")
	require.NoError(t, p.Stop(syscall.SIGTERM))
}

// A camera that comes by a reload and has images of another shape does not have the network opened again; the log says what would.
func TestACameraThatDoesNotFitIsTold(t *testing.T) {
	t.Parallel()
	model, dir := openSized(t), t.TempDir()
	path := filepath.Join(dir, "edge-infer.yaml")
	write := func(cameras string) {
		require.NoError(t, os.WriteFile(path, []byte("mqtt: {url: 'off'}\nengine: {backend: onnxruntime=cpu}\nmodel: {path: "+model+
			"}\ncameras:\n  - {name: belt, uri: 'demo?width=640&height=360&fps=5'}\n"+cameras), 0o600))
	}
	write("")
	p := programtest.StartWith(t, []string{"STATE_DIRECTORY=" + filepath.Join(dir, "state")}, "--config", path)
	assert.Regexp(t, `^640x384\)`, p.PrintedAfter(", input "))
	p.Discard()
	for _, camera := range []string{"wide, uri: 'demo?width=320&height=180&fps=5'", "tall, uri: 'demo?width=360&height=640&fps=5'"} {
		write("  - {name: " + camera + "}\n")
		require.NoError(t, p.Command.Process.Signal(syscall.SIGHUP))
		known := func() bool {
			text, err := os.ReadFile(filepath.Join(dir, "state", "images.json"))
			return err == nil && strings.Contains(string(text), strings.SplitN(camera, ",", 2)[0])
		}
		require.Eventually(t, known, programtest.Patience, 20*time.Millisecond, "%s", p.Stderr)
	}
	p.Logged("input shape was chosen for other cameras; restart to refit it or set --imgsz")
	require.NoError(t, p.Stop(syscall.SIGTERM))
	assert.Equal(t, 1, strings.Count(p.Stderr.String(), "input shape was chosen for other cameras"), "%s", p.Stderr)
	assert.Contains(t, p.Stderr.String(), "runs=640x384 would_fit=640x640")
}
