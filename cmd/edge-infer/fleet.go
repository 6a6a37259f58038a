package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bundle"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/mqttconfig"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/rollout"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/mqtt/payload"
)

func newFleet(stdout, stderr io.Writer) *cobra.Command {
	command := &cobra.Command{
		Use: "fleet", Short: "Show the devices on a broker, and roll out a model or settings to them in stages", Args: noArguments,
		Long: `Talks to devices over the broker of --mqtt or the configuration. Devices need remote control (mqtt.control) and bundle.keys.

  edge-infer fleet list --mqtt tcp://broker:1883
  edge-infer fleet update registry.example.org/models/belt:5 --stages 1,10,100 --mqtt tcp://broker:1883
  edge-infer fleet configure settings.yaml --version 3 --sign belt.key --devices 'gate-*' --mqtt tcp://broker:1883
  edge-infer fleet status belt-5 --mqtt tcp://broker:1883
  edge-infer fleet abort belt-5 --mqtt tcp://broker:1883`,
		RunE: func(*cobra.Command, []string) error {
			return config.Usagef("fleet needs list, update, configure, status or abort")
		},
	}
	command.AddCommand(newFleetList(stdout), newFleetUpdate(stdout, stderr), newFleetConfigure(stdout, stderr),
		newFleetStatus(stdout), newFleetAbort(stdout))
	return command
}

// fleetSettings are the settings of a command for a fleet.
type fleetSettings struct {
	config.Sources
	asJSON bool
}

func newFleetSettings() *fleetSettings {
	return &fleetSettings{Sources: config.Sources{Scope: config.FleetSections()}}
}

// add adds the flags.
func (s *fleetSettings) add(command *cobra.Command) *cobra.Command {
	command.Flags().SortFlags = false
	command.Flags().BoolVar(&s.asJSON, "json", false, "print one JSON document")
	s.Flags(command.Flags())
	return command
}

// fleet returns the devices on the configured broker.
func (s *fleetSettings) fleet() (*config.Config, rollout.Fleet, error) {
	c, err := s.Load()
	if err != nil {
		return nil, rollout.Fleet{}, err
	}
	brokers := c.MQTT.Brokers()
	if len(brokers) == 0 {
		return nil, rollout.Fleet{}, config.Usagef("fleet needs a broker, give --mqtt tcp://host:1883")
	}
	return c, rollout.Fleet{Access: mqttconfig.Access(&c.MQTT, brokers), ID: fmt.Sprintf("%d-%d", os.Getpid(), time.Now().UnixMilli())}, nil
}

// fleetList is the devices of a fleet.
type fleetList struct {
	Version int              `json:"v"`
	Devices []rollout.Device `json:"devices"`
}

// Print prints them as a table.
func (l fleetList) Print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DEVICE\tSTATE\tPROGRAM\tMODEL\tVERSION\tJOB\tPROGRESS")
	for i := range l.Devices {
		d := &l.Devices[i]
		state, version, progress := "offline", "", ""
		if d.Online {
			state = "online"
		}
		if d.Update != nil && d.Update.Version > 0 {
			version = fmt.Sprint(d.Update.Version)
		}
		if d.Job != "" {
			progress = "waits"
		}
		if d.Progress != nil {
			progress = string(d.Progress.Status) + " " + d.Progress.Details.Phase + d.Progress.Details.Reason
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\n", d.Name, state, d.Program, d.Model, version, d.Job, progress)
	}
	return table.Flush()
}

func newFleetList(stdout io.Writer) *cobra.Command {
	settings := newFleetSettings()
	var pattern string
	command := &cobra.Command{
		Use: "list", Short: "List the devices on the broker with their models and jobs", Args: noArguments,
		RunE: func(command *cobra.Command, _ []string) error {
			_, fleet, err := settings.fleet()
			if err != nil {
				return err
			}
			all, err := fleet.List(command.Context(), pattern)
			if err != nil {
				return err
			}
			return show(stdout, settings.asJSON, fleetList{1, append([]rollout.Device{}, all...)}, nil)
		},
	}
	command.Flags().StringVar(&pattern, "devices", "", "pattern of the names, such as gate-*")
	return settings.add(command)
}

func newFleetUpdate(stdout, stderr io.Writer) *cobra.Command {
	settings := newFleetSettings()
	r := &rollout.Rollout{Progress: report.Steps(stderr)}
	command := &cobra.Command{
		Use: "update HOST/NAME:TAG|URL", Short: "Have devices install a model bundle, a stage at a time", Args: oneBundle,
		Long: `Gives the devices a job: each receives the bundle, compares its model with the running one, has it run on trial, and reports. The next stage begins
when all connected devices of the one before have ended; the roll-out stops when too many have failed, and then takes the job back from the others.
A device that is off gets the job when it is back. Interrupt it, and run it again with the same --job to go on.`,
		RunE: func(command *cobra.Command, args []string) error {
			c, fleet, err := settings.fleet()
			if err != nil {
				return err
			}
			r.Fleet = fleet
			keys, err := bundle.ReadKeys(c.Bundle.Keys)
			if err != nil {
				return err
			}
			shown, err := (&bundle.Show{Source: bundle.Source{Location: args[0], Remote: true}, Keys: keys}).Run(command.Context())
			if err != nil {
				return err
			}
			r.Document = payload.JobDocument{Operation: payload.UpdateModel, From: args[0], Digest: shown.Bundle.Digest}
			if r.Job == "" {
				r.Job = fmt.Sprintf("%s-%d", shown.Bundle.Name, shown.Bundle.Version)
			}
			return runRollout(command.Context(), r, stdout, settings.asJSON)
		},
	}
	rolloutFlags(r, command.Flags(), "name and version of the bundle")
	return settings.add(command)
}

// runRollout runs a roll-out and prints its result.
func runRollout(ctx context.Context, r *rollout.Rollout, stdout io.Writer, asJSON bool) error {
	if err := r.Check(); err != nil {
		return config.UsageError{Err: err}
	}
	result, err := r.Run(ctx)
	if err != nil && result.Stopped == "" {
		return err
	}
	return errors.Join(show(stdout, asJSON, result, nil), err)
}

// rolloutFlags adds the flags of roll-outs.
func rolloutFlags(r *rollout.Rollout, flags *pflag.FlagSet, usualJob string) {
	flags.StringVar(&r.Devices, "devices", "", "pattern of the names, such as gate-*")
	flags.StringVar(&r.Job, "job", "", "name of the job (default: "+usualJob+")")
	flags.Float64SliceVar(&r.Stages, "stages", []float64{1, 10, 50, 100},
		"shares of the devices in percent that have the job after each stage")
	flags.Float64Var(&r.MaxFailed, "max-failed", 5, "largest share of failed devices in percent; more stop the roll-out")
	flags.DurationVar(&r.Patience, "stage-time", 2*time.Hour, "how long a stage waits for connected devices; late ones count as failed")
}

func newFleetConfigure(stdout, stderr io.Writer) *cobra.Command {
	settings := newFleetSettings()
	r := &rollout.Rollout{Progress: report.Steps(stderr)}
	var s bundle.Settings
	var key, expires string
	command := &cobra.Command{
		Use: "configure FILE.yaml", Short: "Have devices apply settings that they have in common, a stage at a time", Args: oneFile,
		Long: `Signs the settings of a file and gives them to devices as a job, as fleet update does with a bundle. A device applies them over its own configuration,
without a restart, and goes back if the broker or a camera ceases to work in the time of bundle.trial. Each file replaces the one before. Cameras,
secondary networks, webhooks, name and bundle.keys are each device's own.`,
		RunE: func(command *cobra.Command, args []string) error {
			text, err := os.ReadFile(args[0])
			if err != nil {
				return err
			}
			if err := config.CheckFleetSettings(text); err != nil {
				return config.Usagef("%s: %w", args[0], err)
			}
			if s.Version < 1 || key == "" {
				return config.Usagef("fleet configure needs --version, a whole number that grows, and --sign, the secret key file of minisign")
			}
			if expires != "" {
				if s.Expires, err = time.Parse(time.DateOnly, expires); err != nil {
					return config.Usagef("--expires %q must be a date, such as 2027-06-30", expires)
				}
			}
			if _, r.Fleet, err = settings.fleet(); err != nil {
				return err
			}
			s.Settings = string(text)
			r.Document.Operation = payload.UpdateSettings
			ask := func(prompt string) (string, error) { return terminal.AskPassword(stderr, prompt) }
			if r.Document.Settings, r.Document.Signature, err = s.Sign(key, ask); err != nil {
				return err
			}
			if r.Job == "" {
				r.Job = fmt.Sprintf("settings-%d", s.Version)
			}
			return runRollout(command.Context(), r, stdout, settings.asJSON)
		},
	}
	flags := command.Flags()
	flags.Int64Var(&s.Version, "version", 0, "whole number that grows with each change; devices do not go back")
	flags.StringVar(&key, "sign", "", "secret key file of minisign; devices have its public key in bundle.keys")
	flags.StringVar(&expires, "expires", "", "date from which devices do not apply them, such as 2027-06-30")
	rolloutFlags(r, flags, "settings and their version")
	return settings.add(command)
}

func newFleetStatus(stdout io.Writer) *cobra.Command {
	settings := newFleetSettings()
	command := &cobra.Command{
		Use: "status JOB", Short: "Print how far devices are with a job", Args: oneJob,
		RunE: func(command *cobra.Command, args []string) error {
			_, fleet, err := settings.fleet()
			if err != nil {
				return err
			}
			result, err := fleet.Status(command.Context(), args[0])
			if err != nil {
				return err
			}
			return show(stdout, settings.asJSON, result, nil)
		},
	}
	return settings.add(command)
}

// withdrawn is what fleet abort did.
type withdrawn struct {
	Version int    `json:"v"`
	Job     string `json:"job"`
	Devices int    `json:"devices"`
}

// Print prints it in one line.
func (w withdrawn) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, "%s: taken back from %d devices\n", w.Job, w.Devices)
	return err
}

func newFleetAbort(stdout io.Writer) *cobra.Command {
	settings := newFleetSettings()
	command := &cobra.Command{
		Use: "abort JOB", Short: "Take a job back from devices that have not ended it", Args: oneJob,
		RunE: func(command *cobra.Command, args []string) error {
			_, fleet, err := settings.fleet()
			if err != nil {
				return err
			}
			devices, err := fleet.Abort(command.Context(), args[0])
			if err != nil {
				return err
			}
			return show(stdout, settings.asJSON, withdrawn{1, args[0], devices}, nil)
		},
	}
	return settings.add(command)
}

// oneFile takes the name of one file.
func oneFile(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return config.Usagef("%s needs one file", command.CommandPath())
	}
	return nil
}

// oneJob takes exactly one argument.
func oneJob(command *cobra.Command, args []string) error {
	if len(args) != 1 {
		return config.Usagef("%s needs the name of a job (edge-infer fleet list shows it)", command.CommandPath())
	}
	return nil
}
