package main

import (
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestLibrariesDoNotPrintIntoJSON: what a library prints to standard output when it is loaded goes to standard error.
func TestLibrariesDoNotPrintIntoJSON(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	source, library := filepath.Join(dir, "loud.c"), filepath.Join(dir, "libloud.so")
	const text = "#include <stdio.h>\n__attribute__((constructor)) static void load(void) { puts(\"a library speaks\"); fflush(stdout); }\n"
	require.NoError(t, os.WriteFile(source, []byte(text), 0o600))
	runtime := filepath.Join(dir, "libonnxruntime.so.1") // its SONAME
	require.NoError(t, os.Symlink(os.Getenv("EDGE_INFER_ONNXRUNTIME"), runtime))
	build := exec.CommandContext(t.Context(), testtool.Program(t, "gcc"), "-shared", "-fPIC", "-o", library, source,
		"-Wl,--no-as-needed", runtime, "-Wl,-rpath,"+dir)
	output, err := build.CombinedOutput()
	require.NoError(t, err, string(output))
	command := programtest.Command(t, "run", "--camera", "demo?frames=5", "--mqtt", "off", "--json")
	command.Env = append(command.Environ(), "EDGE_INFER_ONNXRUNTIME="+library)
	var stdout, stderr bytes.Buffer
	command.Stdout, command.Stderr = &stdout, &stderr
	require.NoError(t, command.Run(), stderr.String())
	require.Contains(t, stderr.String(), "a library speaks")
	for line := range bytes.Lines(stdout.Bytes()) {
		require.True(t, json.Valid(line), string(line))
	}
}
