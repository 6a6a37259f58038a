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
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/report"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/selftest"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/terminal"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

func newSelftest(stdout, stderr io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.NetworkSections()}
	s := &selftest.Selftest{}
	var file string
	var asJSON bool
	command := &cobra.Command{
		Use: "selftest", Short: "Test this machine's GPU, libraries, decoder, camera, sensors and service, in ten minutes", Args: noArguments,
		Long: `Runs the project's hardware tests, each in a child process: TensorRT's libraries, CUDA kernels against the CPU, graphs, zero copy, the network in
FP32 and FP16 against ONNX Runtime, DLA, the hardware decoder, a CSI camera, power sensors, and the systemd service under its restrictions. Each
line is ok, warning, failed or not available, with the reason. It ends with status 1 if something failed.

Engine plans are cached; nothing else changes. Stop the service first: it uses the GPU's memory and the camera.

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
				out, s.Progress = screen, report.Steps(screen) // above the line that says what is tried
			}
			var written error
			all, err := s.Run(command.Context(), func(r *selftest.Result) {
				if !asJSON {
					written = errors.Join(written, tell(out, r))
				}
			})
			if err != nil {
				return err
			}
			if asJSON {
				written = all.Encode(stdout)
			} else if _, err := fmt.Fprintln(out, all); err != nil {
				written = err
			}
			if file != "" {
				written = errors.Join(written, writeSelftest(file, all))
			}
			if n := all.Count(selftest.Failed); written == nil && n > 0 {
				return fmt.Errorf("self-test: %d of %d parts failed", n, len(all))
			}
			return written
		},
	}
	flags := command.Flags()
	flags.SortFlags = false
	flags.StringVar(&file, "report", "", "file (.md) to write the results to")
	flags.StringVar(&s.Video, "video", "", "MP4 file with H.264 for the decoder, if this machine cannot encode one")
	flags.StringVar(&s.Unit, "unit", "edge-infer", "systemd service whose restrictions are tested")
	flags.DurationVar(&s.Timeout, "timeout", 10*time.Minute, "time limit of each part")
	flags.BoolVar(&asJSON, "json", false, "print one JSON document")
	settings.Flags(flags)
	return command
}

// writeSelftest writes the results down with the program's version.
func writeSelftest(file string, all selftest.Results) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "# edge-infer selftest\n\n%s, %s\n\n", thisBuild(), time.Now().Format(time.RFC3339))
	text.WriteString("| part | status | what | fix |\n|---|---|---|---|\n")
	for i := range all {
		fmt.Fprintf(&text, "| %s | %s | %s | %s |\n", cell(all[i].Part), all[i].Status, cell(all[i].Detail), cell(all[i].Fix))
	}
	fmt.Fprintf(&text, "\n%s\n", all)
	if err := atomicfile.Write(file, text.Bytes(), 0o600); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// cell is a text in a cell of a Markdown table.
func cell(text string) string {
	return strings.ReplaceAll(strings.Join(strings.Fields(text), " "), "|", "\\|")
}
