package main

import (
	"io"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestAModelIsOfferedAtATerminal: without a model a person is asked, and a program gets the error.
func TestAModelIsOfferedAtATerminal(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]string{
		"n\n":  "no model is set (edge-infer model pull people",
		"y\n":  "model yolox-s: ", // the proxy refuses
		"\x04": "no model is set (edge-infer model pull people",
	} {
		c := programtest.CommandWith(t, []string{"HTTPS_PROXY=http://127.0.0.1:9"}, "infer", "x.jpg")
		terminal, err := pty.Start(c)
		require.NoError(t, err)
		_, err = terminal.WriteString(answer)
		require.NoError(t, err)
		output, _ := io.ReadAll(terminal) // a closed terminal is an error
		require.Error(t, c.Wait())
		require.Contains(t, string(output), "Download it (36 MB, Apache-2.0) and continue? [Y/n]")
		require.Contains(t, string(output), want)
		require.NoError(t, terminal.Close())
	}
}

// TestAModelIsOfferedOnce: who has declined is not asked again, but told how to get a model.
func TestAModelIsOfferedOnce(t *testing.T) {
	t.Parallel()
	cache := "CACHE_DIRECTORY=" + t.TempDir()
	for _, asked := range []bool{true, false} {
		c := programtest.CommandWith(t, []string{cache}, "infer", "x.jpg")
		terminal, err := pty.Start(c)
		require.NoError(t, err)
		_, err = terminal.WriteString("n\n")
		require.NoError(t, err)
		output, _ := io.ReadAll(terminal) // a closed terminal is an error
		require.Error(t, c.Wait())
		require.Contains(t, string(output), "no model is set (edge-infer model pull people")
		require.Equal(t, asked, strings.Contains(string(output), "[Y/n]"), "%s", output)
		require.NoError(t, terminal.Close())
	}
}
