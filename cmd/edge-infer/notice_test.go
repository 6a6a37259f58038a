package main

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// What is understood in spite of its name, and what is not read, is told on one line each, apart from the output.
func TestNotices(t *testing.T) {
	t.Parallel()
	run := func(environment []string, args ...string) (stdout, stderr string) {
		var out, said bytes.Buffer
		c := programtest.Command(t, args...)
		c.Env = append(c.Environ(), environment...)
		c.Stdout, c.Stderr = &out, &said
		require.NoError(t, c.Run(), said.String())
		return out.String(), said.String()
	}
	version, said := run(nil, "--version")
	require.Empty(t, said)
	again, _ := run(nil, "version")
	require.Equal(t, again, version)
	require.Contains(t, version, "edge-infer development ")

	_, said = run([]string{"EDGE_INFER_CONFF=0.9"}, "devices", "--json")
	require.Equal(t, "edge-infer: environment EDGE_INFER_CONFF is not read, did you mean EDGE_INFER_CONFIDENCE?\n", said)

	_, said = run(nil, "--camera", "demo?width=320&height=240", "--frames", "1", "--json", "--mqtt", "off", "--name", "gate", "--device", "0",
		"--log", "error")
	require.Equal(t, "edge-infer: --device is called --gpu now\nedge-infer: --name is called --name now\n", said)
	help, _ := run(nil, "--help")
	require.Contains(t, help, "--name")
	require.Contains(t, help, "  completion ")
	require.NotContains(t, help, "--device ")
}
