package daemon

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/signal"
	"syscall"
	"testing"

	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/capture/source"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/convert"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/judge"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/network"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// The test binary stands for edge-infer: it runs a daemon, and makes plans for it.
func TestMain(m *testing.M) {
	programtest.Main(m, func(args []string) int {
		source.SilenceDecoders()
		ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
		defer stop()
		context.AfterFunc(ctx, stop)
		err := program(ctx, args)
		if err == nil {
			return 0
		}
		if errors.As(err, new(config.UsageError)) {
			fmt.Fprintf(os.Stderr, "edge-infer: %v; see edge-infer --help\n", err)
			return 2
		}
		fmt.Fprintln(os.Stderr, "edge-infer:", err)
		return 1
	})
}

// serve is a hidden command.
func serve(ctx context.Context, command func(ctx context.Context, in io.Reader, out io.Writer) error) error {
	out, err := isolate.Answers()
	if err != nil {
		return err
	}
	return command(ctx, os.Stdin, out)
}

func program(ctx context.Context, args []string) error {
	flags := pflag.NewFlagSet("edge-infer", pflag.ContinueOnError)
	switch args[0] {
	case network.BuildCommand:
		return serve(ctx, network.ServePlanBuild)
	case diagnose.Command:
		return serve(ctx, diagnose.Serve)
	case judge.Command:
		return serve(ctx, judge.Serve)
	case "build":
		b := &convert.Build{Logger: slog.Default()}
		b.Flags(flags)
		if err := errors.Join(flags.Parse(args[1:]), b.Check()); err != nil {
			return err
		}
		b.Model = flags.Arg(0)
		_, err := b.Run(ctx)
		return err
	}
	d := &Daemon{Version: "development", Stdout: os.Stdout, Stderr: os.Stderr}
	d.Flags(flags)
	if err := flags.Parse(args); err != nil {
		return err
	}
	err := d.Run(ctx)
	if errors.Is(err, ErrRestart) {
		return syscall.Exec(os.Args[0], os.Args, os.Environ())
	}
	return err
}
