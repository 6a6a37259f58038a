package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/onvif"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/mqtt/credentials"
)

func newDevices(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.BackendSections()}
	p := &diagnose.DeviceProbe{}
	var asJSON, discover bool
	command := &cobra.Command{
		Use: "devices", Short: "List GPUs, libraries and cameras, and the backend that would be chosen",
		Long: `Lists GPUs and their fast precisions, the TensorRT and ONNX Runtime libraries that were found, the backend that --engine auto would choose
with the reason, Triton servers of --engine or --config, and cameras. Each library is loaded in a child process, so a crash is one line.

Precisions follow from version and compute capability. --probe also asks TensorRT's builder, which takes seconds and memory.

--discover finds ONVIF cameras on the local networks instead, or asks those whose addresses are given, and prints their streams as a part of
a configuration file. Their user name and password are in CAMERA_USER and CAMERA_PASSWORD, or are asked for on a terminal.`,
		Args: func(command *cobra.Command, args []string) error {
			if discover {
				return nil
			}
			return noArguments(command, args)
		},
		RunE: func(command *cobra.Command, args []string) error {
			if discover {
				return discoverCameras(command.Context(), stdout, stderr, asJSON, args)
			}
			c, err := settings.Load()
			if err != nil {
				return err
			}
			p.Config, p.Library = c, c.Engine.Library
			found, err := p.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, found, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	command.Flags().BoolVar(&discover, "discover", false, "find ONVIF cameras, at addresses if given; prints their streams as configuration")
	p.Flags(command.Flags())
	settings.Flags(command.Flags())
	return command
}

// discoverCameras prints the streams of ONVIF cameras.
func discoverCameras(ctx context.Context, stdout, stderr io.Writer, asJSON bool, addresses []string) error {
	d := &onvif.Discovery{Addresses: addresses, Login: onvif.Login{
		User: os.Getenv(onvif.UserVariable), Password: credentials.Secret(os.Getenv(onvif.PasswordVariable)),
	}}
	if terminal.Interactive() {
		d.AskLogin = func() (onvif.Login, error) {
			fmt.Fprintln(stderr, "The cameras require a user name and password.")
			user, password, err := terminal.AskLogin(stderr)
			return onvif.Login{User: user, Password: credentials.Secret(password)}, err
		}
	}
	found, err := d.Run(ctx)
	return show(stdout, asJSON, found, err)
}
