package main

import (
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/broker"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/preflight"
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
		newCheck(stdout),
		newForget(stdout))
	return command
}

// newCheck finds the mistakes that a start or a reload with the file would end with.
func newCheck(stdout io.Writer) *cobra.Command {
	return &cobra.Command{
		Use: "check FILE", Short: "Read a file as run would, open what it names, and report the mistakes",
		Args: exactly(1, "the configuration file"),
		Long: `Reads the file, opens the network in a process of its own, and checks labels, zones, passwords, tokens, certificates, folders and addresses.
A daemon that runs is not disturbed. Cameras and brokers may be away at any time and are not asked: edge-infer doctor does that.`,
		RunE: func(command *cobra.Command, args []string) error {
			c, mistakes := config.CheckFile(args[0])
			if len(mistakes) > 0 {
				return errors.Join(mistakes...)
			}
			program, err := os.Executable()
			if err != nil {
				return err
			}
			check := preflight.Check{Config: c, Program: []string{program, preflight.Command}}
			mistakes = check.Run(command.Context())
			for i, mistake := range mistakes {
				mistakes[i] = fmt.Errorf("config %s: %w", args[0], mistake)
			}
			if len(mistakes) > 0 {
				return errors.Join(mistakes...)
			}
			_, err = fmt.Fprintf(stdout, "%s: no mistakes, %d cameras\n", args[0], len(c.Cameras))
			return err
		},
	}
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
