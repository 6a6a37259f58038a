package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"image/color"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/capture/scene"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/engine/demo"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
	"github.com/edge-infer/edge-infer/engine/quantize"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// buildOf runs the command with --json and returns its document and the last line on standard error.
func buildOf(t *testing.T, environment []string, args ...string) (convert.BuildReport, string, error) {
	c := programtest.CommandWith(t, environment, append([]string{"build", "--json"}, args...)...)
	var stderr bytes.Buffer
	c.Stderr = &stderr
	output, err := c.Output()
	var result convert.BuildReport
	if len(output) > 0 {
		require.NoError(t, json.Unmarshal(output, &result), string(output))
	}
	lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
	return result, lines[len(lines)-1], err
}

// planText is the content of a plan of the fake library, which lists the build options.
func planText(t *testing.T, path string) (tensorrt.PlanFacts, string) {
	file, err := os.ReadFile(path)
	require.NoError(t, err)
	facts, plan, err := tensorrt.ReadPlan(file)
	require.NoError(t, err)
	return facts, string(plan)
}

// TestBuild builds plans with a fake TensorRT one after another; each uses the files that those before it left in the cache.
func TestBuild(t *testing.T) {
	t.Parallel()
	for _, version := range []int{8602, 110100} {
		t.Run(fmt.Sprint(version), func(t *testing.T) {
			environment, model := programtest.FakeMachine(t, version)
			typed := version >= 110000
			dir := t.TempDir()
			out := filepath.Join(dir, "belt.plan")

			result, text, err := buildOf(t, environment, model, "--precision", "fp16", "--batch", "1,2,4", "--workspace", "1MiB", "--opt-level",
				"3", "-o", out)
			require.NoError(t, err, text)
			assert.Equal(t, out, result.Plan)
			assert.Equal(t, engine.FP16, result.Precision)
			assert.Nil(t, result.Verdict)
			facts, plan := planText(t, out)
			assert.Equal(t, scene.Labels(), facts.Metadata.Labels, "a plan alone knows its labels")
			assert.Contains(t, plan, "range images 1 2 3 416 416\n")
			assert.Contains(t, plan, "range images 2 4 3 416 416\n")
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Len(t, entries, 1, "nothing but the plan")

			// No plan of a cache or an earlier file is touched by a refusal, and auto tries every precision.
			calibration, heldOut := programtest.Scenes(t, 1, 7), programtest.Scenes(t, 3, 99)
			before, err := os.ReadFile(out)
			require.NoError(t, err)
			refused, text, err := buildOf(t, environment, model, "--images", calibration, "--data", heldOut, "-o", out)
			require.Error(t, err)
			assert.Contains(t, text, "edge-infer: the gate refused every plan and none was kept: INT8: mAP50-95 fell by 0.")
			assert.Empty(t, refused.Plan)
			var tried []engine.Precision
			for _, r := range refused.Refused {
				tried = append(tried, r.Precision)
				assert.False(t, r.Verdict.Passed)
				assert.Equal(t, 3, r.Verdict.Comparison.Images)
			}
			assert.Equal(t, []engine.Precision{engine.INT8, engine.FP16, engine.FP32}, tried)
			after, err := os.ReadFile(out)
			require.NoError(t, err)
			assert.True(t, bytes.Equal(before, after))
			entries, err = os.ReadDir(dir)
			require.NoError(t, err)
			assert.Len(t, entries, 1)

			// INT8 from images, by ranges that ONNX Runtime measures: through TensorRT's calibrators where it has some, else by Q/DQ nodes.
			ranges := filepath.Join(dir, "ranges")
			int8 := func(args ...string) (convert.BuildReport, string) {
				result, text, err := buildOf(t, environment, append([]string{model, "--precision", "int8", "-o", out}, args...)...)
				require.NoError(t, err, text)
				assert.Equal(t, engine.INT8, result.Precision)
				_, plan := planText(t, out)
				return result, plan
			}
			result, plan = int8("--images", calibration, "--count", "1", "--calibration-cache", ranges)
			written, err := quantize.ReadCache(ranges)
			require.NoError(t, err)
			assert.Equal(t, 1, written.Count, "as quantize keeps them")
			if typed {
				assert.NotContains(t, plan, "int8")
				return
			}
			tables := map[quantize.Method]string{}
			for _, method := range quantize.Methods() {
				table, err := written.FormatTensorRT(8602, method)
				require.NoError(t, err)
				tables[method] = fmt.Sprintf("note calibration algorithm %s cache %s\n",
					map[bool]string{true: "2", false: "3"}[method == quantize.Entropy],
					strings.ReplaceAll(string(table), "\n", "|"))
			}
			assert.Contains(t, plan, tables[quantize.DefaultMethod])
			assert.Equal(t, 7, strings.Count(plan, "precision 1 output 1\n"), "boxes and scores of three scales stay in FP16")
			assert.Contains(t, plan, "note layer softmax precision 1 output 1\nnote layer output0 precision 1 output -1\n", "and what decodes them")
			assert.NotContains(t, plan, "note layer backbone")
			assert.Len(t, result.Unquantized, 6)
			for method, table := range tables {
				_, plan = int8("--calibration-cache", ranges, "--method", string(method))
				assert.Contains(t, plan, table, method)
			}

			// A calibration cache of TensorRT is used as it is, whatever the method.
			table := filepath.Join(dir, "table")
			require.NoError(t, os.WriteFile(table, []byte("TRT-8601-EntropyCalibration2\nimages: 3c010a14\n"), 0o600))
			_, plan = int8("--calibration-cache", table, "--batch", "1,4,8", "--method", "minmax")
			assert.Contains(t, plan, "-EntropyCalibration2|images: 3c010a14|\n")
			assert.Contains(t, plan, "range images 1 4 3 416 416\n")

			// ONNX Runtime has to measure the ranges.
			_, text, err = buildOf(t, append(environment, "EDGE_INFER_ONNXRUNTIME=/none"), model, "--precision", "int8", "--images", calibration,
				"-o", out)
			require.Error(t, err)
			assert.Contains(t, text, "/none")

			// The other route.
			result, plan = int8("--qdq", "--images", calibration, "--count", "1")
			assert.Empty(t, result.Unquantized)
			assert.NotContains(t, plan, "calibration")
			assert.Contains(t, plan, "note flag 1\n", "INT8 all the same")
		})
	}
}

// spoilt is a model with the same output for every image, in the fake library and in ONNX Runtime, unless INT8 corrupts it.
func spoilt(t *testing.T, network string, leftOut ...string) (path string) {
	t.Helper()
	const anchors, fields = 84, 10
	values := make([]float32, fields*anchors) // what the fake library sees in every image
	for f := range fields {
		for a := range anchors {
			switch {
			case f < 2:
				values[f*anchors+a] = float32(10 + a)
			case f < 4:
				values[f*anchors+a] = 8
			case f == 4+a%(fields-4):
				values[f*anchors+a] = 1 - float32(a)/100
			}
		}
	}
	b := testnet.NewBuilder(1)
	x := b.Conv("/conv", b.Input("images", 1, 3, 64, 64), testnet.Convolution{In: 3, Out: 16, Kernel: 3})
	x = b.Conv("/neck", b.Conv("/body", x, testnet.Convolution{In: 16, Out: 16, Kernel: 3}), testnet.Convolution{In: 16, Out: 16, Kernel: 3})
	x = b.Node("ReduceMean", "/mean", []string{b.Conv("/head", x, testnet.Convolution{In: 16, Out: 16, Kernel: 1})},
		onnx.Ints("axes", 1, 2, 3), onnx.Int("keepdims", 1))
	x = b.Node("Reshape", "/one", []string{b.Node("Mul", "/nothing", []string{x, b.Floats("zero", []float32{0})}), b.Ints("shape", 1, 1, 1)})
	b.Output(b.Rename(b.Node("Add", "/boxes", []string{x, b.Floats("boxes", values, 1, fields, anchors)}), "output0"), 1, fields, anchors)
	source := b.Model(13)
	source.SetMetadata("task", "detect")
	source.SetMetadata("names", "{0: 'a', 1: 'b', 2: 'c', 3: 'd', 4: 'e', 5: 'f'}")
	plan, err := quantize.NewPlan(source, quantize.Options{Exclude: leftOut})
	require.NoError(t, err)
	data, err := source.Bytes()
	require.NoError(t, err)
	path = filepath.Join(t.TempDir(), network+".onnx")
	operators := append(plan.Unquantized(), "decode")
	if len(leftOut) == 0 {
		operators = append([]string{"backbone"}, operators...)
	}
	require.NoError(t, os.WriteFile(path, append(data, fake.Model{
		Network: network, Operators: operators,
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{1, 3, 64, 64}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{1, fields, anchors}}},
	}.Bytes()...), 0o600))
	return path
}

// A plan that fails the gate is not kept, and the verdict of the plan that passes lists it.
func TestBuildFallsBackToTheNextPrecision(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	model := spoilt(t, "fragile")
	images := t.TempDir()
	programtest.WriteImage(t, filepath.Join(images, "grey.png"), color.Gray{Y: 99})
	out, heldOut := filepath.Join(t.TempDir(), "fragile.plan"), filepath.Join(programtest.Scenes(t, 2, 99), "images")
	for name, route := range map[string][]string{"calibrators": nil, "Q/DQ": {"--qdq"}} {
		result, text, err := buildOf(t, environment, append([]string{model, "--images", images, "--data", heldOut, "-o", out},
			route...)...)
		require.NoError(t, err, "%s: %s", name, text)
		assert.Equal(t, engine.FP16, result.Precision, name)
		require.Len(t, result.Refused, 1)
		assert.Equal(t, engine.INT8, result.Refused[0].Precision)
		reasons := result.Refused[0].Verdict.Reasons
		require.Len(t, reasons, 1)
		assert.Regexp(t, fmt.Sprintf(`^match rate 0\.\d{4} is under %.4f$`, quantize.DefaultMatchRate), reasons[0])
		file, err := os.ReadFile(out)
		require.NoError(t, err)
		kept, err := quantize.ReadVerdict(out+accuracy.VerdictSuffix, file)
		require.NoError(t, err)
		assert.True(t, kept.Passed)
		assert.Equal(t, engine.FP16, kept.Precision)
		assert.Equal(t, []quantize.Refusal{{Precision: engine.INT8, Reasons: reasons}}, kept.Refused)
	}
	// A model that is quantized already is compared with the one that it came from.
	result, text, err := buildOf(t, environment, model, "--precision", "fp16", "--data", heldOut, "--reference-model", "demo", "--gate",
		"0.5", "-o", filepath.Join(t.TempDir(), "other.plan"))
	require.Error(t, err)
	assert.Contains(t, text, "match rate 0.0000 is under 0.5000")
	assert.Len(t, result.Refused, 1)
	_, text, err = buildOf(t, environment, model, "--precision", "int8", "--images", images, "--data", heldOut, "-o",
		filepath.Join(t.TempDir(), "none.plan"))
	require.Error(t, err)
	assert.Contains(t, text, "the gate refused every plan and none was kept: INT8: match rate ")
}

// Without -o the plan is stored where run looks for it.
func TestBuildIntoTheCache(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	cache := t.TempDir()
	environment = append(environment, "XDG_CACHE_HOME="+cache)
	output := programtest.OutputWith(t, environment, "build", model)
	lines := strings.Split(strings.TrimSpace(string(output)), "\n")
	require.Len(t, lines, 2)
	assert.Regexp(t, `^\S+belt.onnx in FP16 for TensorRT 10.3.0.30 on Fake GPU 0 \(sm_87\): 9 layers, \d+ bytes, built in \d+\.\d s$`,
		lines[0])
	path := strings.TrimPrefix(lines[1], "wrote ")
	assert.Equal(t, filepath.Join(cache, "edge-infer"), filepath.Dir(path))
	assert.FileExists(t, path)
	staged, err := filepath.Glob(filepath.Join(cache, "edge-infer", ".*"))
	require.NoError(t, err)
	assert.Empty(t, staged)
	timings, err := filepath.Glob(filepath.Join(cache, "edge-infer", "timing-*.cache"))
	require.NoError(t, err)
	assert.Len(t, timings, 1)

	images := filepath.Join(programtest.Scenes(t, 1, 7), "images")
	environment = append(environment, "FAKE_TRT=builder") // another build would fail
	output, err = programtest.CommandWith(t, environment, "infer", "--model", model, "--engine", "tensorrt", "--json",
		images).CombinedOutput()
	require.NoError(t, err, string(output))
}

func TestBuildStops(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	dir := t.TempDir()
	p := programtest.StartWith(t, append(environment, "FAKE_TRT=slow"), "build", model, "-o", filepath.Join(dir, "belt.plan"))
	require.Eventually(t, func() bool {
		entries, err := os.ReadDir(dir)
		return err == nil && len(entries) > 0
	}, programtest.Patience, 10*time.Millisecond)
	require.Error(t, p.Stop(syscall.SIGINT))
	assert.Contains(t, p.Stderr.String(), "edge-infer: interrupt signal received\n")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Empty(t, entries)
}

// An error about the model, the machine or a file is one line with its remedy, and no file remains.
func TestBuildMistakes(t *testing.T) {
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	dir, empty, images := t.TempDir(), t.TempDir(), programtest.Scenes(t, 2, 7)
	out := filepath.Join(dir, "belt.plan")
	garbage := filepath.Join(t.TempDir(), "garbage")
	require.NoError(t, os.WriteFile(garbage, []byte("garbage\n"), 0o600))
	foreign := filepath.Join(t.TempDir(), "foreign")
	require.NoError(t, (&quantize.Cache{Version: 1, Model: "another"}).Save(foreign))
	plan, err := tensorrt.EncodePlan(tensorrt.PlanFacts{}, []byte("plan"))
	require.NoError(t, err)
	planFile := filepath.Join(t.TempDir(), "old.plan")
	require.NoError(t, os.WriteFile(planFile, plan, 0o600))
	source, err := onnx.Parse("demo.onnx", demo.Model())
	require.NoError(t, err)
	source.Proto.Graph.Input[0].Type.GetTensorType().Shape.Dim[0].Value = &onnx.TensorShapeProto_Dimension_DimValue{DimValue: 1}
	fixed := filepath.Join(t.TempDir(), "fixed.onnx")
	require.NoError(t, source.Save(fixed))
	for _, test := range []struct {
		name, environment, args, want string
	}{
		{"plan", "", planFile, "is an engine plan already (name the ONNX file that it came from)"},
		{
			"no calibration", "", model + " --precision int8", "int8 needs calibration images (give --images DIR, or a model with Q/DQ nodes",
		},
		{"empty calibration", "", model + " --precision int8 --images " + empty, "none in"},
		{
			"no table", "", model + " --precision int8 --calibration-cache /none",
			"calibration cache /none: no such file (give --images DIR to write it)",
		},
		{
			"garbage table", "", model + " --precision int8 --calibration-cache " + garbage,
			"garbage: quantize calibration cache: it is not JSON",
		},
		{
			"foreign table", "", model + " --precision int8 --calibration-cache " + foreign,
			"was measured on another model (remove the file to calibrate again)",
		},
		{
			"overlap", "", model + " --images " + images + " --data " + images,
			"2 of the 2 images for the gate are calibration images",
		},
		{"shape", "", model + " --shape other=1x3", "--shape other: the model has no such input (it has images)"},
		{"fixed batch", "", fixed + " --batch 4", "--batch 4: the model fixes its batch (omit --batch"},
		{"parser", "FAKE_TRT=parse", model, "parse failed on request"},
		{"builder", "FAKE_TRT=build-crash", model, "the build process was killed, most likely because memory ran out (close other programs"},
		{"no library", tensorrt.LibraryEnvironment + "=/none", model, "/none"},
		{"no GPU", cuda.LibraryEnvironment + "=/none", model, "/none"},
		{"no such GPU", "", model + " --gpu 7", "7"},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := programtest.CommandWith(t, append(environment, test.environment),
				append([]string{"build", "-o", out}, strings.Fields(test.args)...)...)
			var stderr bytes.Buffer
			c.Stderr = &stderr
			require.Error(t, c.Run())
			assert.Equal(t, 1, c.ProcessState.ExitCode())
			lines := strings.Split(strings.TrimSpace(stderr.String()), "\n")
			last := lines[len(lines)-1]
			assert.True(t, strings.HasPrefix(last, "edge-infer: "), last)
			assert.Contains(t, last, test.want)
			for _, line := range lines[:len(lines)-1] {
				assert.True(t, strings.HasPrefix(line, "time="), line)
			}
			entries, err := os.ReadDir(dir)
			require.NoError(t, err)
			assert.Empty(t, entries)
		})
	}
}

// A search excludes the most sensitive layers until the gate passes, and reports every plan.
func TestBuildSearches(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	model := spoilt(t, "mendable", "/conv/Conv", "/body/Conv", "/neck/Conv")
	images, dir := t.TempDir(), t.TempDir()
	programtest.WriteImage(t, filepath.Join(images, "grey.png"), color.Gray{Y: 99})
	out, heldOut := filepath.Join(dir, "mended.plan"), filepath.Join(programtest.Scenes(t, 2, 99), "images")
	arguments := []string{model, "--precision", "int8", "--images", images, "--data", heldOut, "--layer-loss", "0", "-o", out}
	_, text, err := buildOf(t, environment, arguments...)
	require.Error(t, err)
	assert.Contains(t, text, "the gate refused every plan and none was kept: INT8: match rate ")

	result, text, err := buildOf(t, environment, append(arguments, "--search")...)
	require.NoError(t, err, text)
	assert.Equal(t, engine.INT8, result.Precision)
	assert.Empty(t, result.Refused)
	require.Len(t, result.Search, 3)
	for i, step := range result.Search {
		assert.Len(t, step.Excluded, i)
		assert.Equal(t, i == 2, step.Verdict.Passed)
		assert.Positive(t, step.Network)
	}
	_, plan := planText(t, out)
	assert.Contains(t, plan, "note flag 0\nnote flag 1\n", "what INT8 leaves out may run in FP16")
	file, err := os.ReadFile(out)
	require.NoError(t, err)
	kept, err := quantize.ReadVerdict(out+accuracy.VerdictSuffix, file)
	require.NoError(t, err)
	assert.True(t, kept.Passed)
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	assert.Len(t, entries, 2, "nothing but the plan and its verdict")
}

// If excluding layers from calibration does not help, the search ends with Q/DQ nodes.
func TestBuildSearchEndsWithNodes(t *testing.T) {
	t.Parallel()
	environment, _ := programtest.FakeMachine(t, 100300)
	model := spoilt(t, "ranged")
	images, out := t.TempDir(), filepath.Join(t.TempDir(), "nodes.plan")
	programtest.WriteImage(t, filepath.Join(images, "grey.png"), color.Gray{Y: 99})
	result, text, err := buildOf(t, environment, model, "--precision", "int8", "--images", images, "--search",
		"--data", filepath.Join(programtest.Scenes(t, 2, 99), "images"), "-o", out)
	require.NoError(t, err, text)
	last := len(result.Search) - 1
	require.Positive(t, last)
	for i, step := range result.Search {
		assert.Equal(t, i == last, step.QDQ, i)
		assert.Equal(t, i == last, step.Verdict.Passed, i)
	}
	_, plan := planText(t, out)
	assert.NotContains(t, plan, "note calibration")
	assert.Contains(t, plan, "note flag 1\n")
}
