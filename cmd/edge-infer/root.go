package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/engine/isolate"
	"github.com/edge-infer/edge-infer/internal/spelling"
)

// newRoot gives the command tree. Without a subcommand it runs the daemon.
func newRoot(stdout, stderr io.Writer) *cobra.Command {
	run := newRun(stdout, stderr)
	root := &cobra.Command{
		Use:   "edge-infer",
		Short: "Turn a camera into an MQTT detection sensor",
		Long: `edge-infer reads cameras, runs a detection network on every frame and publishes what it sees over MQTT.

  edge-infer --camera demo                          a drawn conveyor belt, the embedded model and an embedded broker
  edge-infer model pull yolox-s                     a model for people, vehicles and animals
  edge-infer --camera 0 --model yolox-s --mqtt tcp://broker:1883
                                                    the first camera of this machine, your broker
  edge-infer --camera gate=rtsp://host/stream --model yolo11n.onnx`,
		Args:          noArguments,
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.Flags().AddFlagSet(run.Flags())
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return config.UsageError{Err: nearestFlag(command, err)}
	})
	// Not cobra's own flag: a template of the text that it prints has the linker keep every method of every type, 3.7 MB of them.
	version := root.Flags().Bool("version", false, "print the version")
	root.RunE = func(command *cobra.Command, args []string) error {
		if *version {
			_, err := fmt.Fprintln(stdout, thisBuild())
			return err
		}
		return run.RunE(command, args)
	}
	root.SetUsageFunc(usage(root.UsageFunc()))
	root.PersistentPreRun = func(command *cobra.Command, _ []string) { notice(stderr, command) }
	root.AddCommand(run, newInfer(stdout, stderr), newValidate(stdout, stderr), newBench(stdout, stderr), newDataset(stdout, stderr),
		newDevices(stdout, stderr), newInspect(stdout), newServe(stdout, stderr), newExport(stdout, stderr), newModel(stdout, stderr),
		newBundle(stdout, stderr), newFleet(stdout, stderr), newBuild(stdout, stderr), newQuantize(stdout, stderr), newDoctor(stdout),
		newSelftest(stdout, stderr),
		newConfig(stdout), newVersion(stdout))
	root.AddCommand(
		newHidden(network.BuildCommand, network.ServePlanBuild),
		newHidden(process.CameraCommand, source.ServeCamera),
		newHidden(diagnose.Command, diagnose.Serve),
		newHidden(judge.Command, judge.Serve),
	)
	return root
}

// newHidden is a command that this program starts itself as, for what must not happen in its own process.
func newHidden(name string, serve func(ctx context.Context, in io.Reader, out io.Writer) error) *cobra.Command {
	return &cobra.Command{Use: name, Hidden: true, Args: noArguments, RunE: func(c *cobra.Command, _ []string) error {
		out, err := isolate.Answers()
		if err != nil {
			return err
		}
		return errors.Join(serve(c.Context(), c.InOrStdin(), out), out.Close())
	}}
}

// noArguments rejects arguments and names the command that was meant.
func noArguments(command *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	if command.Flags().Lookup("model") != nil && isModelFile(args[0]) {
		return config.Usagef("unexpected argument %q, did you mean --model %s?", args[0], args[0])
	}
	if !command.HasSubCommands() {
		return config.Usagef("unexpected argument %q", args[0])
	}
	var names []string
	for _, sub := range command.Commands() {
		if sub.IsAvailableCommand() {
			names = append(names, sub.Name())
		}
	}
	if near := spelling.Commands().SuggestAll(args[0], names); len(near) > 0 {
		return config.Usagef("unknown command %q, did you mean %s?", args[0], strings.Join(near, " or "))
	}
	return config.Usagef("unknown command %q", args[0])
}

// isModelFile reports whether a word on the command line is the name of a model file.
func isModelFile(word string) bool {
	return slices.Contains([]string{".onnx", ".engine", ".plan", ".trt"}, strings.ToLower(filepath.Ext(word)))
}

// nearestFlag adds a suggestion to the error about an unknown flag.
func nearestFlag(command *cobra.Command, err error) error {
	var valueless *pflag.ValueRequiredError
	if errors.As(err, &valueless) && valueless.GetSpecifiedName() == "layout" {
		return fmt.Errorf("%w, such as yolov8, end2end or segment (edge-infer model layouts lists them)", err)
	}
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) || unknown.GetSpecifiedShortnames() != "" {
		return err
	}
	return fmt.Errorf("%w%s", err, config.FlagHint(command.Flags(), unknown.GetSpecifiedName()))
}

// notice prints a line for each EDGE_INFER_* variable that is not read.
func notice(stderr io.Writer, command *cobra.Command) {
	if command.Hidden {
		return
	}
	for _, line := range config.StrayVariables(os.Environ()) {
		fmt.Fprintf(stderr, "%s: %s\n", command.Root().Name(), terminal.Printable([]byte(line)))
	}
}

// atMostOneModel takes a model's file or nothing.
func atMostOneModel(command *cobra.Command, args []string) error {
	if len(args) > 1 {
		return config.Usagef("%s takes one model, not %d", command.Name(), len(args))
	}
	return nil
}

// printed is what a job came to.
type printed interface{ Print(io.Writer) error }

// show prints what a job came to, for a person or as one JSON document, also beside the job's error.
func show(out io.Writer, asJSON bool, result printed, err error) error {
	if asJSON {
		return errors.Join(err, json.NewEncoder(out).Encode(result))
	}
	return errors.Join(err, printSafely(out, result))
}

// printSafely prints for a person. Labels, files' names and servers' words in it cannot move the cursor or change the terminal.
func printSafely(out io.Writer, result printed) error {
	var text bytes.Buffer
	if err := result.Print(&text); err != nil {
		return err
	}
	_, err := out.Write(terminal.Lines(text.Bytes()))
	return err
}

// logger writes what the configuration wants to know.
func logger(stderr io.Writer, c *config.Config) *slog.Logger {
	return report.NewLogger(stderr, c.Log, c.LogFormat)
}
