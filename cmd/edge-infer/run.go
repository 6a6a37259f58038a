package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/daemon"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
)

func newRun(stdout, stderr io.Writer) *cobra.Command {
	d := &daemon.Daemon{Version: release, Machine: machineOfPlans, Stdout: stdout, Stderr: stderr}
	command := &cobra.Command{
		Use: "run [CAMERA ...]", Short: "Detect objects and publish them until stopped; the default command", Args: cobra.ArbitraryArgs,
		Long: `Reads the cameras, runs the network on their frames and publishes the detections.

Cameras: a number or /dev/videoN (V4L2), csi://N (Jetson), rtsp://, http:// (MJPEG), a video file, a directory of images, gst:PIPELINE or
demo; name one with NAME=URI. A file is read to its end; --loop repeats it. Settings come from --config, EDGE_INFER_* variables and
flags, later ones win; edge-infer config defaults prints the most important ones, with --all every one.

With a GPU and --engine auto, the first start of a model runs on the CPU while TensorRT's engine plan is built; the daemon then switches to the
GPU without losing a frame. Later starts find the plan in the cache. --gpu 0,1 distributes the cameras over GPUs.`,
		RunE: func(command *cobra.Command, args []string) error {
			d.Settings.Cameras = append(args, d.Settings.Cameras...)
			err := d.Run(command.Context())
			if errors.Is(err, daemon.ErrRestart) {
				return again(stdout)
			}
			return err
		},
	}
	command.Flags().SortFlags = false
	d.Flags(command.Flags())
	addHelpAll(command)
	return command
}

// again replaces this process with a new one that has the same arguments.
func again(stdout io.Writer) error {
	program, err := os.Executable()
	if err != nil {
		return fmt.Errorf("restart: %w", err)
	}
	if own, separate := stdout.(*os.File); separate {
		if err := process.RestoreStdout(own); err != nil {
			return fmt.Errorf("restart: %w", err)
		}
	}
	return fmt.Errorf("restart: %w", syscall.Exec(program, os.Args, os.Environ()))
}
