package tensorrt_test

import (
	"context"
	"flag"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/cuda"
	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// childEnvironment makes the test binary serve one build, like the program's hidden command.
const childEnvironment = "EDGE_INFER_TEST_BUILD_CHILD"

// versions are one version per ABI family of JetPack, as getInferLibVersion returns them, and the oldest.
var versions = []int{8502, 8602, 100300, 110100}

// libraries are the fake TensorRT libraries by version; empty on a run against real ones.
var libraries map[int]string

// lean is a fake runtime without a builder, parserless a library without a parser next to it.
var lean, parserless string

func TestMain(m *testing.M) {
	if os.Getenv(childEnvironment) != "" {
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
		defer stop()
		out, err := isolate.Answers()
		if err == nil {
			err = tensorrt.ServeBuild(ctx, os.Stdin, out)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	flag.Parse()
	// Fuzzing starts this binary once per worker, and its targets need no library.
	if os.Getenv(hardwareEnvironment) != "" || flag.Lookup("test.fuzz").Value.String() != "" {
		os.Exit(m.Run())
	}
	syscall.Umask(0o022) // directories that a group may write to are no caches
	dir, err := os.MkdirTemp("", "tensorrt-test-")
	if err == nil {
		err = buildFakes(dir)
	}
	code := 1
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	_ = os.RemoveAll(dir)
	os.Exit(code)
}

// buildFakes compiles a CUDA driver, the real kernels for the host, and a TensorRT library for each version.
func buildFakes(dir string) error {
	driver, err := cudafake.Build(dir, 0)
	if err != nil {
		return err
	}
	kernels, err := cudafake.Compile(filepath.Join(dir, "kernels.so"), "-x", "c++", "-std=c++17", "../preprocess/kernels.cu",
		"-lstdc++", "-lm")
	if err != nil {
		return err
	}
	for name, value := range map[string]string{cuda.LibraryEnvironment: driver, "FAKE_CUDA_KERNELS": kernels} {
		if err := os.Setenv(name, value); err != nil {
			return err
		}
	}
	libraries = map[int]string{}
	type job struct {
		options fake.Options
		path    *string
		version int
	}
	jobs := []job{{fake.Options{Version: 100300, Lean: true}, &lean, 0}, {fake.Options{Version: 100300, Parserless: true}, &parserless, 0}}
	for _, version := range versions {
		jobs = append(jobs, job{fake.Options{Version: version}, new(string), version})
	}
	errs := make(chan error)
	for i, j := range jobs {
		go func() {
			j.options.Tables, _ = filepath.Abs(".")
			place := filepath.Join(dir, fmt.Sprint(i))
			err := os.MkdirAll(place, 0o755)
			if err == nil {
				*j.path, err = fake.Build(place, j.options)
			}
			errs <- err
		}()
	}
	for range jobs {
		if e := <-errs; e != nil {
			err = e
		}
	}
	for _, j := range jobs {
		if j.version != 0 {
			libraries[j.version] = *j.path
		}
	}
	return err
}

// eachVersion runs a test on every fake library.
func eachVersion(t *testing.T, test func(t *testing.T, version int)) {
	for _, version := range versions {
		t.Run(fmt.Sprint(version), func(t *testing.T) { test(t, version) })
	}
}

// quiet discards log records.
var quiet = slog.New(slog.DiscardHandler)

// translate converts an ONNX file into the text of the fake parser. The network's name is the file's up to an underscore.
func translate(t testing.TB, path string, data []byte) ([]byte, engine.Metadata) {
	m, err := onnx.Parse(path, data)
	require.NoError(t, err)
	metadata, err := engine.ParseMetadata(m.Metadata())
	require.NoError(t, err)
	network, _, _ := strings.Cut(strings.TrimSuffix(filepath.Base(path), ".onnx"), "_")
	model := fake.Model{Network: network}
	model.Inputs, err = m.Inputs()
	require.NoError(t, err)
	model.Outputs, err = m.Outputs()
	require.NoError(t, err)
	for name := range m.Operators() {
		model.Operators = append(model.Operators, name)
	}
	return model.Bytes(), metadata
}

// script sets the failures of the fake library for the rest of the test.
func script(t *testing.T, settings string) { t.Setenv("FAKE_TRT", settings) }

// record makes the fake library log its calls and returns a function that reads them.
func record(t *testing.T) func() string {
	path := filepath.Join(t.TempDir(), "calls")
	t.Setenv("FAKE_TRT_LOG", path)
	return func() string {
		text, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(text)
	}
}
