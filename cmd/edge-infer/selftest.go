package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

func newSelftest(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	s := &diagnose.Selftest{}
	var file string
	var asJSON bool
	command := &cobra.Command{
		Use: "selftest", Short: "Test this machine's GPU, libraries, decoder, camera, sensors and service, in ten minutes", Args: noArguments,
		Long: `Runs hardware tests, each in its own process: TensorRT's libraries, the CUDA kernels compared with the CPU, CUDA graphs, zero copy, the times of
mapped, copied and managed memory and of decoded images to CUDA memory, the network in FP32, FP16 and INT8 compared with ONNX Runtime, DLA, RTSP
cameras of H.264 and H.265 on this machine (1, 4 and 8 at once, and opened again), every CSI and USB camera, power sensors, the network under load,
and the systemd service under its rules.
Each check is OK, WARN, FAIL or SKIP (hardware or program absent), with the reason. It exits with status 1 if a check fails.

Engine plans are written to the cache; nothing else is changed. Stop the service first, because it uses the GPU's memory and the camera.

  sudo edge-infer selftest --report selftest.md
  edge-infer selftest --json >selftest.json`,
		RunE: func(command *cobra.Command, _ []string) (err error) {
			if s.Config, err = settings.Load(); err != nil {
				return err
			}
			if s.Timeout <= 0 {
				return config.Usagef("--timeout must be positive")
			}
			s.Config.Cameras, s.Config.MQTT.URL = nil, config.Off
			s.Progress = report.Steps(stderr)
			out := io.Writer(stdout)
			if screen := terminal.Open(stderr); screen.Live() && terminal.Same(stdout, stderr) {
				out, s.Progress = screen, report.Steps(screen) // above the progress line
			}
			var written error
			all, err := s.Run(command.Context(), func(c diagnose.Check) {
				if !asJSON {
					written = errors.Join(written, printSafely(out, c))
				}
			})
			if err != nil {
				return err
			}
			if asJSON {
				written = all.Encode(stdout)
			} else if _, err := fmt.Fprintf(out, "%s\n\n%s", all.Summary(), selftestTable(all)); err != nil {
				written = err
			}
			if file != "" {
				written = errors.Join(written, writeSelftest(file, all))
			}
			if n := all.Count(diagnose.Fail); written == nil && n > 0 {
				return fmt.Errorf("self-test: %d of %d checks failed", n, len(all))
			}
			return written
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&file, "report", "", "also write the results to this file (.md)")
	flags.DurationVar(&s.Load, "load", 30*time.Second,
		"time for which the network runs while clocks, heat and memory are observed; 0s: not at all")
	flags.StringVar(&s.Unit, "unit", "edge-infer", "systemd service whose rules are tested")
	flags.DurationVar(&s.Timeout, "timeout", 10*time.Minute, "timeout of each part")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	settings.Flags(flags)
	return command
}

// writeSelftest writes the results and the program's version as Markdown.
func writeSelftest(file string, all diagnose.Checks) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# edge-infer selftest\n\n%s, %s\n\n", thisBuild(), time.Now().Format(time.RFC3339))
	text.WriteString(selftestTable(all))
	fmt.Fprintf(&text, "\n%s\n", all.Summary())
	if err := atomicfile.Write(file, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// selftestTable is the result as a Markdown table for a report or a forum post.
func selftestTable(all diagnose.Checks) string {
	var text strings.Builder
	fmt.Fprintf(&text, "| %s | status | detail | fix |\n|---|---|---|---|\n", cell(thisBuild().String()))
	for i := range all {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", cell(all[i].Name), all[i].Status, cell(all[i].Detail), cell(all[i].Remedy))
	}
	return text.String()
}

// cell is a text in a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
