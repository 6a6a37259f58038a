package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/manual"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config/migrate"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/preflight"
)

func newConfig(stdout io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "config", Short: "Print or check a configuration file", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			return config.Usagef("config needs defaults, check FILE, migrate FILE, show, schema or reference")
		},
	}
	command.AddCommand(
		&cobra.Command{
			Use: "defaults", Short: "Print a commented file that says the built-in defaults", Args: noArguments,
			RunE: func(*cobra.Command, []string) error {
				file, err := manual.DefaultFile()
				if err != nil {
					return err
				}
				_, err = io.WriteString(stdout, file)
				return err
			},
		},
		newCheck(stdout),
		newMigrate(stdout),
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

// newCheck finds the mistakes that a start or a reload with the file would end with.
func newCheck(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Everything()}
	command := &cobra.Command{
		Use: "check FILE", Short: "Read a file as run would, open what it names, and report the mistakes",
		Args: func(_ *cobra.Command, args []string) error {
			if settings.File != "" {
				args = append(args, settings.File)
			}
			if len(args) != 1 {
				return config.Usagef("check needs the configuration file, once")
			}
			settings.File = args[0]
			return nil
		},
		Long: `Reads the file, conf.d beside it, EDGE_INFER_* variables and the flags of run that are given too, and tells every mistake with its
line. Where there is none it opens the network in a process of its own, and checks labels, zones, passwords, tokens, certificates, folders and
addresses. A daemon that runs is not disturbed. Cameras and brokers may be away at any time and are not asked: edge-infer doctor does that.`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, mistakes := settings.Check()
			if len(mistakes) > 0 {
				return mistakes
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			check := preflight.Check{Config: c, Program: []string{program, preflight.Command}}
			for _, mistake := range check.Run(command.Context()) {
				mistakes = append(mistakes, fmt.Errorf("config %s: %w", settings.File, mistake))
			}
			if len(mistakes) > 0 {
				return mistakes
			}
			_, err = fmt.Fprintf(stdout, "%s: no mistakes, %d cameras\n", settings.File, len(c.Cameras))
			return err
		},
	}
	settings.Flags(command.Flags())
	settings.CameraFlag(command.Flags(), "as of run")
	settings.CascadeFlag(command.Flags())
	return command
}

// newMigrate writes files anew in which settings have former names.
func newMigrate(stdout io.Writer) *cobra.Command {
	var dry bool
	command := &cobra.Command{
		Use: "migrate FILE ...", Short: "Write settings that had other names once by their names now",
		Long: `Reads configurations, and files that set EDGE_INFER_* variables such as drop-ins of systemd and compose files, and replaces names that settings
had once. Comments and everything else stay as they are; the file as it was is kept beside it, with ` + migrate.BackupSuffix + ` at the end of its name.
Flags in scripts are yours to change: a run by former flags tells their names now.

  sudo edge-infer config migrate /etc/edge-infer/edge-infer.yaml`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return config.Usagef("migrate needs files")
			}
			return nil
		},
		RunE: func(_ *cobra.Command, args []string) error {
			var failed error
			for _, path := range args {
				changes, err := migrate.File(path, !dry)
				failed = errors.Join(failed, err)
				for _, change := range changes {
					fmt.Fprintf(stdout, "%s %v\n", path, change)
				}
				if err == nil && len(changes) == 0 {
					fmt.Fprintf(stdout, "%s: nothing to change\n", path)
				}
			}
			return failed
		},
	}
	command.Flags().BoolVar(&dry, "dry-run", false, "say what would change, and change nothing")
	return command
}

// newShow tells what is in force.
func newShow(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Everything()}
	var origin, asJSON bool
	command := &cobra.Command{
		Use: "show", Short: "Print every setting in force, and with --origin where it comes from", Args: noArguments,
		Long: `Puts defaults, the file and conf.d beside it, EDGE_INFER_* variables and flags over each other as run does. What ${} stands for is
not shown, nor are passwords in addresses.

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
	command.Flags().BoolVar(&origin, "origin", false, "tell where each value comes from")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON, always with the origin")
	settings.Flags(command.Flags())
	settings.CameraFlag(command.Flags(), "as of run")
	settings.CascadeFlag(command.Flags())
	return command
}

// newForget takes a decommissioned device off its broker.
func newForget(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Broker()}
	command := &cobra.Command{
		Use: "forget-discovery", Short: "Remove a decommissioned device's retained messages and Home Assistant entities from its broker",
		Args: noArguments,
		Long: `Connects to the broker that --mqtt or the configuration names and clears every retained message of the device and its Home Assistant
discovery. Stop the device's daemon first, or it publishes them again.

  edge-infer config forget-discovery --mqtt tcp://broker:1883 --device-name gate`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			cleared, err := broker.Forget(command.Context(), c)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s: %d retained messages removed\n", c.Device, cleared)
			return err
		},
	}
	settings.Flags(command.Flags())
	return command
}
