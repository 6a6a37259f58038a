package main

import (
	"cmp"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/stretchr/testify/require"
)

// manualEnvironment names the directory in which the manual pages and shell completions are to stay, where Linux distributions have them
// below /usr. Packages are made that way: what writes them is larger than what it writes and has no place in the program.
const manualEnvironment = "EDGE_INFER_MANUAL"

// writeManual writes the pages with the date $SOURCE_DATE_EPOCH.
func writeManual(dir string, root *cobra.Command) error {
	root.DisableAutoGenTag = true
	// The host name of the machine that builds a package is nobody's default.
	root.Flags().Lookup("name").DefValue = ""
	pages := filepath.Join(dir, "share", "man", "man1")
	if err := os.MkdirAll(pages, 0o755); err != nil {
		return err
	}
	header := &doc.GenManHeader{Section: "1", Source: "edge-infer " + release, Manual: "User commands"}
	if err := doc.GenManTree(root, header, pages); err != nil {
		return err
	}
	for path, write := range map[string]func(string) error{
		"bash-completion/completions/edge-infer":    func(file string) error { return root.GenBashCompletionFileV2(file, true) },
		"zsh/vendor-completions/_edge-infer":        root.GenZshCompletionFile,
		"fish/vendor_completions.d/edge-infer.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
	} {
		file := filepath.Join(dir, "share", path)
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := write(file); err != nil {
			return err
		}
	}
	return nil
}

func TestManual(t *testing.T) {
	epoch := cmp.Or(os.Getenv("SOURCE_DATE_EPOCH"), "1700000000")
	t.Setenv("SOURCE_DATE_EPOCH", epoch)
	dir := cmp.Or(os.Getenv(manualEnvironment), t.TempDir())
	require.NoError(t, writeManual(dir, newRoot(io.Discard, io.Discard)))
	for path, want := range map[string]string{
		"man/man1/edge-infer.1":                     `"edge-infer ` + release + `" "User commands"`,
		"man/man1/edge-infer-run.1":                 "\\fB--camera\\fP",
		"bash-completion/completions/edge-infer":    "complete -o default -F __start_edge-infer edge-infer",
		"zsh/vendor-completions/_edge-infer":        "#compdef edge-infer",
		"fish/vendor_completions.d/edge-infer.fish": "complete -c edge-infer",
	} {
		text, err := os.ReadFile(filepath.Join(dir, "share", path))
		require.NoError(t, err)
		require.Contains(t, string(text), want, path)
	}
	host, err := os.Hostname()
	require.NoError(t, err)
	for _, page := range []string{"edge-infer.1", "edge-infer-run.1"} {
		text, err := os.ReadFile(filepath.Join(dir, "share", "man", "man1", page))
		require.NoError(t, err)
		require.NotContains(t, string(text), `--name="`+host+`"`)
	}
}
