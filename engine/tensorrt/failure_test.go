package tensorrt_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/enginetest"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// small is a model that averages its input.
func small(change func(*fake.Model)) []byte {
	m := fake.Model{
		Network: "average", Operators: []string{"Conv", "Relu"},
		Inputs:  []engine.TensorInfo{{Name: "images", Type: engine.Float32, Shape: []int64{-1, 3, 32, 32}}},
		Outputs: []engine.TensorInfo{{Name: "output0", Type: engine.Float32, Shape: []int64{-1, 4}}},
	}
	if change != nil {
		change(&m)
	}
	return m.Bytes()
}

func buildOptions(version int, model []byte) tensorrt.BuildOptions {
	return tensorrt.BuildOptions{
		Model: model, Path: "small.onnx", Library: tensorrt.LibraryOptions{Path: libraries[version]},
		Batch: tensorrt.Range{Max: 4},
	}
}

func buildSmall(t testing.TB, version int, change func(*tensorrt.BuildOptions)) *tensorrt.Plan {
	o := buildOptions(version, small(nil))
	if change != nil {
		change(&o)
	}
	plan, err := tensorrt.Build(t.Context(), o, nil)
	require.NoError(t, err)
	return plan
}

// TestBuildFailures is as long as its table of failures.
func TestBuildFailures(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		for _, test := range []struct {
			name, script string
			change       func(*tensorrt.BuildOptions)
			want         string
			kind         error
		}{
			{name: "builder", script: "builder", want: "tensorrt build: no TensorRT builder: createInferBuilder: Error Code 6: API Usage Error"},
			{name: "network", script: "network", want: "tensorrt build: no network or builder configuration"},
			{name: "configuration", script: "config", want: "tensorrt build: no network or builder configuration"},
			{name: "parser", script: "parser-object", want: "tensorrt build: no ONNX parser"},
			{
				name: "parse", script: "parse", kind: engine.ErrUnsupported, want: "tensorrt build: ONNX model refused: parse failed on request " +
					"(export the model with operators that this TensorRT version supports, load its own operators with " +
					"--plugin LIB.so, or run it with --engine onnxruntime)",
			},
			{
				name: "truncated", change: func(o *tensorrt.BuildOptions) { o.Model = o.Model[:len(o.Model)-9] }, kind: engine.ErrUnsupported,
				want: fmt.Sprintf("tensorrt build: damaged ONNX file: field 2 is truncated at byte 2 of %d "+
					"(copy or export the model again)", len(small(nil))-9),
			},
			{
				name: "not a model", change: func(o *tensorrt.BuildOptions) { o.Model = []byte("\x08\x09\x12\x02no") }, kind: engine.ErrUnsupported,
				want: "tensorrt build: ONNX model refused: ModelImporter.cpp: Failed to parse ONNX model " +
					"(export the model with operators that this TensorRT version supports, load its own operators with " +
					"--plugin LIB.so, or run it with --engine onnxruntime)",
			},
			{
				name: "empty", change: func(o *tensorrt.BuildOptions) { o.Model = nil }, kind: engine.ErrUnsupported,
				want: "tensorrt build: the model is empty (name an .onnx file)",
			},
			{
				name: "build", script: "build",
				want: "tensorrt build: build: Error Code 10: Internal Error (Could not find any implementation for node Conv_0.)",
			},
			{
				name: "rank", kind: engine.ErrShape,
				change: func(o *tensorrt.BuildOptions) {
					o.Shapes = []tensorrt.ShapeRange{{Name: "images", Min: []int64{1}, Opt: []int64{1}, Max: []int64{1}}}
				},
				want: "tensorrt build: input images has 4 dimensions, not 1 (give the shape with --shape NAME=MIN,OPT,MAX or --batch MIN,OPT,MAX)",
			},
			{
				name: "fixed side", kind: engine.ErrShape,
				change: func(o *tensorrt.BuildOptions) {
					side := []int64{1, 3, 64, 32}
					o.Shapes = []tensorrt.ShapeRange{{Name: "images", Min: side, Opt: side, Max: side}}
				},
				want: "tensorrt build: dimension 2 of input images is 32 in the model, not 64 (give the shape with --shape NAME=MIN,OPT,MAX or --batch MIN,OPT,MAX)",
			},
			{
				name: "free side", kind: engine.ErrShape,
				change: func(o *tensorrt.BuildOptions) {
					o.Model = small(func(m *fake.Model) { m.Inputs[0].Shape = []int64{-1, -1} })
				},
				want: "tensorrt build: dimension 1 of input images varies: its shape must be given (give the shape with --shape NAME=MIN,OPT,MAX or --batch MIN,OPT,MAX)",
			},
			{
				name: "shrinking range", kind: engine.ErrShape,
				change: func(o *tensorrt.BuildOptions) {
					o.Shapes = []tensorrt.ShapeRange{{Name: "images", Min: []int64{2, 3, 32, 32}, Opt: []int64{1, 3, 32, 32}, Max: []int64{4, 3, 32, 32}}}
				},
				want: "tensorrt build: dimension 0 of images is 2, 1, 4 (each dimension must have MIN <= OPT <= MAX)",
			},
			{
				name: "DLA", kind: engine.ErrUnsupported, change: func(o *tensorrt.BuildOptions) { core := 7; o.DLA = &core },
				want: "tensorrt build: no DLA core 7, this device has 2",
			},
			{
				name: "long path", change: func(o *tensorrt.BuildOptions) { o.TimingCache = strings.Repeat("x", 600) },
				want: `tensorrt build: "` + strings.Repeat("x", 80) + `"... is 600 bytes long, at most 511 fit (use a shorter one)`,
			},
		} {
			t.Run(test.name, func(t *testing.T) {
				script(t, test.script)
				o := buildOptions(version, small(nil))
				if test.change != nil {
					test.change(&o)
				}
				_, err := tensorrt.Build(t.Context(), o, nil)
				require.EqualError(t, err, test.want)
				if test.kind != nil {
					require.ErrorIs(t, err, test.kind)
				}
			})
		}
	})
}

// A build does not fail because its timings cannot be saved.
func TestTimingsThatCannotBeSaved(t *testing.T) {
	log, text := logger()
	buildSmall(t, 100300, func(o *tensorrt.BuildOptions) { o.TimingCache, o.Log = "/proc/none/timings", log })
	require.Contains(t, text(), `level=WARN msg="timing cache /proc/none/timings not written: No such file or directory"`)
}

// A rejected timing cache causes one warning: it is not part of another failure's reason, and later builds do not read it again.
func TestRejectedTimings(t *testing.T) {
	const (
		fit   = "does not fit this device and TensorRT version, starting a new one"
		late  = "could not be used, the next build starts a new one"
		cause = "tensorrt build: build: Error Code 10: Internal Error (Could not find any implementation for node Conv_0.)"
	)
	for _, test := range []struct {
		name, script, file, warning, err string
		kept                             bool
	}{
		{"when it is read", "", "unreadable", fit, "", true},
		{"whenever it is read", "timings", "", fit, "", false},
		{"when it is used", "late timings", "", late, "", false},
		{"before another failure", "timings,build", "", fit, cause, true},
		{"late before another failure", "late timings,build", "", late, cause, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			script(t, "")
			path := filepath.Join(t.TempDir(), "timings")
			build := func() (string, error) {
				log, text := logger()
				o := buildOptions(8602, small(nil))
				o.TimingCache, o.Log = path, log
				_, err := tensorrt.Build(t.Context(), o, nil)
				return text(), err
			}
			_, err := build()
			require.NoError(t, err)
			first, err := os.ReadFile(path)
			require.NoError(t, err)
			require.NoError(t, os.WriteFile(path, append(slices.Clone(first), test.file...), 0o600))
			script(t, test.script)
			text, err := build()
			if test.err != "" {
				require.EqualError(t, err, test.err)
			} else {
				require.NoError(t, err)
				require.NotContains(t, text, "level=ERROR")
			}
			require.Contains(t, text, "timing cache "+path+" "+test.warning)
			require.NotRegexp(t, `level=(WARN|ERROR) msg="?[14]: `, text, "TensorRT's own lines are information")
			after, err := os.ReadFile(path)
			if !test.kept {
				require.ErrorIs(t, err, fs.ErrNotExist)
				text, _ = build()
				require.NotContains(t, text, fit)
				return
			}
			require.NoError(t, err)
			require.Equal(t, first, after)
		})
	}
}

func TestUnsupportedOperator(t *testing.T) {
	model := small(func(m *fake.Model) { m.Operators = []string{"Conv", "UnsupportedSpline", "UnsupportedSpline"} })
	for version, want := range map[int]string{
		8502:   "node 1: No importer registered for op: UnsupportedSpline",
		8602:   "node 1: No importer registered for op: UnsupportedSpline",
		100300: "operator UnsupportedSpline of node 1 (/head/UnsupportedSpline): No importer registered for op: UnsupportedSpline",
		110100: "operator UnsupportedSpline of node 1 (/head/UnsupportedSpline): No importer registered for op: UnsupportedSpline",
	} {
		_, err := tensorrt.Build(t.Context(), buildOptions(version, model), nil)
		require.EqualError(t, err, "tensorrt build: ONNX model refused: "+want+" (and 1 more) "+
			"(export the model with operators that this TensorRT version supports, load its own operators with "+
			"--plugin LIB.so, or run it with --engine onnxruntime)")
		require.ErrorIs(t, err, engine.ErrUnsupported)
	}
}

func open(t testing.TB, version int, plan *tensorrt.Plan, change func(*tensorrt.Options)) (engine.Engine, error) {
	o := tensorrt.Options{Options: engine.Options{Path: "small.plan", Bytes: plan.File, Library: libraries[version], MaxBatch: 4}, Log: quiet}
	if change != nil {
		change(&o)
	}
	e, err := o.Open()
	if err == nil {
		t.Cleanup(func() { assert.NoError(t, e.Close()) })
	}
	return e, err
}

func TestOpenFailures(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		plan := buildSmall(t, version, nil)
		for _, test := range []struct {
			name, script, cuda string
			change             func(*tensorrt.Options)
			want               string
			kind               error
		}{
			{
				name: "runtime", script: "runtime",
				want: "tensorrt open: no TensorRT runtime: createInferRuntime: Error Code 6: API Usage Error (CUDA initialization failure with error: 35)",
			},
			{
				name: "context", script: "context", want: "tensorrt open: no execution context (free GPU memory: close other programs that use the GPU, " +
					"or use a smaller model, batch, workspace or number of slots)",
			},
			{name: "address", script: "address", want: "tensorrt open: tensor images: address refused"},
			{
				name: "shape", script: "shape", kind: engine.ErrShape,
				want: "tensorrt open: input images: shape 4x3x32x32: setInputShape: images 4x3x32x32 is outside the profile",
			},
			{
				name: "device memory", cuda: "fail=cuMemAlloc_v2:2", want: "tensorrt open: allocate device memory: CUDA error 2: out of memory (free GPU memory: " +
					"close other programs that use the GPU, or use a smaller model, batch, workspace or number of slots)",
			},
			{name: "profile", change: func(o *tensorrt.Options) { o.Profile = 3 }, want: "tensorrt open: no optimization profile 3, the plan has 1"},
			{
				name: "DLA", kind: engine.ErrUnsupported, change: func(o *tensorrt.Options) { core := 2; o.Build.DLA = &core },
				want: "tensorrt open: no DLA core 2, this device has 2",
			},
		} {
			t.Run(test.name, func(t *testing.T) {
				script(t, test.script)
				t.Setenv("FAKE_CUDA", test.cuda)
				_, err := open(t, version, plan, test.change)
				require.EqualError(t, err, test.want)
				if test.kind != nil {
					require.ErrorIs(t, err, test.kind)
				}
			})
		}
	})
}

func TestPlanOfAnotherVersion(t *testing.T) {
	for _, test := range []struct {
		built, here int
		want        string
	}{
		{100300, 8502, "tensorrt open: built for TensorRT 10.3.0.30 on sm_87 (Fake GPU 0), this is 8.5.2 on sm_87 (Fake GPU 0): " +
			"Serialization assertion stdVersionRead == kSERIALIZATION_VERSION failed. Version tag does not match. (run edge-infer build again)"},
		{8602, 100300, "tensorrt open: built for TensorRT 8.6.2 on sm_87 (Fake GPU 0), this is 10.3.0.30 on sm_87 (Fake GPU 0): " +
			"The engine plan file is not compatible with this version of TensorRT, please rebuild. (run edge-infer build again)"},
	} {
		plan := buildSmall(t, test.built, nil)
		_, err := open(t, test.here, plan, nil)
		require.EqualError(t, err, test.want)
		require.ErrorIs(t, err, engine.ErrPlanMismatch)
		// Without this project's header, TensorRT's own contains the version from 8.6 on.
		_, raw, err := tensorrt.ReadPlan(plan.File)
		require.NoError(t, err)
		_, err = open(t, test.here, &tensorrt.Plan{File: raw}, nil)
		require.ErrorIs(t, err, engine.ErrPlanMismatch)
		if test.built == 8602 {
			require.ErrorContains(t, err, "built for TensorRT 8.6.2.0, this is 10.3.0.30 on sm_87")
		}
	}
}

func TestPlanOfAnotherGPU(t *testing.T) {
	facts, raw, err := tensorrt.ReadPlan(buildSmall(t, 100300, nil).File)
	require.NoError(t, err)
	facts.Architecture, facts.GPU = "sm_90", "NVIDIA H200"
	file, err := tensorrt.EncodePlan(facts, raw)
	require.NoError(t, err)
	script(t, "deserialize")
	_, err = open(t, 100300, &tensorrt.Plan{File: file}, nil)
	require.EqualError(t, err, "tensorrt open: built for TensorRT 10.3.0.30 on sm_90 (NVIDIA H200), this is 10.3.0.30 on sm_87 (Fake GPU 0): "+
		"deserializeCudaEngine failed on request (run edge-infer build again)")
	require.ErrorIs(t, err, engine.ErrPlanMismatch)
}

// Every damaged plan file is an error of one line.
func TestDamagedPlans(t *testing.T) {
	file := buildSmall(t, 100300, nil).File
	_, raw, err := tensorrt.ReadPlan(file)
	require.NoError(t, err)
	for name, test := range map[string]struct {
		file []byte
		want string
	}{
		"truncated": {
			file[:len(file)-5],
			"small.plan: checksum mismatch: the plan file is damaged or incomplete (run edge-infer build again)",
		},
		"truncated header":   {file[:20], "small.plan: truncated plan file (run edge-infer build again)"},
		"only a header":      {[]byte("EIPLAN1\n"), "small.plan: truncated plan file (run edge-infer build again)"},
		"truncated raw plan": {raw[:20], "plan of unknown origin, this is 10.3.0.30 on sm_87 (Fake GPU 0): Serialization assertion"},
		"broken JSON":        {ultralytics(`{"names": {0: "person"}}`, raw), "small.plan: header of the engine file: invalid character '0'"},
		"no plan behind":     {ultralytics(`{"task": "detect"}`, nil), "small.plan: the file ends where the plan should begin"},
	} {
		_, err := open(t, 100300, &tensorrt.Plan{File: test.file}, nil)
		require.ErrorContains(t, err, "tensorrt open: "+test.want, name)
		require.ErrorIs(t, err, engine.ErrPlanMismatch, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

func TestRunFailures(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		plan := buildSmall(t, version, nil)
		im := engine.Image{Data: make([]byte, 3*32*32), Width: 32, Height: 32, Stride: 96, Format: engine.BGR}
		for _, test := range []struct{ name, script, cuda, want string }{
			{name: "enqueue", script: "enqueue", want: "tensorrt submit: enqueue: enqueueV3 failed on request"},
			{name: "exception", script: "throw", want: "tensorrt submit: exception out of TensorRT"},
			{
				name: "launch", cuda: "fail=cuLaunchKernel:719", want: "tensorrt submit: letterbox: CUDA error 719: launch failed " +
					"(the GPU needs a new process; if it recurs, check dmesg for NVRM or nvgpu lines)",
			},
			{
				name: "wait", cuda: "fail=cuEventQuery:719", want: "tensorrt wait: run the network: CUDA error 719: launch failed " +
					"(the GPU needs a new process; if it recurs, check dmesg for NVRM or nvgpu lines)",
			},
		} {
			t.Run(test.name, func(t *testing.T) {
				e, err := open(t, version, plan, nil)
				require.NoError(t, err)
				script(t, test.script)
				t.Setenv("FAKE_CUDA", test.cuda)
				err = e.Submit(0, []engine.Image{im})
				if err == nil {
					_, err = e.Wait(0)
				}
				require.EqualError(t, err, test.want)
				require.Equal(t, test.cuda != "", errors.Is(err, engine.ErrContextLost))
				// The slot is free again, and works after the failure.
				script(t, "")
				t.Setenv("FAKE_CUDA", "")
				for range 3 {
					require.NoError(t, e.Submit(0, []engine.Image{im}))
					_, err = e.Wait(0)
					require.NoError(t, err)
				}
			})
		}
	})
}

func TestGraphRefusal(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		plan := buildSmall(t, version, nil)
		im := engine.Image{Data: make([]byte, 3*32*32), Width: 32, Height: 32, Stride: 96, Format: engine.BGR}
		for i := range im.Data {
			im.Data[i] = 255
		}
		for _, test := range []struct{ name, script, cuda, want string }{
			{"TensorRT", "capture", "", "enqueue: operation not permitted when stream is capturing"},
			{"begin", "", "fail=cuStreamBeginCapture_v2:801", "begin capture: CUDA error 801: unknown error"},
			{"instantiate", "", "fail=cuGraphInstantiateWithFlags:2", "instantiate the graph: CUDA error 2: out of memory"},
			{"event", "", "fail=cuEventRecordWithFlags:801", "record an event: CUDA error 801: unknown error"},
		} {
			t.Run(test.name, func(t *testing.T) {
				log, text := logger()
				script(t, test.script)
				t.Setenv("FAKE_CUDA", test.cuda)
				e, err := open(t, version, plan, func(o *tensorrt.Options) { o.Log = log })
				require.NoError(t, err)
				for range 5 {
					require.NoError(t, e.Submit(0, []engine.Image{im}))
					result, err := e.Wait(0)
					require.NoError(t, err)
					require.InDelta(t, 1, result.Outputs[0].Float32s()[0], 1e-3)
				}
				require.Equal(t, 1, strings.Count(text(), "no CUDA graph, frames are enqueued step by step"), text())
				require.Contains(t, text(), test.want)
			})
		}
	})
}

// logger returns a log and its output.
func logger() (*slog.Logger, func() string) {
	var mu sync.Mutex
	var text bytes.Buffer
	log := slog.New(slog.NewTextHandler(writerFunc(func(p []byte) (int, error) {
		mu.Lock()
		defer mu.Unlock()
		return text.Write(p)
	}), nil))
	return log, func() string {
		mu.Lock()
		defer mu.Unlock()
		return text.String()
	}
}

type writerFunc func(p []byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }

func TestMemoryModeIsLogged(t *testing.T) {
	plan := buildSmall(t, 100300, nil)
	for _, test := range []struct {
		cuda string
		mode tensorrt.MemoryMode
		want string
	}{
		{
			"integrated=1", tensorrt.MemoryAuto,
			`in_place=true outputs_in_place=true reason="mapped memory because the GPU shares the machine's memory"`,
		},
		{
			"integrated=0", tensorrt.MemoryAuto,
			`in_place=true outputs_in_place=false reason="images read in mapped memory, tensors copied because the GPU has its own memory"`,
		},
		{"integrated=0", tensorrt.MemoryMapped, `in_place=true outputs_in_place=false reason="mapped memory as configured"`},
		{"integrated=1", tensorrt.MemoryCopy, `in_place=false outputs_in_place=false reason="copies as configured"`},
	} {
		t.Setenv("FAKE_CUDA", test.cuda)
		log, text := logger()
		e, err := open(t, 100300, plan, func(o *tensorrt.Options) { o.Log, o.Memory = log, test.mode })
		require.NoError(t, err)
		require.Contains(t, text(), test.want)
		_, why, _ := strings.Cut(strings.TrimSuffix(test.want, `"`), `reason="`)
		require.Equal(t, "TensorRT 10.3.0.30 on Fake GPU 0 (sm_87), "+why, e.Model().Reason)
	}
}

// TestInputsAreCopied to the GPU's own memory even where it is the machine's: a network reads them more than once, and mapped memory is not
// cached. Outputs, which it writes once, are mapped there.
func TestInputsAreCopied(t *testing.T) {
	for integrated, copies := range map[string][2]int{"integrated=1": {1, 0}, "integrated=0": {1, 1}} {
		t.Setenv("FAKE_CUDA", integrated)
		file := filepath.Join(t.TempDir(), "cuda.log")
		e, err := openONNX(t, 100300, tensorrt.Options{Options: enginetest.Network(t, "tensors"), Log: quiet, NoGraph: true})
		require.NoError(t, err)
		in := e.Model().Inputs
		var tensors []engine.Tensor
		for _, input := range in {
			size := int64(input.Type.Size())
			for i, n := range input.Shape {
				input.Shape[i] = max(1, n)
				size *= input.Shape[i]
			}
			tensors = append(tensors, engine.Tensor{Name: input.Name, Type: input.Type, Shape: input.Shape, Data: make([]byte, size)})
		}
		t.Setenv("FAKE_CUDA_LOG", file)
		require.NoError(t, e.SubmitTensors(0, tensors))
		_, err = e.Wait(0)
		require.NoError(t, err)
		t.Setenv("FAKE_CUDA_LOG", "")
		log, err := os.ReadFile(file)
		require.NoError(t, err)
		assert.Equal(t, copies[0]*len(in), strings.Count(string(log), "cuMemcpyHtoDAsync_v2"), integrated)
		assert.Equal(t, copies[1]*len(e.Model().Outputs), strings.Count(string(log), "cuMemcpyDtoHAsync_v2"), integrated)
		require.NoError(t, e.Close())
	}
}

func TestLibraries(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "libnvinfer.so.10")
	require.NoError(t, os.WriteFile(text, []byte("no library"), 0o600))
	_, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: text})
	require.ErrorIs(t, err, engine.ErrUnavailable)
	require.ErrorContains(t, err, text+": file too short")
	_, err = tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: filepath.Join(dir, "none")})
	require.ErrorContains(t, err, "cannot open shared object file: No such file or directory")
}

func TestLibrarySearch(t *testing.T) {
	for version, path := range libraries {
		for name, options := range map[string]tensorrt.LibraryOptions{"file": {Path: path}, "directory": {Path: filepath.Dir(path)}} {
			l, err := tensorrt.OpenLibrary(options)
			require.NoError(t, err, name)
			require.Equal(t, version, l.Version.Number)
			require.True(t, l.Builder && l.Parser)
			require.Equal(t, path, l.Path)
			require.Equal(t, filepath.Dir(path), filepath.Dir(l.ParserPath))
		}
		t.Setenv(tensorrt.LibraryEnvironment, filepath.Dir(path))
		l, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{})
		require.NoError(t, err)
		require.Equal(t, version, l.Version.Number)
	}
	l, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: filepath.Dir(parserless)})
	require.NoError(t, err)
	require.False(t, l.Parser)
	require.Contains(t, l.MissingReason, "libnvonnxparser.so.10: cannot open shared object file")
	o := buildOptions(0, small(nil))
	o.Library.Path = parserless
	_, err = tensorrt.Build(t.Context(), o, nil)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.ErrorContains(t, err, "tensorrt build: no ONNX parser next to "+parserless+": ")
}

func TestLeanRuntime(t *testing.T) {
	plan := buildSmall(t, 100300, nil)
	l, err := tensorrt.OpenLibrary(tensorrt.LibraryOptions{Path: filepath.Dir(lean)})
	require.NoError(t, err)
	require.False(t, l.Builder)
	o := buildOptions(0, small(nil))
	o.Library.Path = lean
	_, err = tensorrt.Build(t.Context(), o, nil)
	const hint = " (install the whole TensorRT with its ONNX parser, or name a plan that edge-infer build -o PLAN made where it is)"
	require.EqualError(t, err, "tensorrt build: "+lean+" is a lean runtime, which can run but not build plans"+hint)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	// A model without a plan is rejected if no plan can be built.
	for _, library := range []string{lean, parserless} {
		options := tensorrt.Options{
			Options: engine.Options{Path: "small.onnx", Bytes: small(nil), Library: library}, Cache: tensorrt.Cache{Dir: t.TempDir()}, Log: quiet,
		}
		_, err = options.Open()
		require.EqualError(t, err, "tensorrt open: "+library+" can run but not build plans, and small.onnx is not a plan"+hint)
		require.ErrorIs(t, err, engine.ErrUnsupported)
		require.NotErrorIs(t, err, tensorrt.ErrNoPlan)
	}
	e, err := open(t, 100300, plan, func(o *tensorrt.Options) { o.Library = lean })
	require.NoError(t, err)
	im := engine.Image{Data: make([]byte, 3*32*32), Width: 32, Height: 32, Stride: 96, Format: engine.BGR}
	require.NoError(t, e.Submit(0, []engine.Image{im}))
	_, err = e.Wait(0)
	require.NoError(t, err)
}
