package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestManual(t *testing.T) {
	t.Setenv("SOURCE_DATE_EPOCH", "1700000000")
	folder := t.TempDir()
	require.Zero(t, execute([]string{"manual", folder}, os.Stdout, os.Stderr))
	for path, want := range map[string]string{
		"man/man1/edge-infer.1":                     `.TH "EDGE-INFER" "1" "Nov 2023" "edge-infer development" "User commands"`,
		"man/man1/edge-infer-run.1":                 "\\fB--camera\\fP",
		"bash-completion/completions/edge-infer":    "complete -o default -F __start_edge-infer edge-infer",
		"zsh/vendor-completions/_edge-infer":        "#compdef edge-infer",
		"fish/vendor_completions.d/edge-infer.fish": "complete -c edge-infer",
	} {
		text, err := os.ReadFile(filepath.Join(folder, "share", path))
		require.NoError(t, err)
		require.Contains(t, string(text), want, path)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	page, err := os.ReadFile(filepath.Join(folder, "share", "man/man1/edge-infer-run.1"))
	require.NoError(t, err)
	require.NotContains(t, string(page), `--name="`+host+`"`)
}
