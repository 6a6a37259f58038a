package preprocess_test

import (
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/cpu"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// The check compares every kernel with its plain twin and reads next to closed pages, under the sanitizers; TestEmulatedC of package cross
// does so on arm64.
func TestKernels(t *testing.T) {
	native := "plain" // what the kernels are to choose on this machine
	switch {
	case cpu.X86.HasAVX2:
		native = "avx2"
	case runtime.GOARCH == "arm64":
		native = "neon"
	}
	sources, err := filepath.Glob("*.c")
	require.NoError(t, err)
	binary := filepath.Join(t.TempDir(), "check")
	arguments := append([]string{
		"-std=gnu11", "-O3", "-ffp-contract=off", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover", "-o", binary, "testdata/check.c",
	}, sources...)
	output, err := exec.CommandContext(t.Context(), testtool.Program(t, "cc"), append(arguments, "-lm")...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	output, err = exec.CommandContext(t.Context(), binary, "1000", "1").CombinedOutput()
	require.NoError(t, err, "%s", output)
	require.Equal(t, native, strings.TrimSpace(string(output)))
}
