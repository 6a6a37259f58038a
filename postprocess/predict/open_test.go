package predict

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"go.uber.org/goleak"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func quiet(o Options) Options {
	o.Log = slog.New(slog.DiscardHandler)
	return o
}

func write(t *testing.T, name string, data []byte) string {
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, data, 0o600))
	return path
}

func TestLoad(t *testing.T) {
	file := write(t, "parts.onnx", demo.Model())
	labels := write(t, "labels.txt", []byte("a\nb\nc\nd\ne\nf\n"))
	for _, c := range []struct {
		name string
		o    Options
		path string
	}{
		{"nothing named", Options{}, "demo"},
		{"demo by name", Options{Model: "demo"}, "demo"},
		{"file", Options{Model: file}, file},
		{"bytes", Options{Model: "mine", Options: engine.Options{Bytes: demo.Model()}}, "mine"},
	} {
		t.Run(c.name, func(t *testing.T) {
			require.NoError(t, c.o.Load())
			assert.Equal(t, c.path, c.o.Path)
			assert.Equal(t, demo.Model(), c.o.Bytes)
			want := engine.Metadata{
				Task: engine.Detect, Labels: scene.Labels(), Stride: 32, Width: 416, Height: 416, Batch: 1,
				Preprocess: engine.Preprocess{Preset: "ultralytics"},
			}
			assert.Equal(t, want, c.o.Metadata)
		})
	}
	// The file beside the model stands over what the model says, a setting over both.
	require.NoError(t, os.WriteFile(engine.PreprocessFile(file), []byte("{preset: yolox, pad: 0}"), 0o600))
	for _, setting := range []engine.Preprocess{{}, {Resize: engine.Stretch}} {
		o := Options{Model: file}
		o.Metadata.Preprocess = setting
		require.NoError(t, o.Load())
		assert.Equal(t, engine.Preprocess{Preset: "yolox", Pad: new(int), Resize: setting.Resize}, o.Metadata.Preprocess)
	}
	require.NoError(t, os.WriteFile(engine.PreprocessFile(file), []byte("yolo"), 0o600))
	require.ErrorContains(t, (&Options{Model: file}).Load(),
		engine.PreprocessFile(file)+`: preprocess preset: "yolo" is not known, did you mean yolox or yolo-nas?`)
	known := Options{LabelsFile: "coco"}
	require.NoError(t, known.Load())
	require.Len(t, known.Metadata.Labels, 80)
	assert.Equal(t, []string{"person", "toothbrush"}, []string{known.Metadata.Labels[0], known.Metadata.Labels[79]})
	t.Chdir(t.TempDir())
	require.NoError(t, os.WriteFile("coco", []byte("mine\n"), 0o600))
	known = Options{LabelsFile: "coco"}
	require.NoError(t, known.Load())
	assert.Equal(t, []string{"mine"}, known.Metadata.Labels, "a file of that name")

	o := Options{LabelsFile: labels}
	require.NoError(t, o.Load())
	assert.Equal(t, []string{"a", "b", "c", "d", "e", "f"}, o.Metadata.Labels)
	assert.Equal(t, engine.Detect, o.Metadata.Task)
	o.Metadata.Task = engine.Raw
	require.NoError(t, o.Load())
	assert.Equal(t, engine.Raw, o.Metadata.Task, "what was set after the first Load stands")

	o = Options{}
	o.Metadata = engine.Metadata{Width: 640, Height: 640}
	require.NoError(t, o.Load())
	assert.Equal(t, 640, o.Metadata.Width, "what the caller says goes before what the file says")

	plan, err := tensorrt.EncodePlan(tensorrt.PlanFacts{Version: "10.3.0"}, []byte("ftrt and more"))
	require.NoError(t, err)
	o = Options{Model: write(t, "parts.plan", plan)}
	require.NoError(t, o.Load())
	assert.Zero(t, o.Metadata, "the backend reads what a plan says of itself")
}

func TestLoadErrors(t *testing.T) {
	empty := write(t, "empty.txt", nil)
	dir := t.TempDir()
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Model: "/dev/zero"}, "model /dev/zero: a pipe or a device (copy it into a file)"},
		{Options{Model: "/nowhere/m.onnx"}, "model /nowhere/m.onnx: no such file (name an ONNX file, or demo for the embedded model)"},
		{Options{Model: dir}, "model: read " + dir + ": is a directory"},
		{Options{LabelsFile: "/nowhere/l.txt"}, "labels: open /nowhere/l.txt: no such file or directory"},
		{Options{LabelsFile: empty}, "labels " + empty + ": labels: the file names no class"},
	} {
		require.EqualError(t, c.o.Load(), c.want)
		_, err := Open(t.Context(), c.o)
		require.EqualError(t, err, c.want)
	}
}

func TestOpenDemo(t *testing.T) {
	n, err := Open(t.Context(), quiet(Options{Backend: "onnxruntime=cpu", Decoding: Decoding{MinScore: 0.4}}))
	require.NoError(t, err)
	defer n.Close()
	m := n.Model()
	assert.Equal(t, "demo", m.Path)
	assert.Equal(t, head.LayoutYOLOv8, m.Recognised.Layout)
	assert.Equal(t, "onnxruntime on the CPU was asked for", m.Reason)
	assert.Equal(t, "onnxruntime", n.Engine().Model().Backend)
	buffer, err := n.Alloc(64 * 64 * 3)
	require.NoError(t, err)
	all, err := Run(n, engine.Image{Data: buffer.Data, Width: 64, Height: 64, Stride: 64 * 3, Format: engine.BGR})
	require.NoError(t, err)
	assert.Empty(t, all[0].Detections)
	require.NoError(t, all[0].Err)
	require.NoError(t, n.Close())
	require.NoError(t, n.Close())
	require.ErrorIs(t, n.Submit(0, []engine.Image{shows(1)}), engine.ErrClosed)
}

// An engine that was opened for settings that do not fit is closed again: goleak would see its workers.
func TestOpenErrors(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
		kind error
	}{
		{
			Options{Backend: "onnxruntime=cpu", Decoding: Decoding{Classes: []string{"cat"}}},
			`label "cat" is not one of the model's: bolt, nut, washer, gear, bearing, spring`, ErrSetting,
		},
		{Options{Backend: "openvino"}, `engine open: "openvino" is no engine (use auto, tensorrt, onnxruntime, triton)`, engine.ErrUnsupported},
	} {
		_, err := Open(t.Context(), quiet(c.o))
		require.EqualError(t, err, c.want)
		require.ErrorIs(t, err, c.kind)
	}
}

func TestOpenRaw(t *testing.T) {
	e, err := OpenRaw(t.Context(), quiet(Options{Backend: "onnxruntime=cpu"}))
	require.NoError(t, err)
	defer e.Close()
	in := engine.Tensor{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 416, 416}, Data: make([]byte, 4*3*416*416)}
	result, err := e.Tensors(in)
	require.NoError(t, err)
	assert.Equal(t, []int64{1, 10, 3549}, result.Outputs[0].Shape)
	_, err = OpenRaw(t.Context(), Options{Model: "/nowhere/m.onnx"})
	require.Error(t, err)
}

// A plan that is missing is built once, and only for a TensorRT that was asked for by name.
func TestMissingPlanIsBuilt(t *testing.T) {
	noPlan := &engine.Error{Op: "open", Backend: "tensorrt", Err: tensorrt.ErrNoPlan}
	level := 0
	for _, c := range []struct {
		name     string
		backend  string
		level    *int
		build    bool
		fails    error
		built    int
		want     string
		attempts int
	}{
		{name: "built", backend: "tensorrt", build: true, built: 1, attempts: 2},
		{name: "built quickly", backend: "tensorrt", level: &level, build: true, built: 1, attempts: 2},
		{name: "nobody builds", backend: "tensorrt", want: "tensorrt open: no engine plan", attempts: 1},
		{name: "chosen automatically", backend: "auto", build: true, want: "tensorrt open: no engine plan", attempts: 1},
		{
			name: "build fails", backend: "tensorrt", build: true, fails: errors.New("killed"), built: 1, want: "engine plan not built: killed",
			attempts: 1,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			built, attempts := 0, 0
			o := quiet(Options{Backend: c.backend, Level: c.level})
			o.Candidates = []auto.Candidate{{
				Engine: "tensorrt", Title: "tensorrt",
				Open: func(context.Context, string, engine.Options, *slog.Logger) (engine.Engine, error) {
					if attempts++; attempts == 1 {
						return nil, noPlan
					}
					return newScripted(1), nil
				},
			}}
			if c.build {
				o.Build = func(_ context.Context, plan tensorrt.BuildOptions) error {
					built++
					assert.Equal(t, demo.Model(), plan.Model)
					assert.Equal(t, "demo", plan.Path)
					assert.Equal(t, c.level, plan.OptimizationLevel)
					assert.Equal(t, 4, plan.Batch.Max)
					return c.fails
				}
			}
			o.MaxBatch = 4
			n, err := Open(t.Context(), o)
			assert.Equal(t, c.built, built)
			assert.Equal(t, c.attempts, attempts)
			if c.want != "" {
				require.EqualError(t, err, c.want)
				return
			}
			require.NoError(t, err)
			assert.Equal(t, "scripted", n.Model().Backend)
		})
	}
}

// A name that leads to no file is answered with the line that leads on.
func TestModelHint(t *testing.T) {
	const (
		pull     = "edge-infer model pull yolox-s fetches a detector of the same classes; with Ultralytics: yolo export model="
		export   = "a PyTorch checkpoint has to be exported where it is: yolo export model="
		anything = "name an ONNX file, or demo for the embedded model"
		named    = "name an ONNX file, demo for the embedded model, or a model of edge-infer model list; edge-infer model pull yolox-s fetches one"
	)
	for model, want := range map[string]string{
		"yolov8n": pull + "yolov8n.pt format=onnx", "yolo11x-seg": pull + "yolo11x-seg.pt format=onnx",
		"yolo11n.onnx": pull + "yolo11n.pt format=onnx",
		"best.pt":      export + "best.pt format=onnx", "/runs/train/best.pt": export + "best.pt format=onnx",
		"my best.pt": export + "'my best.pt' format=onnx", "yolov8n.pt": export + "yolov8n.pt format=onnx",
		"resnet50": named, "yolox": named, "parts.onnx": anything, "/nowhere/yolov8n.onnx": anything, "dir/yolov8n": anything,
		"best.weights": anything,
	} {
		require.Equal(t, want, modelHint(model), model)
	}
}
