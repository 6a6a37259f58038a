package main

import (
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/capture"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/auto"
)

func newDevices(stdout io.Writer) *cobra.Command {
	var asJSON bool
	var library string
	command := &cobra.Command{
		Use: "devices", Short: "Show cameras, GPUs and libraries, and which backend would be chosen and why", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			backends, err := auto.Report(engine.Options{Library: library}, auto.Choice{})
			if err != nil {
				return err
			}
			found := map[string]any{"v": 1, "backends": backends, "cameras": capture.Devices()}
			if asJSON {
				return json.NewEncoder(stdout).Encode(found)
			}
			return printDevices(stdout, backends, capture.Devices())
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	command.Flags().StringVar(&library, "library", "", "backend's shared library, instead of searching for it")
	return command
}

func printDevices(out io.Writer, backends []auto.Backend, cameras []capture.DeviceInfo) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, b := range backends {
		state, about := "no", b.Reason
		if b.Usable {
			state, about = "yes", b.Path
		}
		if b.Chosen {
			state = "chosen"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\n", b.Title, state, b.Version, about)
	}
	if len(cameras) == 0 {
		fmt.Fprintln(table, "no camera; try --camera demo")
	}
	for _, camera := range cameras {
		fmt.Fprintf(table, "camera %s\t%s\n", camera.Path, camera.Name)
	}
	return table.Flush()
}
