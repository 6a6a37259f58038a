package cuda

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/cuda/fake"
)

// The trampoline, ei_cuda.h and the fake driver under the address, leak and undefined-behaviour sanitizers.
func TestSanitized(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("CFLAGS", "-g -fsanitize=address,undefined -fno-sanitize-recover=all")
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	program := filepath.Join(dir, "exercise")
	build := exec.Command("cc", "-O1", "-g", "-Wall", "-Wextra", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-I.",
		"-Itrampoline", "-o", program, "testdata/exercise.c", "trampoline/driver.c", "trampoline/stubs.S", "-ldl", "-lpthread")
	output, err := build.CombinedOutput()
	require.NoError(t, err, "%s", output)
	run := exec.Command(program, driver)
	run.Env = append(os.Environ(), "UBSAN_OPTIONS=print_stacktrace=1")
	output, err = run.CombinedOutput()
	require.NoError(t, err, "%s", output)
}

// The same on arm64, whose stubs are other code, where a cross compiler and an emulator are installed.
func TestOnARM64(t *testing.T) {
	compiler, err := exec.LookPath("aarch64-linux-gnu-gcc")
	if err != nil {
		t.Skip("aarch64-linux-gnu-gcc is not installed")
	}
	emulator, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("qemu-aarch64-static is not installed")
	}
	t.Setenv("CC", compiler)
	t.Setenv("AR", "aarch64-linux-gnu-ar")
	dir := t.TempDir()
	driver, err := fake.Build(dir, 0)
	require.NoError(t, err)
	archive := filepath.Join(dir, "libcuda.a")
	output, err := exec.Command("trampoline/build", archive).CombinedOutput()
	require.NoError(t, err, "%s", output)
	program := filepath.Join(dir, "exercise")
	output, err = exec.Command(compiler, "-O1", "-I.", "-o", program, "testdata/exercise.c", archive, "-ldl", "-lpthread").CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.Command(emulator, "-L", "/usr/aarch64-linux-gnu", program, driver).CombinedOutput()
	require.NoError(t, err, "%s", output)
}
