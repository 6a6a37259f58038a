package nvdec

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDeclarations: cuvid.h has the layout of FFmpeg's headers, which Debian packages as libffmpeg-nvenc-dev.
func TestDeclarations(t *testing.T) {
	if exec.Command("sh", "-c", "echo '#include <ffnvcodec/dynlink_cuda.h>' | cc -E -").Run() != nil {
		t.Skip("libffmpeg-nvenc-dev is not installed: run make deps")
	}
	output, err := exec.Command("cc", "-std=gnu11", "-fsyntax-only", "testdata/abi.c").CombinedOutput()
	require.NoError(t, err, "%s", output)
}
