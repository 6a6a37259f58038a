package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/postprocess/head"
)

func newModel(stdout, stderr io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "model", Short: "Download models by name and list them", Args: noArguments,
		Long: `Downloads models into the cache directory, where --model NAME finds them with labels and preprocessing. Models of the catalogue have permissive
licences and a pinned hash; a file with another hash is rejected. On a machine without internet, pass the downloaded file to pull, or --mirror with a server of your own.

  edge-infer model list
  edge-infer model pull yolox-s && edge-infer --camera 0 --model yolox-s
  edge-infer model pull people                          the recommended model for people, vehicles and animals; others: faces
  edge-infer model pull object_detection_yolox_2022nov.onnx
  edge-infer model pull yolox-s --mirror https://files.example.org/models
  edge-infer model pull https://example.org/mine.onnx --sha256 4b82da99... --name mine`,
		RunE: func(*cobra.Command, []string) error {
			return config.Usagef("model needs list, pull, info, rm or layouts")
		},
	}
	command.AddCommand(newModelList(stdout), newModelPull(stdout, stderr), newModelInfo(stdout), newModelRemove(stdout),
		newModelLayouts(stdout))
	return command
}

func newModelList(stdout io.Writer) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "list", Short: "List the catalogue and the downloaded models", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			store, err := catalogue.Open()
			if err != nil {
				return err
			}
			listing, err := store.List()
			if err != nil {
				return err
			}
			return show(stdout, asJSON, listing, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

func newModelLayouts(stdout io.Writer) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "layouts", Short: "List the output layouts that --layout takes", Args: noArguments,
		RunE: func(*cobra.Command, []string) error { return show(stdout, asJSON, layouts(head.All()), nil) },
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

type layouts []head.Description

// Print implements printed.
func (l layouts) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for _, h := range l {
		fmt.Fprintf(table, "%s\t%s\t%s\n", h.Layout, h.Form, h.Networks)
	}
	return table.Flush()
}

func newModelPull(stdout, stderr io.Writer) *cobra.Command {
	p := &catalogue.Pull{Progress: report.Steps(stderr)}
	var asJSON bool
	command := &cobra.Command{
		Use: "pull NAME|URL|FILE", Short: "Download a model and verify its hash", Args: oneModel,
		Long: `Downloads a model of the catalogue, or any model whose hash --sha256 gives. An interrupted download is resumed.`,
		RunE: func(command *cobra.Command, args []string) (err error) {
			p.Source = args[0]
			if p.Store, err = catalogue.Open(); err != nil {
				return err
			}
			result, err := p.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, result, nil)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&p.SHA256, "sha256", "", "SHA-256 that the file must have")
	flags.StringVar(&p.Mirror, "mirror", "", "URL of a directory with copies of the catalogue's files")
	flags.StringVar(&p.Name, "name", "", "name on this machine (default: the catalogue's name for that hash, else the file name)")
	flags.Int64Var(&p.MaxBytes, "max-size", catalogue.DefaultMaxBytes, "largest download in bytes")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

func newModelInfo(stdout io.Writer) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "info NAME", Short: "Print origin, licence and hash of a model of the catalogue", Args: oneModel,
		RunE: func(_ *cobra.Command, args []string) error {
			entry, err := catalogue.Lookup(args[0])
			if err != nil {
				return err
			}
			return show(stdout, asJSON, &entry, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

// removed is what model rm did.
type removed struct {
	Version int    `json:"v"`
	Name    string `json:"name"`
}

// Print prints it in one line.
func (r removed) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s removed\n", r.Name)
	return err
}

func newModelRemove(stdout io.Writer) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "rm NAME", Short: "Remove a downloaded model from this machine", Args: oneModel,
		RunE: func(_ *cobra.Command, args []string) error {
			store, err := catalogue.Open()
			if err != nil {
				return err
			}
			if err := store.Remove(args[0]); err != nil {
				return err
			}
			return show(stdout, asJSON, removed{Version: 1, Name: args[0]}, nil)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

// oneModel takes exactly one argument.
func oneModel(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return config.Usagef("%s needs one model", command.CommandPath())
	}
	return nil
}
