package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/catalogue"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/update"
)

func newBundle(stdout, stderr io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "bundle", Short: "Pack, sign, distribute and install models with what belongs to them", Args: noArguments,
		Long: `A bundle is a model with its labels, preprocessing, recommended confidence, calibration and engine plans, a version and an expiry, as an OCI artifact.
It is the same in a registry, at an https address and in a file, and signed with minisign. bundle pull installs it where --model NAME finds it.

  minisign -G -p belt.pub -s belt.key
  edge-infer bundle make best.onnx --name belt --version 4 --labels belt.txt --sign belt.key --out belt.tar
  edge-infer bundle push belt.tar registry.example.org/models/belt:4
  edge-infer bundle pull registry.example.org/models/belt:4 --key belt.pub && edge-infer --camera 0 --model belt
  edge-infer bundle pull https://example.org/belt.tar --config /etc/edge-infer/edge-infer.yaml    with its bundle.keys`,
		RunE: func(*cobra.Command, []string) error {
			return config.Usagef("bundle needs make, push, pull, show, verify or wait")
		},
	}
	command.AddCommand(newBundleMake(stdout, stderr), newBundlePush(stdout, stderr), newBundlePull(stdout, stderr),
		newBundleShow(stdout, stderr), newBundleVerify(stdout, stderr),
		newBundleWait(stdout, stderr))
	return command
}

func newBundleMake(stdout, stderr io.Writer) *cobra.Command {
	m := &bundle.Make{Progress: report.Steps(stderr)}
	m.Password = func(prompt string) (string, error) { return terminal.AskPassword(stderr, prompt) }
	var asJSON bool
	command := &cobra.Command{
		Use: "make MODEL", Short: "Write a bundle to a file", Args: oneModel,
		Long: `Packs an ONNX file, or a downloaded model by its name, into a file. Labels and preprocessing of a downloaded model, and the preprocessing file
beside a model, are included. The same contents give the same digest.`,
		RunE: func(command *cobra.Command, args []string) error {
			m.Model = args[0]
			if m.Output == "" {
				return config.Usagef("bundle make needs --out FILE")
			}
			summary, err := m.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, summary, nil)
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&m.Output, "out", "", "file to write")
	flags.StringVar(&m.Name, "name", "", "name that devices use with --model (default: that of the model's file)")
	flags.Int64Var(&m.Version, "version", 0, "whole number that grows with each bundle of the name; devices do not go back")
	flags.StringVar(&m.Expires, "expires", "", "date, such as 2027-06-30, or RFC 3339 time from which devices do not install it")
	flags.StringVar(&m.Labels, "labels", "", "file of class names (lines, YAML or JSON), or coco")
	flags.StringVar(&m.Preprocess, "preprocess", "", "preset or YAML, as model.preprocess of the configuration")
	flags.Float64Var(&m.Confidence, "confidence", 0, "recommended threshold, which bundle pull prints")
	flags.StringVar(&m.Calibration, "calibration-cache", "", "calibration cache for edge-infer build on the device")
	flags.StringVar(&m.Data, "data", "", "up to 500 labelled images by which devices measure the model, as validate reads them")
	flags.StringArrayVar(&m.Plans, "plan", nil, "engine plan of the plan cache, as edge-infer build prints it; may be repeated")
	flags.StringArrayVar(&m.Sign, "sign", nil, "secret key file of minisign; may be repeated")
	flags.StringVar(&m.Licence, "licence", "", "SPDX identifier of the model's licence")
	flags.StringVar(&m.Description, "description", "", "one line about the model")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

func newBundlePush(stdout, stderr io.Writer) *cobra.Command {
	p := &bundle.Push{To: bundle.Source{Progress: report.Steps(stderr)}}
	var asJSON bool
	command := &cobra.Command{
		Use: "push FILE HOST/NAME:TAG", Short: "Upload the file of a bundle to an OCI registry",
		Long: `Uploads what the registry lacks, the signatures as referrers, and the tag last. Credentials are those of docker login.`,
		Args: func(command *cobra.Command, args []string) error {
			if len(args) != 2 {
				return config.Usagef("%s needs a file and HOST/NAME:TAG", command.CommandPath())
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			p.File = args[0]
			p.To.Location = args[1]
			result, err := p.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, asJSON, result, nil)
		},
	}
	flags := command.Flags()
	flags.BoolVar(&p.To.PlainHTTP, "plain-http", false, "use http without TLS, which is the default only for this machine")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}

// bundleSource is the bundle that a command reads, and the keys that may have signed it.
type bundleSource struct {
	bundle.Source
	settings config.Sources
	keys     []string
	state    string // directory of the daemon with the settings, once they are loaded
	asJSON   bool
}

func newBundleSource(stderr io.Writer) bundleSource {
	return bundleSource{Source: bundle.Source{Progress: report.Steps(stderr)}, settings: config.Sources{Scope: config.BundleSections()}}
}

func (s *bundleSource) flags(flags *pflag.FlagSet) {
	flags.SortFlags = false
	flags.StringArrayVar(&s.keys, "key", nil, "public key of minisign, or its file, that must have signed the bundle; may be repeated")
	s.settings.Flags(flags)
	flags.Int64Var(&s.MaxBytes, "max-size", catalogue.DefaultMaxBytes, "largest bundle in bytes")
	flags.BoolVar(&s.PlainHTTP, "plain-http", false, "permit http without TLS, which is the default only for this machine")
	flags.BoolVar(&s.asJSON, "json", false, "print one JSON document")
}

// load sets the location and returns the keys: those of --key, otherwise those of the configuration.
func (s *bundleSource) load(location string) (bundle.Keys, error) {
	s.Location = location
	c, err := s.settings.Load()
	if err != nil {
		return nil, err
	}
	s.state = c.State
	if len(s.keys) == 0 {
		s.keys = c.Bundle.Keys
	}
	return bundle.ReadKeys(s.keys)
}

func newBundlePull(stdout, stderr io.Writer) *cobra.Command {
	source := newBundleSource(stderr)
	command := &cobra.Command{
		Use: "pull FILE|URL|HOST/NAME:TAG", Short: "Download, verify and install a bundle", Args: oneBundle,
		Long: `Installs a bundle into the directory of downloaded models, where --model NAME finds it. An interrupted download is resumed. With --key or bundle.keys
an unsigned bundle is refused; older versions, expired bundles and whatever does not match its digest always are, and the installed model stays.
Credentials are those of docker login.`,
		RunE: func(command *cobra.Command, args []string) error {
			keys, err := source.load(args[0])
			if err != nil {
				return err
			}
			store, err := catalogue.Open()
			if err != nil {
				return err
			}
			p := bundle.Pull{Source: source.Source, Store: store, Keys: keys, Machine: machineOfPlans}
			result, err := p.Run(command.Context())
			if err != nil {
				return err
			}
			return show(stdout, source.asJSON, result, nil)
		},
	}
	source.flags(command.Flags())
	return command
}

// machineOfPlans returns what engine plans must fit.
func machineOfPlans(ctx context.Context) (bundle.Machine, error) {
	var probe diagnose.DeviceProbe
	devices, err := probe.Run(ctx)
	if err != nil {
		return bundle.Machine{}, err
	}
	var machine bundle.Machine
	if len(devices.TensorRT) > 0 {
		machine.TensorRT = devices.TensorRT[0].Version
	}
	for _, gpu := range devices.GPUs {
		machine.GPUs = append(machine.GPUs, gpu.Name)
	}
	return machine, nil
}

func newBundleShow(stdout, stderr io.Writer) *cobra.Command {
	return newBundleReader(stdout, stderr, &cobra.Command{
		Use: "show FILE|URL|HOST/NAME:TAG|NAME", Short: "Print what a bundle contains and who signed it",
		Long: `Reads the manifest and the signatures of a bundle, or of an installed one by its name.`,
	}, false)
}

func newBundleVerify(stdout, stderr io.Writer) *cobra.Command {
	return newBundleReader(stdout, stderr, &cobra.Command{
		Use: "verify FILE|URL|HOST/NAME:TAG", Short: "Check the signature of a bundle and the digests of all its files",
		Long: `Receives all of a bundle without installing it. The signature is checked against --key or bundle.keys.`,
	}, true)
}

func newBundleWait(stdout, stderr io.Writer) *cobra.Command {
	source := newBundleSource(stderr)
	source.settings.Scope = config.UpdateSections()
	timeout := 24 * time.Hour
	command := &cobra.Command{
		Use: "wait FILE|URL|HOST/NAME:TAG", Short: "Wait until the daemon on this machine has tried a bundle", Args: oneBundle,
		Long: `Verifies a bundle that the daemon gets by bundle.from or as a job, then waits until it is in force or refused, which is an error with the reason.
It is for the tools that bring a bundle to a device. --config names the daemon's configuration; $STATE_DIRECTORY and $CACHE_DIRECTORY are its
directories, of the service /var/lib/edge-infer and /var/cache/edge-infer.`,
		RunE: func(command *cobra.Command, args []string) error {
			keys, err := source.load(args[0])
			if err != nil {
				return err
			}
			summary, err := (&bundle.Show{Source: source.Source, Keys: keys, Contents: true}).Run(command.Context())
			if err != nil {
				return err
			}
			store, err := catalogue.Open()
			if err != nil {
				return err
			}
			limit := fmt.Errorf("bundle %s: the daemon has not tried it in %v (see edge-infer doctor)", args[0], timeout)
			ctx, cancel := context.WithTimeoutCause(command.Context(), timeout, limit)
			defer cancel()
			outcome, err := update.Wait(ctx, source.state, store, &summary.Bundle)
			if err != nil {
				return err
			}
			if !outcome.Installed() {
				err = fmt.Errorf("bundle %s: %s", args[0], outcome.Text())
			}
			return show(stdout, source.asJSON, outcome, err)
		},
	}
	source.flags(command.Flags())
	command.Flags().DurationVar(&timeout, "timeout", timeout, "longest wait")
	return command
}

// newBundleReader completes a command that reads a bundle, with its contents or without.
func newBundleReader(stdout, stderr io.Writer, command *cobra.Command, contents bool) *cobra.Command {
	source := newBundleSource(stderr)
	command.Args = oneBundle
	command.RunE = func(command *cobra.Command, args []string) error {
		keys, err := source.load(args[0])
		if err != nil {
			return err
		}
		summary, err := (&bundle.Show{Source: source.Source, Keys: keys, Contents: contents}).Run(command.Context())
		if err != nil {
			return err
		}
		return show(stdout, source.asJSON, summary, nil)
	}
	source.flags(command.Flags())
	return command
}

// oneBundle takes exactly one argument.
func oneBundle(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return config.Usagef("%s needs one bundle: a file, an https:// address or HOST/NAME:TAG", command.CommandPath())
	}
	return nil
}
