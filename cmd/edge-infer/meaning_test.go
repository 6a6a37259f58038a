package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
)

// What a model's file leaves open is said by flags, by a file beside it or by its metadata, and every command that opens a model hears it
// in the same way: each mistake is its one line in all of them, and what is right is taken by all of them.
// One network and one table serve all commands, which is why they are in one function.
func TestEveryCommandHearsWhatIsSaidOfAModel(t *testing.T) {
	t.Parallel()
	data, dir := programtest.Scenes(t, 5, 99), t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	two, three := file("two.txt", "a\nb\n"), file("three.txt", "a\nb\nc\n")
	model := func(name, beside string, metadata map[string]string) string {
		path := filepath.Join(dir, name+".onnx")
		require.NoError(t, os.Rename(constant(t, 0, []int64{1, 2}, metadata), path))
		if beside != "" {
			require.NoError(t, os.WriteFile(engine.PreprocessFile(path), []byte(beside), 0o600))
		}
		return path
	}
	silent, misled, described := model("silent", "", nil), model("misled", "{mean: fast}", nil), model("described", "torchvision", nil)
	telling := model("telling", "", map[string]string{"task": "classify", "names": "{0: 'a', 1: 'b'}", "preprocess": "torchvision"})
	const unsaid = "nothing says how a classifier's images are cropped and scaled"
	for _, c := range []struct {
		command string // with MODEL in it
		decodes bool   // it has to know what the outputs mean
		serves  bool   // it does not end by itself
	}{
		{command: "run --camera demo?width=64&height=64&frames=3 --mqtt off --web off --engine onnxruntime=cpu --model MODEL", decodes: true},
		{command: "infer " + data + "/images --engine onnxruntime=cpu --model MODEL", decodes: true},
		{command: "validate --data " + data + " --reference onnxruntime=cpu --limit 2 --engine onnxruntime=cpu --model MODEL", decodes: true},
		{command: "bench --what loop --duration 50ms --warmup 10ms --engine onnxruntime=cpu --model MODEL", decodes: true},
		{command: "inspect MODEL --engine onnxruntime=cpu", decodes: true},
		{command: "doctor --mqtt off --root " + t.TempDir() + " --engine onnxruntime=cpu --model MODEL", decodes: true},
		{command: "quantize MODEL --precision fp16 --gate 0 --images " + data + "/images -o " + filepath.Join(dir, "out.onnx")},
		{command: "build MODEL --gate 0 -o " + filepath.Join(dir, "out.plan")},
		{command: "export triton --repository " + t.TempDir() + " --engine onnxruntime=cpu --model MODEL"},
		{command: "serve MODEL --listen 127.0.0.1:0 --engine onnxruntime=cpu", serves: true},
	} {
		name, _, _ := strings.Cut(c.command, " ")
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			says := func(model string, said ...string) string {
				arguments := append(strings.Fields(strings.ReplaceAll(c.command, "MODEL", model)), said...)
				output, _ := programtest.Command(t, arguments...).CombinedOutput()
				return string(output)
			}
			assert.Contains(t, says(misled, "--labels", two), "misled.preprocess.yaml: preprocess line 1: ")
			assert.Contains(t, says(silent, "--labels", two, "--preprocess", "torchvison"),
				`preprocess preset: "torchvison" is not known, did you mean torchvision?`)
			assert.Contains(t, says(silent, "--labels", two, "--preprocess", "torchvision", "--imgsz", "96"),
				"silent.onnx takes images of 64x64 only, not 96x96 (omit --imgsz)")
			assert.Contains(t, says(silent, "--labels", dir+"/none.txt"), "labels: open "+dir+"/none.txt: no such file")
			assert.Contains(t, says(silent, "--layout", "v8"), `"v8"`)
			assert.Contains(t, says(silent, "--activation", "tanh"), `"tanh" must be auto, softmax or sigmoid`)
			if c.serves {
				return
			}
			if c.decodes {
				assert.Contains(t, says(silent, "--labels", two), unsaid)
				assert.Contains(t, says(silent, "--preprocess", "torchvision"), "name them with --labels FILE")
				assert.Contains(t, says(telling, "--labels", three), "3 labels")
				assert.Contains(t, says(telling, "--layout", "yolov5"), "layout yolov5 needs, ")
			}
			for _, right := range [][]string{
				{silent, "--labels", two, "--preprocess", "torchvision"},
				{silent, "--layout", "classify", "--preprocess", "torchvision"},
				{described, "--labels", two},
				{telling},
				{telling, "--activation", "sigmoid"},
			} {
				said := says(right[0], right[1:]...)
				assert.NotContains(t, said, unsaid, right)
				assert.NotContains(t, said, "--layout", right)
				assert.NotContains(t, said, "--activation", right)
			}
		})
	}
}
