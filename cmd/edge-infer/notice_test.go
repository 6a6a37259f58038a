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

	_, said = run([]string{"EDGE_INFER_CONFIDENSE=0.9"}, "devices", "--json")
	require.Equal(t, "edge-infer: environment EDGE_INFER_CONFIDENSE is not read, did you mean EDGE_INFER_CONFIDENCE?\n", said)

	help, _ := run(nil, "--help")
	require.Contains(t, help, "--name")
	require.Contains(t, help, "  completion ")
	require.NotContains(t, help, "--device ")
}
