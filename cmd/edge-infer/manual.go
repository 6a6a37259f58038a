package main

import (
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
)

// newManual gives the hidden command that writes manual pages and shell completions where packages of Linux distributions have them below
// /usr. The date of the pages is $SOURCE_DATE_EPOCH.
func newManual() *cobra.Command {
	return &cobra.Command{
		Use: "manual DIR", Hidden: true, Args: exactly(1, "a directory"),
		RunE: func(command *cobra.Command, args []string) error {
			root := command.Root()
			root.DisableAutoGenTag = true
			// The host name of the machine that builds a package is nobody's default.
			root.Flags().Lookup("name").DefValue = ""
			pages := filepath.Join(args[0], "share", "man", "man1")
			if err := os.MkdirAll(pages, 0o755); err != nil {
				return err
			}
			header := &doc.GenManHeader{Section: "1", Source: "edge-infer " + release, Manual: "User commands"}
			if err := doc.GenManTree(root, header, pages); err != nil {
				return fmt.Errorf("write manual pages: %w", err)
			}
			for path, write := range map[string]func(string) error{
				"bash-completion/completions/edge-infer":    func(file string) error { return root.GenBashCompletionFileV2(file, true) },
				"zsh/vendor-completions/_edge-infer":        root.GenZshCompletionFile,
				"fish/vendor_completions.d/edge-infer.fish": func(file string) error { return root.GenFishCompletionFile(file, true) },
			} {
				file := filepath.Join(args[0], "share", path)
				if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
					return err
				}
				if err := write(file); err != nil {
					return fmt.Errorf("write completion: %w", err)
				}
			}
			return nil
		},
	}
}
