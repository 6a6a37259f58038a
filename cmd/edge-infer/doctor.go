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
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
)

func newDoctor(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.AllSections()}
	var d diagnose.Doctor
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
			show := func(check diagnose.Check) {
				if !asJSON {
					failed = errors.Join(failed, printSafely(stdout, check))
				}
			}
			var all diagnose.Checks
			if unit != "" {
				all = d.Service(command.Context(), unit, show)
			} else {
				all = d.Run(command.Context(), show)
			}
			if asJSON {
				failed = all.Encode(stdout)
			}
			if file != "" {
				failed = errors.Join(failed, writeBundle(command.Context(), file, &diagnose.Bundle{
					Settings: &settings, Config: d.Config, Checks: all, Unit: cmp.Or(unit, "edge-infer"), Root: d.Root,
				}))
			}
			if n := all.Count(diagnose.Fail); failed == nil && n > 0 {
				failed = fmt.Errorf("doctor: %d of %d checks failed", n, len(all))
			}
			return failed
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	settings.CameraFlag(flags, "camera to test, URI or NAME=URI; may be given several times")
	settings.Flags(flags)
	flags.StringVar(&unit, "unit", "", "check as this systemd service; an instance is --unit=edge-infer@NAME")
	flags.Lookup("unit").NoOptDefVal = "edge-infer"
	flags.StringVar(&file, "report", "", "file (.md) to write: results, versions, devices, settings and log, without secrets")
	flags.DurationVar(&d.Timeout, "timeout", time.Minute, "time limit of each check")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	flags.StringVar(&d.Root, "root", "", "prefix of /sys, /proc and /etc")
	_ = flags.MarkHidden("root") // the flag exists
	return command
}

// writeBundle adds the machine's devices and writes the support bundle.
func writeBundle(ctx context.Context, file string, b *diagnose.Bundle) (err error) {
	var p diagnose.DeviceProbe
	if b.Devices, err = p.Run(ctx); err != nil {
		return err
	}
	b.Program = thisBuild().String()
	return b.Write(ctx, file)
}
