package nvdec

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/internal/testtool"
)

// TestDeclarations: cuvid.h has the layout of FFmpeg's headers, which Debian packages as libffmpeg-nvenc-dev.
func TestDeclarations(t *testing.T) {
	output, err := exec.Command(testtool.Program(t, "cc"), append(testtool.Flags(t, "--cflags", "ffnvcodec"), "-std=gnu11",
		"-fsyntax-only", "testdata/abi.c")...).CombinedOutput()
	require.NoError(t, err, "%s", output)
}
