package gstreamer

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// headerFlags are the compiler flags for GStreamer's headers.
func headerFlags(t *testing.T) []string {
	return testtool.Flags(t, "--cflags", "gstreamer-app-1.0", "gstreamer-video-1.0")
}

// The declarations in abi.h are those of the installed headers.
func TestLayout(t *testing.T) {
	arguments := append(headerFlags(t), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", "testdata/layout.c")
	output, err := exec.Command(testtool.Program(t, "cc"), arguments...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}
