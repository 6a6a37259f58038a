package main

import (
	"encoding/json"
	"image"
	"image/png"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
)

// openSized writes a network that takes pictures of any size and answers with one box in pixels of what it is given.
func openSized(t *testing.T) string {
	t.Helper()
	b := testnet.NewBuilder(1)
	rows := make([]float32, 300*6)
	copy(rows, []float32{64, 32, 128, 96, .9, 0})
	nothing := b.Node("Mul", "/none", []string{
		b.Node("ReduceMax", "/most", []string{b.Input("images", 1, 3, -1, -1)}), b.Floats("zero", []float32{0}, 1, 1, 1),
	})
	nothing = b.Node("Squeeze", "/flat", []string{nothing, b.Ints("axis", 0)})
	b.Rename(b.Node("Add", "/rows", []string{nothing, b.Floats("rows", rows, 1, 300, 6)}), "output0")
	b.Output("output0", 1, 300, 6)
	m := b.Model(13)
	for key, text := range map[string]string{"task": "detect", "imgsz": "[640, 640]", "stride": "32", "names": "{0: 'thing'}"} {
		m.SetMetadata(key, text)
	}
	path := filepath.Join(t.TempDir(), "open.onnx")
	require.NoError(t, m.Save(path))
	return path
}

// A network that leaves its size open sees pictures in the shape that wastes least of it, unless it is told another.
func TestOpenSizeIsFitted(t *testing.T) {
	t.Parallel()
	model, folder := openSized(t), t.TempDir()
	pictures := filepath.Join(folder, "pictures")
	require.NoError(t, os.Mkdir(pictures, 0o755))
	file, err := os.Create(filepath.Join(pictures, "a.png"))
	require.NoError(t, err)
	require.NoError(t, png.Encode(file, image.NewGray(image.Rect(0, 0, 1280, 720))))
	require.NoError(t, file.Close())
	for _, test := range []struct {
		size string
		box  [4]float64
	}{{"", [4]float64{128, 40, 256, 168}}, {"384x640", [4]float64{128, 40, 256, 168}}, {"480x640", [4]float64{128, 0, 256, 72}}} {
		output, err := programtest.Command(t, "infer", "--model", model, "--engine", "onnxruntime=cpu", "--json", "--imgsz", test.size,
			pictures).Output()
		require.NoError(t, err)
		var seen infer.Seen
		require.NoError(t, json.Unmarshal(output, &seen))
		require.Len(t, seen.Detections, 1)
		assert.Equal(t, test.box, seen.Detections[0].Box, test.size)
	}
	output, err := programtest.Command(t, "inspect", model, "--engine", "onnxruntime=cpu").Output()
	require.NoError(t, err)
	assert.Regexp(t, `(?m)^picture +640x640: letterbox.* \(the model leaves the size open: `, string(output))

	state := []string{"STATE_DIRECTORY=" + filepath.Join(folder, "state")}
	run := func() *programtest.Program {
		return programtest.StartWith(t, state, "--camera", "belt="+pictures, "--loop", "--model", model, "--engine", "onnxruntime=cpu", "--mqtt",
			"off")
	}
	p := run()
	assert.Regexp(t, "^640x384: letterbox", p.PrintedAfter("pictures taken as "))
	p.Discard()
	known := filepath.Join(folder, "state", "pictures.json")
	require.Eventually(t, func() bool { _, err := os.Stat(known); return err == nil }, time.Minute, 20*time.Millisecond)
	require.NoError(t, p.Stop(syscall.SIGTERM))
	require.NoError(t, os.RemoveAll(pictures))
	p = run() // the camera is away
	assert.Regexp(t, "^640x384: letterbox", p.PrintedAfter("pictures taken as "))
	p.Discard()
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
