package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/doctor"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/dossier"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/probe"
)

func newDoctor(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.AllSections()}
	var d doctor.Doctor
	var asJSON bool
	var unit, file string
	command := &cobra.Command{
		Use: "doctor", Short: "Check machine, libraries, cameras, model and broker, with remedies", Args: noArguments,
		Long: `Checks memory, driver, libraries, cameras, the model and the broker as configured by --config and flags. Each line is OK, WARN or FAIL with a
remedy. It changes nothing, may run beside the daemon, and ends with status 1 if something fails.

--unit checks as the service's user under the service's restrictions instead: device nodes that the unit or their modes deny and, as root where
systemd runs, everything above.

  edge-infer doctor
  sudo edge-infer doctor --unit
  edge-infer doctor --camera 0 --model yolo11n.onnx --mqtt tcp://broker:1883
  edge-infer doctor --config /etc/edge-infer/edge-infer.yaml --json
  sudo edge-infer doctor --config /etc/edge-infer/edge-infer.yaml --report report.md    # to attach to an issue`,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if d.Config, err = settings.Load(); err != nil {
				return err
			}
			if d.Timeout <= 0 {
				return config.Usagef("--timeout must be positive")
			}
			var failed error // of writing
			show := func(found doctor.Finding) {
				if !asJSON {
					failed = errors.Join(failed, tell(stdout, found))
				}
			}
			var all doctor.Findings
			if unit != "" {
				all = d.Service(command.Context(), unit, show)
			} else {
				all = d.Run(command.Context(), show)
			}
			if asJSON {
				failed = all.Encode(stdout)
			}
			if file != "" {
				failed = errors.Join(failed, writeDossier(command.Context(), file, &dossier.Dossier{
					Settings: &settings, Config: d.Config, Findings: all, Unit: cmp.Or(unit, "edge-infer"), Root: d.Root,
				}))
			}
			if failed == nil && all.Failed() > 0 {
				failed = fmt.Errorf("doctor: %d of %d checks failed", all.Failed(), len(all))
			}
			return failed
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	settings.CameraFlag(flags, "camera to try, URI or NAME=URI; may be given several times")
	settings.Flags(flags)
	flags.StringVar(&unit, "unit", "", "check as this systemd service; an instance is --unit=edge-infer@NAME")
	flags.Lookup("unit").NoOptDefVal = "edge-infer"
	flags.StringVar(&file, "report", "", "file (.md) to write: results, versions, devices, settings and log, without secrets")
	flags.DurationVar(&d.Timeout, "timeout", time.Minute, "time limit of each check")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	flags.StringVar(&d.Root, "root", "", "directory in front of /sys, /proc and /etc")
	_ = flags.MarkHidden("root") // the flag exists
	return command
}

// writeDossier looks at the machine's devices as well, and writes everything down.
func writeDossier(ctx context.Context, file string, d *dossier.Dossier) (err error) {
	var p probe.Probe
	if d.Machine, err = p.Run(ctx); err != nil {
		return err
	}
	d.Program = thisBuild().String()
	return d.Write(ctx, file)
}
