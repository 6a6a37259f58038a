package gstreamer

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// The C part with real pipelines under the address, leak and undefined-behaviour sanitizers.
func TestSanitized(t *testing.T) {
	needGStreamer(t)
	flags := headerFlags(t)
	libraries := testtool.Flags(t, "--libs", "gstreamer-app-1.0", "gstreamer-video-1.0")
	dir := t.TempDir()
	program, suppressions := filepath.Join(dir, "exercise"), filepath.Join(dir, "suppressions")
	// GLib keeps memory that it takes when it is loaded, without a pointer to its start. The name is that of the loader's file: its functions
	// have names only where libc6-dbg is installed.
	require.NoError(t, os.WriteFile(suppressions, []byte("leak:ld-linux\n"), 0o600))
	arguments := append(flags, "-std=gnu11", "-O1", "-g", "-Wall", "-Wextra", "-Wno-enum-conversion", "-Wno-enum-compare",
		"-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-o", program, "testdata/exercise.c", "-ldl", "-lpthread")
	output, err := exec.Command(testtool.Program(t, "cc"), append(arguments, libraries...)...).CombinedOutput()
	require.NoError(t, err, "%s", output)
	run := exec.Command(program)
	run.Env = append(os.Environ(), "UBSAN_OPTIONS=print_stacktrace=1", "ASAN_OPTIONS=fast_unwind_on_malloc=0",
		"LSAN_OPTIONS=print_suppressions=0:suppressions="+suppressions)
	output, err = run.CombinedOutput()
	require.NoError(t, err, "%s", output)
}
