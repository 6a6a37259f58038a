package tensorrt

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/internal/meminfo"
)

func TestWriteFailure(t *testing.T) {
	path := "/cache/a.plan"
	for _, test := range []struct {
		err  error
		want string
	}{
		{
			syscall.ENOSPC,
			"tensorrt write: /cache/a.plan: no space left on device (free 6 MiB on that disk, or set XDG_CACHE_HOME to another one)",
		},
		{
			syscall.EROFS,
			"tensorrt write: /cache/a.plan: read-only file system (make the directory writable for this user, or set XDG_CACHE_HOME to one that is)",
		},
		{
			&fs.PathError{Op: "open", Path: path, Err: syscall.EACCES},
			"tensorrt write: /cache/a.plan: open /cache/a.plan: permission denied (make the directory writable for this user, or set XDG_CACHE_HOME to one that is)",
		},
		{syscall.EIO, "tensorrt write: /cache/a.plan: input/output error"},
	} {
		require.EqualError(t, writeFailure(path, 5<<20, test.err), test.want)
		require.ErrorIs(t, writeFailure(path, 5<<20, test.err), test.err)
	}
}

func TestSearchPaths(t *testing.T) {
	none := func(string) string { return "" }
	paths := searchPaths("", none)
	require.Equal(t, names[:], paths[:len(names)])
	require.Equal(t, leanNames[:], paths[len(paths)-len(leanNames):])
	require.Equal(t, []string{"/opt/libnvinfer.so.10"}, searchPaths("/opt/libnvinfer.so.10", none))

	dir := t.TempDir()
	require.Equal(t, []string{filepath.Join(dir, "libnvinfer.so")}, searchPaths(dir, none), "for the loader's message")
	packages := filepath.Join(dir, "lib/python3.11/site-packages")
	for _, name := range []string{
		"tensorrt_libs/libnvinfer.so.10", "tensorrt_cu13_libs/libnvinfer.so.11",
		"tensorrt/libnvinfer.so.8", "tensorrt/libnvinfer.so.8.5.3",
	} {
		path := filepath.Join(packages, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, nil, 0o600))
	}
	paths = searchPaths("", func(name string) string { return map[string]string{"VIRTUAL_ENV": dir}[name] })
	require.Equal(t, []string{
		filepath.Join(packages, "tensorrt_cu13_libs/libnvinfer.so.11"), filepath.Join(packages, "tensorrt_libs/libnvinfer.so.10"),
		filepath.Join(packages, "tensorrt/libnvinfer.so.8"), filepath.Join(packages, "tensorrt/libnvinfer.so.8.5.3"),
	}, paths[len(names):len(names)+4])
	paths = searchPaths("", func(name string) string {
		return map[string]string{LibraryEnvironment: filepath.Join(packages, "tensorrt")}[name]
	})
	require.Equal(t, []string{filepath.Join(packages, "tensorrt/libnvinfer.so.8")}, paths)
}

func TestCacheDir(t *testing.T) {
	t.Setenv("CACHE_DIRECTORY", "")
	t.Setenv("XDG_CACHE_HOME", "/x")
	dir, err := CacheDir()
	require.NoError(t, err)
	require.Equal(t, "/x/edge-infer", dir)
	t.Setenv("CACHE_DIRECTORY", "/var/cache/edge-infer")
	dir, err = CacheDir()
	require.NoError(t, err)
	require.Equal(t, "/var/cache/edge-infer", dir)
}

func TestReadProfile(t *testing.T) {
	times, err := readProfile("1.5 conv + relu\n0.25 {ForeignNode[a...b]}\n\n2.5 conv + relu\n0.35 {ForeignNode[a...b]}\n\n")
	require.NoError(t, err)
	require.Equal(t, []LayerTime{{"conv + relu", 2 * time.Millisecond}, {"{ForeignNode[a...b]}", 300 * time.Microsecond}}, times)
	for text, want := range map[string]string{
		"noise\n":             `"noise" is not a layer's time`,
		"-1 conv\n":           `"-1 conv" is not a layer's time`,
		"1 a\n1 b\n\n1 a\n\n": "run 2 had 1 layers, the first one 2",
		"1 a\n1 b\n\n1 b\n":   `run 2 has layer "b" as number 1, the first one had another`,
		"1 a\n\n1 a\n1 a\n\n": `run 2 has layer "a" as number 2, the first one had another`,
	} {
		_, err := readProfile(text)
		require.EqualError(t, err, want)
	}
}

func FuzzReadProfile(f *testing.F) {
	f.Add("1.500000 conv\n\n")
	f.Add("1 a\n2 b\n\n1 a\n2 b\n\n")
	f.Fuzz(func(_ *testing.T, text string) { _, _ = readProfile(text) })
}

func TestReadLayers(t *testing.T) {
	layers, err := readLayers([]byte(`{"Layers": [
		{"Name": "conv1", "LayerType": "CaskConvolution", "Inputs": [{"Name": "a", "Location": "Device", "Dimensions": [1, 3],
			"Format/Datatype": "Thirty-two wide channel vectorized row major Int8 format"}],
			"Outputs": [{"Format/Datatype": "Channel major FP16 format where channel % 8 == 0"}]},
		{"Name": "gen", "LayerType": "kgen", "Inputs": [], "Outputs": [{"Format/Datatype": "Half"}]},
		{"Name": "{ForeignNode[conv2...conv9]}", "LayerType": "DLA", "Inputs": [{"Format/Datatype": "Row major linear FP32"}]},
		{"Name": "shape", "LayerType": "ShapeHostToDevice", "Outputs": [{"Datatype": "Int64"}]},
		"conv3"], "Bindings": ["images", "output0"]}`))
	require.NoError(t, err)
	require.Equal(t, []Layer{
		{"conv1", "CaskConvolution", "int8", "GPU"},
		{"gen", "kgen", "fp16", "GPU"},
		{"{ForeignNode[conv2...conv9]}", "DLA", "fp32", "DLA"},
		{"shape", "ShapeHostToDevice", "int64", "GPU"},
		{"conv3", "", "", "GPU"},
	}, layers)
	_, err = readLayers([]byte(`{"Layers": [3]}`))
	require.EqualError(t, err, "layer description: json: cannot unmarshal number into Go value of type tensorrt.inspected")
	_, err = readLayers([]byte(`{"Layers`))
	require.EqualError(t, err, "layer description: unexpected end of JSON input")
}

func FuzzReadLayers(f *testing.F) {
	f.Add([]byte(`{"Layers": ["a", {"Name": "b", "Inputs": [{"Format/Datatype": "Half"}]}]}`))
	f.Fuzz(func(_ *testing.T, text []byte) { _, _ = readLayers(text) })
}

func FuzzCheckModel(f *testing.F) {
	f.Add([]byte("\x08\x08\x12\x02ab"))
	f.Add([]byte("\x3a\xff\xff\xff\xff\xff\xff\xff\xff\x7f"))
	f.Fuzz(func(_ *testing.T, file []byte) { _ = checkModel(file) })
}

// A plan's cache key depends on the shape and the calibration of its build.
func TestKeyContainsShapeAndCalibration(t *testing.T) {
	file := func(o BuildOptions) string {
		key, err := o.key(Version{Major: 10, Minor: 3}, cuda.Facts{Name: "GPU", Major: 8, Minor: 7}, nil)
		require.NoError(t, err)
		path, err := Cache{Dir: "/cache"}.file(key)
		require.NoError(t, err)
		return path
	}
	of := func(o engine.Options) BuildOptions {
		options := Options{Options: o}
		return options.BuildOptions()
	}
	metadata := engine.Metadata{Width: 640, Height: 640, Stride: 32}
	square, wide := engine.Options{Metadata: metadata}, engine.Options{Metadata: metadata, Sources: []engine.Size{{Width: 1920, Height: 1080}}}
	options := engine.Options{Metadata: metadata, Width: 640, Height: 384}
	require.Equal(t, []int{640, 384}, []int{of(wide).Width, of(wide).Height})
	require.NotEqual(t, file(of(square)), file(of(wide)))
	require.Equal(t, file(of(options)), file(of(wide)))
	require.Equal(t, file(of(square)), file(BuildOptions{Metadata: metadata}), "no source is the shape of the metadata")

	tables := map[string]bool{}
	for _, ranges := range []string{"a: 3c010a14", "a: 3c010a15"} {
		table := filepath.Join(t.TempDir(), "table")
		require.NoError(t, os.WriteFile(table, []byte(ranges), 0o600))
		o := BuildOptions{Precision: engine.INT8, Calibration: Calibration{Cache: table}}
		tables[file(o)] = true
		o.Precision = engine.FP16
		require.Equal(t, file(BuildOptions{Precision: engine.FP16}), file(o), "only INT8 depends on it")
	}
	require.Len(t, tables, 2)
}

func TestSharedWorkspace(t *testing.T) {
	for _, test := range []struct {
		available, swap int64
		workspace       int64
		want            string
	}{
		{available: -1, swap: -1},
		{available: 8 << 30, swap: -1, workspace: 1 << 30},
		{available: 2 << 30, swap: 0, workspace: 512 << 20},
		{available: 400 << 20, swap: 2 << 30, workspace: 100 << 20},
		{
			available: 400 << 20, swap: 0, want: "tensorrt build: 400 MiB of memory and swap are free, a build needs at least 542 " +
				"(close other programs or add swap, or build the plan on another board of this kind: edge-infer build -o PLAN)",
		},
	} {
		workspace, err := sharedWorkspace(meminfo.Memory{Available: test.available, SwapFree: test.swap}, 10<<20)
		if test.want != "" {
			require.EqualError(t, err, test.want)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, test.workspace, workspace)
	}
}
