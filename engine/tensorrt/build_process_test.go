package tensorrt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

func child(t testing.TB, environment ...string) tensorrt.BuildProcess {
	program, err := os.Executable()
	require.NoError(t, err)
	return tensorrt.BuildProcess{Command: []string{program}, Environment: append(environment, childEnvironment+"=1")}
}

func TestBuildProcess(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		cache := tensorrt.Cache{Dir: t.TempDir()}
		o := buildOptions(version, small(nil))
		o.Metadata = engine.Metadata{Labels: []string{"bolt"}}
		log, text := logger()
		o.Log = log
		var last tensorrt.Progress
		built, err := child(t, "FAKE_TRT=slow:2").Build(t.Context(), o, "", cache, func(p tensorrt.Progress) { last = p })
		require.NoError(t, err)
		require.Equal(t, cache.Dir, filepath.Dir(built.Path))
		require.Equal(t, []string{"bolt"}, built.Facts.Metadata.Labels)
		require.Contains(t, text(), "a warning of the fake library")
		if version >= 100000 {
			require.Equal(t, "Building Engine", last.Phase)
			require.Equal(t, 10, last.Steps)
			require.Positive(t, last.Step)
			require.Positive(t, last.Elapsed)
		}

		// Open finds the plan by the model.
		options := tensorrt.Options{
			Options: engine.Options{Path: "small.onnx", Bytes: o.Model, Library: libraries[version], MaxBatch: 4}, Cache: cache, Log: quiet,
		}
		e, err := options.Open()
		require.NoError(t, err)
		require.Equal(t, []string{"bolt"}, e.Model().Metadata.Labels)
		require.NoError(t, e.Close())

		// Anything that changes the plan changes its place.
		for _, change := range []func(*tensorrt.Options){
			func(o *tensorrt.Options) { o.MaxBatch = 3 },
			func(o *tensorrt.Options) { o.Precision = engine.FP32 },
			func(o *tensorrt.Options) { o.Build.Workspace = 1 << 20 },
			func(o *tensorrt.Options) { o.Build.OptimizationLevel = new(int) },
			func(o *tensorrt.Options) { o.Bytes = small(func(m *fake.Model) { m.Operators = nil }) },
		} {
			other := options
			change(&other)
			_, err := other.Open()
			require.ErrorIs(t, err, tensorrt.ErrNoPlan)
		}

		// A damaged file is not used, with a log message.
		file, err := os.ReadFile(built.Path)
		require.NoError(t, err)
		file[len(file)-1] ^= 1
		require.NoError(t, os.WriteFile(built.Path, file, 0o600))
		options.Log = log
		_, err = options.Open()
		require.ErrorIs(t, err, tensorrt.ErrNoPlan)
		require.Contains(t, text(), "checksum mismatch: the plan file is damaged or incomplete")

		// A plan that TensorRT rejects is removed from the cache.
		_, err = child(t).Build(t.Context(), o, "", cache, nil)
		require.NoError(t, err)
		script(t, "deserialize")
		_, err = options.Open()
		require.ErrorIs(t, err, tensorrt.ErrNoPlan)
		require.ErrorIs(t, err, engine.ErrPlanMismatch)
		require.NoFileExists(t, built.Path)
	})
}

func TestBuildProcessToFile(t *testing.T) {
	output := filepath.Join(t.TempDir(), "a", "b.plan")
	built, err := child(t).Build(t.Context(), buildOptions(100300, small(nil)), output, tensorrt.Cache{}, nil)
	require.NoError(t, err)
	require.Equal(t, output, built.Path)
	info, err := os.Stat(output)
	require.NoError(t, err)
	require.Equal(t, info.Size(), built.Bytes)
	entries, err := os.ReadDir(filepath.Dir(output))
	require.NoError(t, err)
	require.Len(t, entries, 1, "no partial file is left")

	_, err = child(t).Build(t.Context(), buildOptions(100300, small(nil)), "/proc/none/x.plan", tensorrt.Cache{}, nil)
	require.ErrorContains(t, err, "tensorrt write: /proc/none: mkdir /proc/none: no such file or directory")
}

func TestBuildProcessFailures(t *testing.T) {
	o := buildOptions(100300, small(func(m *fake.Model) { m.Operators = []string{"UnsupportedSpline"} }))
	_, err := child(t).Build(t.Context(), o, "", tensorrt.Cache{Dir: t.TempDir()}, nil)
	require.ErrorIs(t, err, engine.ErrUnsupported)
	require.ErrorContains(t, err, "operator UnsupportedSpline of node 0")

	o = buildOptions(100300, small(nil))
	_, err = child(t, "FAKE_TRT=build-crash").Build(t.Context(), o, "", tensorrt.Cache{Dir: t.TempDir()}, nil)
	require.EqualError(t, err, "tensorrt build: the build process was killed, most likely because memory ran out "+
		"(close other programs, add swap, or lower --workspace, --batch or --opt-level)")

	_, err = tensorrt.BuildProcess{Command: []string{"/none"}}.Build(t.Context(), o, "", tensorrt.Cache{}, nil)
	require.EqualError(t, err, "tensorrt build: build process: fork/exec /none: no such file or directory")
	for script, want := range map[string]string{
		"cat >/dev/null & echo trouble >&2; exit 3": "tensorrt build: the build ends the process with status 3: trouble",
		"echo hello":                      "tensorrt build: the build process ended without a result",
		"echo '[]' >&3":                   "build process: json: cannot unmarshal array into Go value of type tensorrt.response in \"[]\"",
		"kill -SEGV $$":                   "tensorrt build: the build crashes: segmentation fault",
		"echo '{\"log\":{}}' >&3; exit 1": "tensorrt build: the build ends the process with status 1",
	} {
		_, err = tensorrt.BuildProcess{Command: []string{"sh", "-c", script}}.Build(t.Context(), o, "", tensorrt.Cache{}, nil)
		require.EqualError(t, err, want, script)
	}
}

func TestBuildProcessIsCancelled(t *testing.T) {
	eachVersion(t, func(t *testing.T, version int) {
		dir := t.TempDir()
		ctx, cancel := context.WithCancel(t.Context())
		_, err := child(t, "FAKE_TRT=slow").Build(ctx, buildOptions(version, small(nil)), "", tensorrt.Cache{Dir: dir},
			func(tensorrt.Progress) { cancel() })
		require.ErrorContains(t, err, "tensorrt build: cancelled: ")
		entries, err := os.ReadDir(dir)
		require.NoError(t, err)
		require.Empty(t, entries)
	})
}

func TestBuildIsCancelled(t *testing.T) {
	script(t, "slow")
	ctx, cancel := context.WithCancel(t.Context())
	_, err := tensorrt.Build(ctx, buildOptions(100300, small(nil)), func(tensorrt.Progress) { cancel() })
	require.EqualError(t, err, "tensorrt build: cancelled: context canceled")
}

// FuzzServeBuild sends arbitrary bytes to the child. After a complete request the pipe stays open, as the parent leaves it, because its end
// would stop the child; a truncated request ends.
func FuzzServeBuild(f *testing.F) {
	f.Setenv(tensorrt.LibraryEnvironment, "/none")
	for _, in := range []string{
		"{\"payload\": 3, \"request\": {\"options\": {\"device\": 99}}}\nabc",
		"{\"payload\": 4, \"request\": {}}\nabc", "{\"request\": 3}\n", "\n", "{}",
		"{\"payload\": 1, \"request\": {\"debug\": true, \"options\": {\"precision\": \"int8\", \"batch\": {\"min\": 2}, \"level\": 9}}}\na",
	} {
		f.Add([]byte(in))
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		lower := bytes.ToLower(in)
		for _, file := range []string{"output", "cache", "library", `\u`} {
			if bytes.Contains(lower, []byte(file)) {
				t.Skip("would touch files")
			}
		}
		var from io.Reader = bytes.NewReader(in)
		if head, rest, whole := bytes.Cut(in, []byte("\n")); whole {
			var request struct{ Payload int64 }
			if json.Unmarshal(head, &request) == nil && request.Payload <= int64(len(rest)) {
				held, end := io.Pipe()
				defer end.Close()
				from = io.MultiReader(from, held)
			}
		}
		var out bytes.Buffer
		_ = tensorrt.ServeBuild(t.Context(), from, &out)
		for line := range bytes.Lines(out.Bytes()) {
			if !json.Valid(line) {
				t.Fatalf("not JSON: %q", line)
			}
		}
	})
}

func TestCalibration(t *testing.T) {
	table := filepath.Join(t.TempDir(), "table")
	for _, version := range []int{8502, 8602, 100300} {
		for _, minmax := range []bool{false, true} {
			algorithm, name := "2", "EntropyCalibration2"
			if minmax {
				algorithm, name = "3", "MinMaxCalibration"
			}
			require.NoError(t, os.WriteFile(table, fmt.Appendf(nil, "TRT-%d-%s\nimages: 3c010a14\n", version, name), 0o600))
			log, logged := logger()
			plan := buildSmall(t, version, func(o *tensorrt.BuildOptions) {
				o.Precision = engine.INT8
				o.Calibration = tensorrt.Calibration{Cache: table, MinMax: minmax}
				o.Log = log
			})
			note := fmt.Sprintf("note calibration algorithm %s cache TRT-%d-%s|images: 3c010a14|\n", algorithm, version, name)
			require.Contains(t, string(plan.File), note)
			require.Contains(t, string(plan.File), "note flag 0\n", "FP16 beside INT8")
			require.Contains(t, string(plan.File), "note flag 1\n")
			// Missing ranges are reported in one line.
			require.Contains(t, logged(), `level=WARN msg="2 tensors have no INT8 range; layers that read or compute them stay in floating point"`)
			require.NotContains(t, logged(), "Missing scale")
		}
		// The layers that detectors need in floating point stay there, up to the output, whose type the caller selects.
		hold := func(names ...string) string {
			return string(buildSmall(t, version, func(o *tensorrt.BuildOptions) {
				o.Model = small(func(m *fake.Model) { m.Operators = []string{"backbone", "head", "Integer", "softmax", "decode"} })
				o.Precision = engine.INT8
				o.Calibration = tensorrt.Calibration{Cache: table, MinMax: true, Unquantized: names}
			}).File)
		}
		held := hold("head")
		require.Contains(t, held, map[bool]string{true: "note flag 11\n", false: "note flag 10\n"}[version < 100000], "precisions are preferred")
		require.Contains(t, held,
			"note layer head precision 1 output 1\nnote layer softmax precision 1 output 1\nnote layer output0 precision 1 output -1\n")
		require.NotContains(t, held, "note layer backbone")
		// No layer is constrained if the network has other names.
		require.NotContains(t, hold("head", "other"), "note layer")

		// Q/DQ models need neither.
		plan := buildSmall(t, version, func(o *tensorrt.BuildOptions) { o.Precision = engine.INT8 })
		require.NotContains(t, string(plan.File), "calibration algorithm")
	}

	o := buildOptions(100300, small(nil))
	o.Precision = engine.INT8
	o.Calibration.Cache = filepath.Join(t.TempDir(), "none")
	_, err := tensorrt.Build(t.Context(), o, nil)
	require.ErrorContains(t, err, "calibration cache: open "+o.Calibration.Cache+": no such file or directory")
}

func TestTensorRT11TakesThePrecisionFromTheModel(t *testing.T) {
	for _, precision := range []engine.Precision{engine.FP16, engine.INT8} {
		o := buildOptions(110100, small(nil))
		o.Precision = precision
		_, err := tensorrt.Build(t.Context(), o, nil)
		require.EqualError(t, err, "tensorrt build: TensorRT 11 takes the precision from the model: give it an FP16 or Q/DQ ONNX file")
		require.ErrorIs(t, err, engine.ErrUnsupported)
	}
	require.Equal(t, engine.Auto, buildSmall(t, 110100, nil).Facts.Precision)
	for version, want := range map[int]string{
		8502:   "tensorrt build: strongly typed networks need TensorRT 9 or newer",
		100300: "", 110100: "",
	} {
		calls := record(t)
		o := buildOptions(version, small(nil))
		o.StronglyTyped = true
		_, err := tensorrt.Build(t.Context(), o, nil)
		if want != "" {
			require.EqualError(t, err, want)
			continue
		}
		require.NoError(t, err)
		require.Contains(t, calls(), map[int]string{100300: "createNetworkV2 2\n", 110100: "createNetworkV2 1\n"}[version])
	}
}

func TestBuildOptionsReachTheBuilder(t *testing.T) {
	level, core := 2, 1
	timings := filepath.Join(t.TempDir(), "timings")
	change := func(o *tensorrt.BuildOptions) {
		o.Precision = engine.FP16
		o.Workspace = 123456
		o.OptimizationLevel = &level
		o.DLA = &core
		o.TimingCache = timings
	}
	want := map[int][]string{
		8502:   {"flag 0", "flag 3", "workspace 123456", "dla 1", "device 1", "verbosity 2", "tactics 24", "preview 11"},
		8602:   {"flag 0", "flag 3", "workspace 123456", "dla 1", "level 2", "flag 15", "hardware 1"},
		100300: {"flag 0", "flag 3", "workspace 123456", "dla 1", "level 2", "flag 13", "hardware 1", "tactics 24"},
		110100: {"flag 3", "workspace 123456", "dla 1", "level 2", "flag 12", "hardware 1", "tactics 3"},
	}
	for _, version := range versions {
		plan := buildSmall(t, version, func(o *tensorrt.BuildOptions) {
			change(o)
			if version > 8600 {
				o.VersionCompatible, o.HardwareCompatible = true, true
			}
			if version > 110000 {
				o.Precision = engine.Auto
			}
		})
		for _, note := range want[version] {
			require.Contains(t, string(plan.File), "note "+note+"\n", version)
		}
		text, err := os.ReadFile(timings)
		require.NoError(t, err)
		require.Contains(t, string(text), "FAKETIMING-", "a cache of another release is begun anew")
	}
	for _, change := range []func(*tensorrt.BuildOptions){
		func(o *tensorrt.BuildOptions) { o.VersionCompatible = true }, func(o *tensorrt.BuildOptions) { o.HardwareCompatible = true },
	} {
		o := buildOptions(8502, small(nil))
		change(&o)
		_, err := tensorrt.Build(t.Context(), o, nil)
		require.ErrorContains(t, err, "-compatible plans need TensorRT 8.6 or newer")
	}
}

func TestMessagesKeepTheirLevel(t *testing.T) {
	script(t, "build")
	log, text := logger()
	o := buildOptions(100300, small(nil))
	o.Log = log
	_, err := tensorrt.Build(t.Context(), o, nil)
	require.Error(t, err)
	require.Contains(t, text(), `level=ERROR msg="Error Code 10: Internal Error`)
	require.Contains(t, text(), `level=WARN msg="a warning of the fake library"`)
	require.NotContains(t, text(), slog.LevelDebug.String())
}

// TestExternalTactics: a layer that TensorRT's own kernels lack is built with those of cuBLAS and cuDNN, and only then.
func TestExternalTactics(t *testing.T) {
	for version, want := range map[int]string{8502: "note tactics 31\n", 100300: "note tactics 31\n", 110100: ""} {
		t.Setenv("FAKE_TRT", "")
		require.NotContains(t, string(buildSmall(t, version, nil).File), "tactics 31")
		t.Setenv("FAKE_TRT", "tactics")
		log, text := logger()
		o := buildOptions(version, small(nil))
		o.Log = log
		plan, err := tensorrt.Build(t.Context(), o, nil)
		if want == "" {
			require.ErrorContains(t, err, "Could not find any implementation for node Conv_0.")
			continue
		}
		require.NoError(t, err)
		require.Contains(t, string(plan.File), want)
		require.Contains(t, text(), "building again with those of cuBLAS and cuDNN")
	}
}

// TestSharedMemory: on a GPU without memory of its own the workspace is bounded, and the plan's key does not depend on it.
func TestSharedMemory(t *testing.T) {
	own := buildSmall(t, 100300, nil)
	require.NotContains(t, string(own.File), "note workspace")
	t.Setenv("FAKE_CUDA", "integrated=1")
	shared := buildSmall(t, 100300, nil)
	require.Contains(t, string(shared.File), "note workspace ")
	require.Equal(t, own.Key.Build, shared.Key.Build)
	chosen := buildSmall(t, 100300, func(o *tensorrt.BuildOptions) { o.Workspace = 123456 })
	require.Contains(t, string(chosen.File), "note workspace 123456\n")
}

// TestDLACoreOfAPlan: a plan file is opened on the core that it was built for.
func TestDLACoreOfAPlan(t *testing.T) {
	core := 1
	plan := buildSmall(t, 100300, func(o *tensorrt.BuildOptions) { o.DLA = &core })
	facts, _, err := tensorrt.ReadPlan(plan.File)
	require.NoError(t, err)
	require.Equal(t, &core, facts.DLA)
	file := filepath.Join(t.TempDir(), "trt.log")
	t.Setenv("FAKE_TRT_LOG", file)
	e, err := tensorrt.Options{Options: engine.Options{Bytes: plan.File, Library: libraries[100300]}, Log: quiet}.Open()
	require.NoError(t, err)
	require.NoError(t, e.Close())
	calls, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(calls), "setDLACore 1\n")
}
