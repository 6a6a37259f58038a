package tritoncheck

import (
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// NVIDIA's client works against this machine's engine, and hears what is not there in words.
func TestNVIDIAsClientAgainstServe(t *testing.T) {
	installed(t)
	p := programtest.Start(t, "serve", "--engine", "onnxruntime=cpu", "--listen", "127.0.0.1:0")
	address := strings.TrimSpace(p.PrintedAfter("model demo at "))
	said := python(t, "client.py", address, "demo")
	t.Log("\n" + said)
	for _, transport := range []string{"http", "grpc"} {
		require.Contains(t, said, transport+" (1, 10, 3549) async 4\n")
		require.Regexp(t, transport+` shared memory: .*[Ss]hared memory`, said)
		require.Regexp(t, transport+` wrong shape: .*images`, said)
		require.Regexp(t, transport+` unknown model: .*"other"`, said)
	}
	require.NoError(t, p.Stop(syscall.SIGTERM))
}
