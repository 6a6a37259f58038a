package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/manual"
)

func newConfig(stdout io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "config", Short: "Print or check a configuration file", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			return config.Usagef("config needs defaults, check FILE, show, schema or reference")
		},
	}
	command.AddCommand(
		newDefaults(stdout),
		newCheck(stdout),
		newShow(stdout),
		&cobra.Command{
			Use: "reference", Short: "Print the documentation of every setting as Markdown", Args: noArguments,
			RunE: func(*cobra.Command, []string) error {
				page, err := manual.Reference()
				if err != nil {
					return err
				}
				_, err = io.WriteString(stdout, page)
				return err
			},
		},
		&cobra.Command{
			Use: "schema", Short: "Print a JSON Schema of the configuration file, for editors", Args: noArguments,
			Long: `Editors that know JSON Schema complete and check the configuration file with it. For the YAML language server, write the schema beside the
file and begin the file with  # yaml-language-server: $schema=edge-infer.schema.json

  edge-infer config schema >edge-infer.schema.json`,
			RunE: func(*cobra.Command, []string) error {
				schema, err := manual.Schema()
				if err != nil {
					return err
				}
				_, err = stdout.Write(schema)
				return err
			},
		},
		newForget(stdout))
	return command
}

// newDefaults prints the default configuration file.
func newDefaults(stdout io.Writer) *cobra.Command {
	var all bool
	command := &cobra.Command{
		Use: "defaults", Short: "Print a commented file with the default settings", Args: noArguments,
		Long: `Prints a configuration file with the settings that are changed most often, each with its default, meaning, flag and environment variable.
With --all it contains every setting.

  edge-infer config defaults >edge-infer.yaml`,
		RunE: func(*cobra.Command, []string) error {
			file, err := manual.DefaultFile(all)
			if err != nil {
				return err
			}
			_, err = io.WriteString(stdout, file)
			return err
		},
	}
	command.Flags().BoolVar(&all, "all", false, "print every setting")
	return command
}

// newShow prints the settings in force.
func newShow(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.AllSections()}
	var origin, asJSON bool
	command := &cobra.Command{
		Use: "show", Short: "Print every setting in force, and with --origin where it comes from", Args: noArguments,
		Long: `Merges defaults, the file and conf.d beside it, EDGE_INFER_* variables and flags as run does. Values of ${} references and passwords in
addresses are not shown.

  edge-infer config show --config /etc/edge-infer/edge-infer.yaml --origin`,
		RunE: func(*cobra.Command, []string) error {
			all, err := settings.Origins()
			if err != nil {
				return err
			}
			if asJSON {
				return json.NewEncoder(stdout).Encode(all)
			}
			table := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
			for _, setting := range all {
				if origin {
					fmt.Fprintf(table, "%s\t%s\t%s\n", setting.Key, setting.Value, setting.From)
				} else {
					fmt.Fprintf(table, "%s\t%s\n", setting.Key, setting.Value)
				}
			}
			return table.Flush()
		},
	}
	command.Flags().BoolVar(&origin, "origin", false, "print where each value comes from")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON, always with the origin")
	settings.Flags(command.Flags())
	settings.CameraFlag(command.Flags(), "as of run")
	settings.CascadeFlag(command.Flags())
	return command
}
