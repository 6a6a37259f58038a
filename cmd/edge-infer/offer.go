package main

import (
	"context"
	"errors"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
)

// executeOffering executes a command line. If it lacks a model and a person is at the terminal, it offers one and starts over with it.
func executeOffering(ctx context.Context, args []string, stdout, stderr io.Writer) (*cobra.Command, error) {
	command, err := executeOnce(ctx, args, stdout, stderr)
	if !errors.Is(err, config.ErrNoModel) || !terminal.Interactive() {
		return command, err
	}
	store, failed := catalogue.Open()
	if failed != nil {
		return command, err
	}
	offer := catalogue.Offer{
		Model: catalogue.Entries()[0], In: os.Stdin, Out: stderr, Pull: catalogue.Pull{Store: store, Progress: report.Steps(stderr)},
	}
	model, failed := offer.Run(ctx)
	switch {
	case failed != nil:
		return command, failed
	case model == "":
		return command, err
	}
	end := slices.Index(args, "--") // flags come before it
	if end < 0 {
		end = len(args)
	}
	return executeOnce(ctx, slices.Insert(slices.Clone(args), end, "--model", model), stdout, stderr)
}

func executeOnce(ctx context.Context, args []string, stdout, stderr io.Writer) (*cobra.Command, error) {
	root := newRoot(stdout, stderr)
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	return root.ExecuteContextC(ctx)
}
