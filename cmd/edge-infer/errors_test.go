package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"google.golang.org/protobuf/proto"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
)

// What a person can get wrong gives one line that says what is wrong and what to do, and the right exit status.
// It is as long as its table.
func TestMistakes(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, content []byte) string {
		path := filepath.Join(dir, name)
		require.NoError(t, os.WriteFile(path, content, 0o600))
		return path
	}
	text := file("text.onnx", []byte("hello\n"))
	empty := file("empty.onnx", nil)
	truncated := file("truncated.onnx", demo.Model()[:5000])
	badConfig := file("bad.yaml", []byte("mqtt:\n  urll: off\n"))
	labels := file("labels.txt", []byte("one\ntwo\n"))
	img := file("image.jpg", []byte("not an image"))
	source, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	source.Proto.OpsetImport[0].Version = proto.Int64(99)
	newer := file("newer.onnx", nil)
	require.NoError(t, source.Save(newer))
	foreign := t.TempDir()
	for _, dir := range []string{"images", "labels"} {
		require.NoError(t, os.Mkdir(filepath.Join(foreign, dir), 0o755))
	}
	programtest.WriteImage(t, filepath.Join(foreign, "images", "a.png"), color.Black)
	require.NoError(t, os.WriteFile(filepath.Join(foreign, "labels", "b.txt"), []byte("0 0.5 0.5 0.1 0.1\n"), 0o600))
	bare, out := t.TempDir(), filepath.Join(t.TempDir(), "out.onnx")
	for _, test := range []struct {
		name   string
		args   string
		status int
		want   []string // parts of the one line
	}{
		{"nothing", "", 2, []string{"no camera: use --camera 0 for the first one, --camera demo"}},
		{"wrong flag", "--camra demo", 2, []string{"unknown flag: --camra, did you mean --camera?"}},
		{"wrong command", "rum", 2, []string{`unknown command "rum", did you mean run?`}},
		{"not a number", "--camera demo --confidence high", 2, []string{`"high"`, "--confidence"}},
		{"out of range", "--camera demo --confidence 2", 2, []string{`detect.confidence "2" must be over 0 and under 1`}},
		{"certain and untracked", "--camera demo --confidence 1 --track=off", 2, []string{`detect.confidence "1" must be over 0 and under 1`}},
		{"bad address before the model", "--camera foo://bar --model /none.onnx", 2, []string{"unknown scheme"}},
		{"bad duration", "--camera demo --duration -1s", 2, []string{"--duration and --frames must not be negative"}},
		{"bad number of frames", "--camera demo --frames -1", 2, []string{"--duration and --frames must not be negative"}},
		{"no model file", "--camera demo --model /none.onnx", 1, []string{"/none.onnx", "no such file", "name an ONNX file"}},
		{
			"a model's name", "--camera demo --model yolov8n", 1,
			[]string{"edge-infer model pull yolox-s", "yolo export model=yolov8n.pt format=onnx"},
		},
		{"a checkpoint", "infer x.jpg --model best.pt", 1, []string{"yolo export model=best.pt format=onnx"}},
		{"not a model", "--camera demo --model " + text, 1, []string{"text.onnx", "not ONNX"}},
		{"empty model", "--camera demo --model " + empty, 1, []string{"empty.onnx", "empty"}},
		{"truncated model", "--camera demo --model " + truncated, 1, []string{"truncated.onnx", "truncated"}},
		{"wrong layout", "--camera demo --layout classify", 1, []string{"model demo", "classify", "[B,nc]"}},
		{"unknown layout", "--camera demo --layout v8", 2, []string{`model.layout "v8" is no layout, did you mean yolov8 or yolov8-rows?`}},
		{"wrong labels", "--camera demo --labels " + labels, 1, []string{"2 labels"}},
		{"unknown label", "--camera demo --classes cat", 2, []string{`label "cat" is not one of the model's`, "bolt"}},
		{"unknown engine", "--camera demo --engine cuda", 2, []string{`engine.backend "cuda" must be auto, tensorrt, onnxruntime`}},
		{"no library", "--camera demo --engine onnxruntime --library /none.so", 1, []string{"onnxruntime", "/none.so", "no such file"}},
		{"no file", "--camera /none.mp4 --model demo", 1, []string{"/none.mp4", "no such file"}},
		{"no image in time", "--camera 97 --model demo --duration 1s --mqtt off", 1, []string{"no image"}},
		{"not a video", "--model demo --camera " + text, 1, []string{"text.onnx", "not a video"}},
		{"unknown scheme", "--camera foo://bar", 2, []string{"foo://bar", "unknown scheme", "rtsp://"}},
		{"secret in address", "--camera foo://user:secret@bar", 2, []string{"unknown scheme"}},
		{"bad demo size", "--camera demo?width=1", 2, []string{"width"}},
		{"memory to share", "--camera demo --remote-shared-memory=gpu", 2, []string{"--remote-shared-memory", `"gpu" is not on, cuda or off`}},
		{"bad broker", "--camera demo --mqtt broker", 2, []string{`mqtt.url "broker" must be embedded, off, or like tcp://host:1883`}},
		{"password in broker", "--camera demo --mqtt tcp://me:secret@h:1", 2, []string{"must not hold a password: use mqtt.password_file"}},
		{"no config", "--camera demo --config /none.yaml", 2, []string{"/none.yaml", "no such file"}},
		{"bad config", "--camera demo --config " + badConfig, 2, []string{`bad.yaml line 2: unknown key "urll", did you mean "url"?`}},
		{"infer nothing", "infer", 2, []string{"infer needs an image, a directory or a video"}},
		{"infer readers", "infer x.jpg --readers -7", 2, []string{"--readers -7 must be 0 to 1024"}},
		{"infer margin", "infer --input x.npy --window 4x4 --margin -7", 2, []string{"--margin -7 must be a number of elements from 0, or -1"}},
		{"infer memory", "infer --input x.npy --memory -7", 2, []string{"--memory -7 must be 0 to 1099511627776 MiB"}},
		{"infer without a model", "infer x.jpg", 2, []string{"no model is set", "edge-infer model pull people", "--model demo"}},
		{"camera without a model", "--camera 0", 2, []string{"camera cam0: no model is set", "edge-infer model pull people"}},
		{"infer no file", "infer /none.jpg --model demo", 1, []string{"/none.jpg", "no such file"}},
		{"infer bad image", "infer --model demo " + img, 1, []string{"image.jpg", "not an image"}},
		{"validate nothing", "validate", 2, []string{"validate needs --data DIR"}},
		{"validate several GPUs", "validate --data x --gpu 0,1", 2, []string{"validate uses one GPU, name it as in --gpu 0"}},
		{"inspect several GPUs", "inspect --gpu all", 2, []string{"inspect uses one GPU, name it as in --gpu 0"}},
		{"validate no labels", "validate --data " + dir, 1, []string{"no labels found"}},
		{"validate loss alone", "validate --data x --max-loss 0.01", 2, []string{"--reference-model and --gate compare with --reference ENGINE"}},
		{"validate gate", "validate --data x --reference onnxruntime --gate 98", 2, []string{"--gate 98 must be a match rate from 0 to 1"}},
		{
			"validate predictions nowhere", "validate --data x --predictions /none/x.json", 1,
			[]string{"/none/x.json cannot be written"},
		},
		{"dataset nowhere", "dataset", 2, []string{"dataset needs --out DIR"}},
		{"dataset full directory", "dataset --count 1 --out " + dir, 1, []string{dir}},
		{"doctor time", "doctor --timeout 0s", 2, []string{"--timeout must be positive"}},
		{"doctor argument", "doctor me", 2, []string{`unexpected argument "me"`}},
		{"quantize nothing", "quantize", 2, []string{"quantize needs -o OUT.onnx"}},
		{"quantize two models", "quantize a b -o " + out, 2, []string{"quantize takes one model, not 2"}},
		{"quantize no images", "quantize -o " + out, 2, []string{"quantize needs --images DIR with calibration images"}},
		{
			"quantize no held-out images", "quantize --precision fp16 -o " + out, 2,
			[]string{"quantize needs --images DIR or --data DIR for the gate"},
		},
		{"quantize to what", "quantize --precision int4 --images x -o " + out, 2, []string{`--precision "int4" must be int8 or fp16`}},
		{
			"quantize by what", "quantize --method guess --images x -o " + out, 2,
			[]string{`--method "guess" must be one of [minmax percentile entropy mse]`},
		},
		{
			"quantize percentile", "quantize --percentile NaN --images x -o " + out, 2, []string{"--percentile NaN must be over 50 and at most 100"},
		},
		{"quantize count", "quantize --count -1 --images x -o " + out, 2, []string{"--count must not be negative"}},
		{"quantize search", "quantize --search --gate 0 --images x -o " + out, 2, []string{"--search is for --precision int8 with a gate"}},
		{"quantize gate", "quantize --gate 98 --images x -o " + out, 2, []string{"--gate 98 must be a match rate from 0 to 1"}},
		{"quantize loss", "quantize --max-loss 0 --images x -o " + out, 2, []string{"--max-loss 0 must be over 0 and at most 1"}},
		{"quantize no model", "quantize /none.onnx --images x -o " + out, 1, []string{"/none.onnx: no such file (name an ONNX file"}},
		{"quantize text", "quantize " + text + " --images x -o " + out, 1, []string{"text.onnx", "not ONNX"}},
		{"quantize truncated", "quantize " + truncated + " --images x -o " + out, 1, []string{"truncated.onnx"}},
		{
			"quantize no directory", "quantize --images /none -o " + out, 1,
			[]string{"/none: no such file or directory (give a directory that exists"},
		},
		{"quantize empty directory", "quantize --images " + bare + " -o " + out, 1, []string{"none in", "give a directory with .jpg"}},
		{
			"quantize bad images", "quantize --images " + dir + " --gate 0 -o " + out, 1,
			[]string{"cannot be read", "image.jpg", "remove or replace"},
		},
		{
			"quantize too few images", "quantize --images " + dir + " -o " + out, 1,
			[]string{"no images left for the gate after 1", "lower --count"},
		},
		{
			"quantize overlap", "quantize --images " + dir + " --data " + dir + " -o " + out, 1,
			[]string{"1 of the 1 images", "are calibration images"},
		},
		{
			"quantize labels of other images", "quantize --images " + bare + " --data " + foreign + " -o " + out, 1,
			[]string{"none of the 1 images has a label file", "labels of other images"},
		},
		{
			"quantize new opset", "quantize " + newer + " --images " + dir + " --gate 0 -o " + out, 1,
			[]string{"uses opset 99, quantization reads up to 24 (export the model again with opset=17)"},
		},
		{"quantize batch", "quantize --calibration-batch -1 --images x -o " + out, 2, []string{"--calibration-batch must not be negative"}},
		{
			"quantize nowhere", "quantize --images x -o /none/out.onnx", 1,
			[]string{"/none/out.onnx cannot be written: no such file or directory (name a file"},
		},
		{"quantize into a directory", "quantize --images x -o " + dir, 1, []string{"is a directory (name the file to write with -o)"}},
		{"quantize over itself", "quantize " + truncated + " --images x -o " + truncated, 1, []string{"would replace the model itself"}},
		{"infer odd tile", "infer x.jpg --tile 641", 2, []string{"inference.tile: tiles of 641 pixels, must be an even number from 32 to 32768"}},
		{"infer tiled tensors", "infer --input x.npy --tile 640", 2, []string{"--ensemble and --augment are for images, not for --input"}},
		{
			"validate overlap", "validate --data x --tile 640 --overlap 1", 2,
			[]string{"inference.overlap: tiles that overlap by 1, must be 0 to 0.75"},
		},
		{"build two models", "build a b", 2, []string{"build takes one model, not 2"}},
		{"build precision", "build --precision int4", 2, []string{`--precision "int4" must be auto, fp32, fp16 or int8`}},
		{"build batch", "build --batch 1,2", 2, []string{`--batch "1,2" must be MIN,OPT,MAX like 1,4,8, or one number`}},
		{"build shape syntax", "build --shape images", 2, []string{`--shape "images" must be NAME=MIN,OPT,MAX with shapes like 1x3x640x640`}},
		{"build workspace", "build --workspace 1GB", 2, []string{`--workspace "1GB" must be a size like 1GiB`}},
		{
			"build method", "build --method guess", 2,
			[]string{`--method "guess" must be one of [minmax percentile entropy mse]`},
		},
		{"build count", "build --count -1", 2, []string{"--count must not be negative"}},
		{"build level", "build --opt-level 6", 2, []string{"--opt-level 6 must be 0 to 5, or -1"}},
		{"build negative level", "build --opt-level -2", 2, []string{"--opt-level -2 must be 0 to 5, or -1"}},
		{"build DLA", "build --dla -2", 2, []string{"--dla -2 must be the number of a DLA core, or -1"}},
		{"build device", "build --gpu -1", 2, []string{"--gpu must not be negative"}},
		{"build calibration", "build --precision fp16 --images x", 2, []string{"--images is for --precision int8 or auto"}},
		{
			"build unjudged", "build --images x", 2, []string{
				"--precision auto takes INT8 only if the gate lets it pass: give --data DIR, or --gate 0 to go without",
			},
		},
		{
			"build search without a gate", "build --search --precision int8 --images x", 2,
			[]string{"--search measures layers", "needs a gate"},
		},
		{"build gate without images", "build --gate 0.9", 2, []string{"the gate needs --data DIR with images"}},
		{"build gate", "build --data x --gate 98", 2, []string{"--gate 98 must be a match rate from 0 to 1"}},
		{"build gate batch", "build --data x --batch 2,2,2", 2, []string{"the minimum of --batch must be 1"}},
		{"build no model", "build /none.onnx", 1, []string{"/none.onnx: no such file (name an ONNX file"}},
		{"build text", "build " + text, 1, []string{"text.onnx", "not ONNX"}},
		{"build nowhere", "build -o /none/x.plan", 1, []string{"/none/x.plan cannot be written: no such file or directory (name a file"}},
		{"bench image", "bench --width -7", 2, []string{"--width and --height must be 1 to 32768"}},
		{"bench wait", "bench --wait-idle -7s", 2, []string{"--wait-idle must not be negative"}},
		{"export GPU", "export triton --repository x --gpus -7", 2, []string{"--gpus must be numbers of GPUs, from 0"}},
		{"bench document nowhere", "bench --output /none/x.json", 1, []string{"--output: /none/x.json cannot be written"}},
		{"model as an argument", "validate mine.onnx --data d", 2, []string{`unexpected argument "mine.onnx", did you mean --model mine.onnx?`}},
		{"wrong flag of a command", "bench --durration 1s", 2, []string{"unknown flag: --durration, did you mean --duration?"}},
		{"flag like no other", "--xyzzy", 2, []string{"unknown flag: --xyzzy; see"}},
		{"wrong command of config", "config chek x", 2, []string{`unknown command "chek", did you mean check?`}},
		{"config nothing", "config", 2, []string{"config needs defaults, check FILE, show, schema or reference"}},
		{"config check bad", "config check " + badConfig, 1, []string{`unknown key "urll"`}},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := programtest.Command(t, strings.Fields(test.args)...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			err := c.Run()
			require.Error(t, err)
			require.Equal(t, test.status, c.ProcessState.ExitCode(), stderr.String())
			var lines []string
			for line := range strings.Lines(stderr.String()) {
				if !strings.HasPrefix(line, "time=") { // the log
					lines = append(lines, line)
				}
			}
			require.Len(t, lines, 1, stderr.String())
			for _, want := range test.want {
				require.Contains(t, lines[0], want)
			}
			require.True(t, strings.HasPrefix(lines[0], "edge-infer: "), lines[0])
			require.NotContains(t, stderr.String(), "secret")
			require.NotContains(t, stderr.String(), "goroutine ")
		})
	}
}

// TestAStoppedCommandNamesTheSignal, whatever it was at.
func TestAStoppedCommandNamesTheSignal(t *testing.T) {
	t.Parallel()
	running := fmt.Errorf("calibrate: %w", context.Canceled)
	require.Equal(t, running, ended(t.Context(), running), "nobody has stopped it")
	ctx, stop := context.WithCancelCause(t.Context())
	stop(errors.New("interrupt signal received"))
	require.EqualError(t, ended(ctx, running), "interrupt signal received")
	failed := errors.New("no space left on device")
	require.Equal(t, failed, ended(ctx, failed))
}
