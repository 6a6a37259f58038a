package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// runFlags are what run takes besides the configuration.
type runFlags struct {
	file     string
	cameras  []string
	duration time.Duration
	frames   int
	loop     bool
	json     bool
	root     string         // in front of the paths of sensors
	given    *pflag.FlagSet // the command line
}

func newRun(stdout, stderr io.Writer) *cobra.Command {
	var f runFlags
	shown := config.Default() // gives the flags their help; values are read again after the file
	command := &cobra.Command{
		Use: "run --camera URI ...", Short: "Detect and publish until stopped; what edge-infer does without a command", Args: noArguments,
		Long: `Reads the cameras, runs the network on every frame and publishes the detections.

Cameras: a number or /dev/videoN (V4L2), csi://N (Jetson), rtsp://, http:// (MJPEG), a video file, a directory of pictures, gst:PIPELINE or
demo; name one with NAME=URI. A file is read to its end, --loop starts it again. Settings come from --config, EDGE_INFER_* variables and
flags, the later one wins; edge-infer config defaults prints all of them.

With a GPU and --engine auto the first start of a model serves on the CPU, with half of the cores, while TensorRT's plan is built: a quick one that
takes over within seconds or a few minutes, then the one of full effort, which later starts find. --device 0,1 spreads the cameras over GPUs.`,
		RunE: func(command *cobra.Command, _ []string) error {
			f.given = command.Flags()
			read := stamp(f.file)
			c, err := f.configuration(f.given)
			if err != nil {
				return err
			}
			ctx := command.Context()
			if f.duration > 0 {
				var cancel context.CancelFunc
				ctx, cancel = context.WithTimeout(ctx, f.duration)
				defer cancel()
			}
			d := &daemon{config: c, flags: f, stdout: stdout, stderr: stderr, level: new(slog.LevelVar), read: read}
			setLevel(d.level, c.Log)
			d.logger = changingLogger(stderr, d.level)
			err = d.run(ctx)
			if errors.Is(err, errRestart) {
				return again()
			}
			return err
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringArrayVar(&f.cameras, "camera", nil, "camera, URI or NAME=URI; may be given several times")
	config.Flags(shown, flags)
	flags.StringVar(&f.file, "config", "", "YAML file; edge-infer config defaults prints one")
	flags.DurationVar(&f.duration, "duration", 0, "stop after this time")
	flags.IntVar(&f.frames, "frames", 0, "stop after this many frames")
	flags.BoolVar(&f.loop, "loop", false, "start files again at their end, in their own time")
	flags.BoolVar(&f.json, "json", false, "print detections as JSON lines, and statistics as the last one")
	flags.StringVar(&f.root, "root", "", "folder in front of /sys, /proc and /etc")
	_ = flags.MarkHidden("root") // the flag exists
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

// configuration is settings with at least one camera.
func (f *runFlags) configuration(given *pflag.FlagSet) (*config.Config, error) {
	c, err := f.settings(given)
	switch {
	case err != nil:
		return nil, err
	case len(c.Cameras) == 0:
		return nil, usagef("no camera: give --camera 0 for the first one, or --camera demo")
	case f.duration < 0 || f.frames < 0:
		return nil, usagef("--duration and --frames must be positive")
	}
	return c, nil
}

// settings reads file and environment and puts the flags that were given on top.
func (f *runFlags) settings(given *pflag.FlagSet) (*config.Config, error) {
	c, err := config.Load(f.file)
	if err != nil {
		return nil, usageError{err}
	}
	overlay := pflag.NewFlagSet("run", pflag.ContinueOnError)
	config.Flags(c, overlay)
	given.Visit(func(flag *pflag.Flag) {
		if overlay.Lookup(flag.Name) == nil || err != nil {
			return
		}
		if values, ok := flag.Value.(pflag.SliceValue); ok {
			err = overlay.Lookup(flag.Name).Value.(pflag.SliceValue).Replace(values.GetSlice())
			return
		}
		err = overlay.Set(flag.Name, flag.Value.String())
	})
	if err != nil {
		return nil, usageError{err}
	}
	if len(f.cameras) > 0 {
		if c.Cameras, err = config.ParseCameras(f.cameras); err != nil {
			return nil, usageError{err}
		}
	}
	if err := c.Validate(); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}
