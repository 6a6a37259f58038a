package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/mqtt"
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
	command.AddCommand(newForget(stdout))
	return command
}

// newForget takes a decommissioned device off its broker.
func newForget(stdout io.Writer) *cobra.Command {
	var f runFlags
	command := &cobra.Command{
		Use: "forget-discovery", Short: "Remove a decommissioned device's retained messages and Home Assistant entities from its broker", Args: noArguments,
		Long: `Connects to the broker that --mqtt or the configuration names and clears every retained message of the device and its Home Assistant
discovery. Stop the device's daemon first, or it publishes them again.

  edge-infer config forget-discovery --mqtt tcp://broker:1883 --name gate`,
		RunE: func(command *cobra.Command, _ []string) error {
			f.cameras = []string{"demo"} // no camera is opened
			c, err := f.configuration(command.Flags())
			if err != nil {
				return err
			}
			if len(c.MQTT.Brokers()) == 0 {
				return usagef("forget-discovery needs a broker, give --mqtt tcp://host:1883")
			}
			client := newClient(c, c.MQTT.Brokers())
			client.DiscoveryPrefix = discoveryPrefix
			client.Spool = mqtt.Spool{}
			if err := client.Open(); err != nil {
				return err
			}
			defer client.Close()
			ctx, cancel := context.WithTimeout(command.Context(), forgetLimit)
			defer cancel()
			cleared, err := client.Forget(ctx)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(stdout, "%s: %d retained messages removed\n", c.Device, cleared)
			return err
		},
	}
	flags := command.Flags()
	config.Flags(config.Default(), flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	return command
}

// forgetLimit is how long a broker may take to name everything it retains.
const forgetLimit = 30 * time.Second

// exactly wants n arguments and names what they are.
func exactly(n int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("%s needs %s, got %d arguments", command.Name(), what, len(args))
		}
		return nil
	}
}
