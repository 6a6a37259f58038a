package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

// usageError is a wrong command line: exit status 2.
type usageError struct{ error }

func usagef(format string, arguments ...any) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

// newRoot gives the command tree. Without a subcommand it runs the daemon.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	run := newRun(stdout, stderr)
	root := &cobra.Command{
		Use:   "edge-infer",
		Short: "Turn a camera into an MQTT detection sensor",
		Long: `edge-infer reads cameras, runs a detection network on every frame and publishes what it sees over MQTT.

  edge-infer --camera demo                          a drawn conveyor belt, the embedded model and an embedded broker
  edge-infer --camera 0 --mqtt tcp://broker:1883    the first camera of this machine, your broker
  edge-infer --camera gate=rtsp://host/stream --model yolo11n.onnx`,
		Args:          noArguments,
		RunE:          run.RunE,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().AddFlagSet(run.Flags())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	root.SuggestionsMinimumDistance = 2
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(run, newInfer(stdout, stderr), newValidate(stdout, stderr), newBench(stdout, stderr), newDataset(stdout, stderr), newDevices(stdout),
		newBuild(stdout, stderr), newQuantize(stdout, stderr),
		newDoctor(stdout), newExamine(), newSurvey(),
		newConfig(stdout), newVersion(stdout), newBuildPlan(stdout))
	return root
}

// noArguments refuses words behind the flags and says which command was meant.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if near := command.Root().SuggestionsFor(args[0]); len(near) > 0 {
		return usagef("unknown command %q, did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return usagef("unknown command %q", args[0])
}
