package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func newConfig(stdout io.Writer) *cobra.Command {
	command := &cobra.Command{Use: "config", Short: "Print or check a configuration file", Args: noArguments, RunE: func(c *cobra.Command, _ []string) error {
		return usagef("config needs defaults or check FILE")
	}}
	command.AddCommand(
		&cobra.Command{
			Use: "defaults", Short: "Print a commented file that says the built-in defaults", Args: noArguments,
			RunE: func(*cobra.Command, []string) error {
				file, err := config.DefaultFile()
				if err != nil {
					return err
				}
				_, err = io.WriteString(stdout, file)
				return err
			},
		},
		&cobra.Command{
			Use: "check FILE", Short: "Read a file as run would and report the first mistake", Args: exactly(1, "the configuration file"),
			RunE: func(_ *cobra.Command, args []string) error {
				c, err := config.Load(args[0])
				if err != nil {
					return err
				}
				if err := c.Validate(); err != nil {
					return fmt.Errorf("config %s: %w", args[0], err)
				}
				_, err = fmt.Fprintf(stdout, "%s: no mistakes, %d cameras\n", args[0], len(c.Cameras))
				return err
			},
		})
	return command
}

// exactly wants n arguments and names what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s needs %s, got %d arguments", command.Name(), what, len(args))
		}
		return nil
	}
}
