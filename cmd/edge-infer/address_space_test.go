package main

import (
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestALimitOfAddresses that is too low is one line and not a trace of Go's runtime, which is not there yet.
func TestALimitOfAddresses(t *testing.T) {
	t.Parallel()
	for limit, mebibytes := range map[string]string{"600000": "585", "1500000": "1464", "3000000": "2929"} {
		program := programtest.Command(t, "version")
		limited := exec.CommandContext(t.Context(), "sh", append([]string{"-c", `ulimit -v "$0" && exec "$@"`, limit}, program.Args...)...)
		limited.Env = program.Env
		output, err := limited.CombinedOutput()
		require.Error(t, err)
		require.Equal(t, 1, limited.ProcessState.ExitCode(), string(output))
		require.Equal(t, "edge-infer: the address space is limited to "+mebibytes+" MiB and 3072 are needed: lift the limit "+
			"(ulimit -v unlimited, LimitAS= of systemd); MemoryMax= bounds memory itself\n", string(output))
	}
}
