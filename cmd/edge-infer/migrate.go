package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/migrate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// migrated is what config migrate changed, or would change, in the files that it could.
type migrated struct {
	Version int            `json:"v"`
	Files   []migratedFile `json:"files"`
}

type migratedFile struct {
	File    string           `json:"file"`
	Changes []migrate.Change `json:"changes"`
}

// Print gives each change a line.
func (m migrated) Print(out io.Writer) error {
	for _, f := range m.Files {
		name := terminal.Printable([]byte(f.File)) // is one line
		for _, change := range f.Changes {
			if _, err := fmt.Fprintf(out, "%s %v\n", name, change); err != nil {
				return err
			}
		}
		if len(f.Changes) == 0 {
			if _, err := fmt.Fprintf(out, "%s: nothing to change\n", name); err != nil {
				return err
			}
		}
	}
	return nil
}

// newMigrate writes files anew in which settings have former names.
func newMigrate(stdout io.Writer) *cobra.Command {
	var dry, asJSON bool
	command := &cobra.Command{
		Use: "migrate FILE ...", Short: "Rename keys and variables of earlier versions in files",
		Long: `Renames keys in configuration files, and EDGE_INFER_* variables in files that set them such as systemd drop-ins and compose files. Comments and
everything else stay; the original is kept beside each file with ` + migrate.BackupSuffix + ` appended to its name.

  sudo edge-infer config migrate /etc/edge-infer/edge-infer.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return config.Usagef("migrate needs files")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var failed error
			result := migrated{Version: 1, Files: []migratedFile{}}
			for _, path := range args {
				changes, err := migrate.File(path, !dry)
				if err == nil {
					result.Files = append(result.Files, migratedFile{File: path, Changes: append([]migrate.Change{}, changes...)})
				}
				failed = errors.Join(failed, err)
			}
			return show(stdout, asJSON, result, failed)
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "print the changes without making them")
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
