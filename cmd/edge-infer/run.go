package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon"
)

func newRun(stdout, stderr io.Writer) *cobra.Command {
	d := &daemon.Daemon{Version: release, Stdout: stdout, Stderr: stderr}
	command := &cobra.Command{
		Use: "run --camera URI ...", Short: "Detect and publish until stopped; what edge-infer does without a command", Args: noArguments,
		Long: `Reads the cameras, runs the network on every frame and publishes the detections.

Cameras: a number or /dev/videoN (V4L2), csi://N (Jetson), rtsp://, http:// (MJPEG), a video file, a directory of images, gst:PIPELINE or
demo; name one with NAME=URI. A file is read to its end, --loop starts it again. Settings come from --config, EDGE_INFER_* variables and
flags, the later one wins; edge-infer config defaults prints all of them.

With a GPU and --engine auto the first start of a model serves on the CPU, with half of the cores, while TensorRT's plan is built: a quick one that
takes over within seconds or a few minutes, then the one of full effort, which later starts find. --gpu 0,1 spreads the cameras over GPUs.`,
		RunE: func(command *cobra.Command, _ []string) error {
			err := d.Run(command.Context())
			if errors.Is(err, daemon.ErrRestart) {
				return again()
			}
			return err
		},
	}
	command.Flags().SortFlags = false
	d.Flags(command.Flags())
	return command
}

// again replaces this process by a new one with the same arguments.
func again() error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	return fmt.Errorf("restart: %w", syscall.Exec(program, os.Args, os.Environ()))
}
