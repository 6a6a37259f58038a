package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

func newConfig(stdout io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "config", Short: "Print or check a configuration file", Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return config.Usagef("config needs defaults or check FILE") },
	}
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
				c, err := config.CheckFile(args[0])
				if err != nil {
					return err
				}
				_, err = fmt.Fprintf(stdout, "%s: no mistakes, %d cameras\n", args[0], len(c.Cameras))
				return err
			},
		},
		newForget(stdout))
	return command
}

// newForget takes a decommissioned device off its broker.
func newForget(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.Broker()}
	command := &cobra.Command{
		Use: "forget-discovery", Short: "Remove a decommissioned device's retained messages and Home Assistant entities from its broker", Args: noArguments,
		Long: `Connects to the broker that --mqtt or the configuration names and clears every retained message of the device and its Home Assistant
discovery. Stop the device's daemon first, or it publishes them again.

  edge-infer config forget-discovery --mqtt tcp://broker:1883 --name gate`,
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
