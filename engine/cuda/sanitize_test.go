package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/cuda/fake"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// The trampoline, ei_cuda.h and the fake driver under the address, leak and undefined-behaviour sanitizers.
func TestSanitized(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CFLAGS", "-g -fsanitize=address,undefined -fno-sanitize-recover=all")
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	program := filepath.Join(dir, "exercise")
	build := exec.Command(testtool.Program(t, "cc"), "-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined",
		"-fno-sanitize-recover=all", "-I.", "-Itrampoline", "-o", program, "testdata/exercise.c", "trampoline/driver.c",
		"trampoline/stubs.S", "-ldl", "-lpthread")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	run := exec.Command(program, driver)
	run.Env = append(os.Environ(), "UBSAN_OPTIONS=print_stacktrace=1")
	output, err = run.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
