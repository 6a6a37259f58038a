package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/site"
)

// forgotten is what config forget-discovery did.
type forgotten struct {
	Version int    `json:"v"`
	Device  string `json:"device"`
	Removed int    `json:"removed"` // retained messages
}

// Print prints it in one line.
func (f forgotten) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s: %d retained messages removed\n", f.Device, f.Removed)
	return err
}

// newForget takes a decommissioned device off its broker.
func newForget(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.BrokerSections()}
	var asJSON bool
	command := &cobra.Command{
		Use: "forget-discovery", Short: "Remove a decommissioned device's retained messages and Home Assistant entities from its broker",
		Args: noArguments,
		Long: `Connects to the broker of --mqtt or the configuration and clears every retained message of the device and its Home Assistant discovery. Stop
the device's daemon first, otherwise it publishes them again.

  edge-infer config forget-discovery --mqtt tcp://broker:1883 --name gate`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, err := settings.Load()
			if err != nil {
				return err
			}
			cleared, err := mqttconfig.Forget(command.Context(), site.ResolveOutputs(c))
			if err != nil {
				return err
			}
			return show(stdout, asJSON, forgotten{Version: 1, Device: c.Name, Removed: cleared}, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	settings.Flags(command.Flags())
	return command
}
