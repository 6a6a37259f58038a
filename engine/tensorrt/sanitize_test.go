package tensorrt_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	cudafake "github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/engine/tensorrt/fake"
)

// TestSanitizers compiles the shim, the trampoline and the fakes with AddressSanitizer and UndefinedBehaviorSanitizer and runs them from
// C++, one ABI family at a time.
func TestSanitizers(t *testing.T) {
	if libraries == nil {
		t.Skip("real hardware")
	}
	flags := []string{"-g1", "-O0", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"}
	dir := t.TempDir()
	run := func(name string, arguments ...string) string {
		output, err := exec.CommandContext(t.Context(), name, arguments...).CombinedOutput()
		require.NoError(t, err, "%s", output)
		return string(output)
	}
	trampoline := filepath.Join(dir, "libcuda.a")
	run("../cuda/trampoline/build", trampoline)
	program := filepath.Join(dir, "driver")
	sources, err := filepath.Glob("*.cc")
	require.NoError(t, err)
	compile := append([]string{"-std=c++17", "-Wall", "-Wextra", "-o", program, "testdata/driver.cc", trampoline},
		append(flags, sources...)...)
	run("g++", append(compile, trampoline, "-ldl", "-lpthread")...)
	cuda, err := cudafake.Build(dir, 0)
	require.NoError(t, err)
	model := filepath.Join(dir, "model.onnx")
	require.NoError(t, os.WriteFile(model, small(nil), 0o600))
	tables, err := filepath.Abs(".")
	require.NoError(t, err)
	for _, version := range []int{8602, 100300, 110100} {
		library, err := fake.Build(t.TempDir(), fake.Options{Version: version, Tables: tables, Flags: flags})
		require.NoError(t, err)
		require.Equal(t, "clean\n", run(program, cuda, library, model), version)
	}
}
