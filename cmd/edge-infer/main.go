// Command edge-infer turns a camera into an MQTT detection sensor: `edge-infer --camera 0`.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/process"
	"github.com/edge-infer/edge-infer/engine/cuda"
	"github.com/edge-infer/edge-infer/postprocess/predict"
)

func main() {
	cuda.ReserveStaticTLS()
	process.SetDefaultProcessors()
	os.Exit(start(os.Args[1:]))
}

// start executes a command line with an output of its own: what libraries print goes to standard error.
func start(args []string) int {
	stdout, err := process.SeparateStdout()
	if err != nil {
		fmt.Fprintln(os.Stderr, "edge-infer:", err)
		return 1
	}
	return execute(args, stdout, os.Stderr)
}

// execute runs one command line and returns the exit status: 0 done, 1 failed, 2 wrong usage. The first SIGINT or SIGTERM ends the work
// in order, the second one at once.
func execute(args []string, stdout, stderr io.Writer) int {
	source.SilenceDecoders() // what OpenCV would print becomes part of an error
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop)
	command, err := executeOffering(ctx, args, stdout, stderr)
	if err == nil {
		return 0
	}
	text := strings.Join(reasons(ended(ctx, err)), "\n")
	var usage config.UsageError
	if errors.As(err, &usage) || errors.Is(err, predict.ErrSetting) {
		fmt.Fprintf(stderr, "%s: %s; see %s --help\n", command.Root().Name(), text, command.CommandPath())
		return 2
	}
	fmt.Fprintf(stderr, "%s: %s\n", command.Root().Name(), text)
	return 1
}

// ended is why a command ended that a signal has stopped: the signal, and not what stopping led to.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, context.Canceled) {
		return context.Cause(ctx)
	}
	return err
}
