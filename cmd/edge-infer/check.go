package main

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/diagnose"
)

// checked is the result of config check. The mistakes are also the error of the command.
type checked struct {
	Version  int      `json:"v"`
	File     string   `json:"file"`
	Cameras  int      `json:"cameras"` // 0 also while there are mistakes
	Mistakes []string `json:"mistakes"`
}

// Print reports a file without mistakes; mistakes are printed as errors.
func (c checked) Print(out io.Writer) error {
	if len(c.Mistakes) > 0 {
		return nil
	}
	if c.Cameras == 0 {
		_, err := fmt.Fprintf(out, "%s: no mistakes, but no cameras: add cameras to it, or start run with --camera\n", c.File)
		return err
	}
	_, err := fmt.Fprintf(out, "%s: no mistakes, %d cameras\n", c.File, c.Cameras)
	return err
}

// newCheck returns config check, which finds the mistakes that would make a start or a reload fail.
func newCheck(stdout io.Writer) *cobra.Command {
	settings := config.Sources{Scope: config.AllSections()}
	var asJSON bool
	command := &cobra.Command{
		Use: "check FILE", Short: "Validate a configuration file and open what it names",
		Args: func(_ *cobra.Command, args []string) error {
			if settings.File != "" {
				args = append(args, settings.File)
			}
			if len(args) != 1 {
				return config.Usagef("check needs the configuration file, once")
			}
			settings.File = args[0]
			return nil
		},
		Long: `Reads the file, conf.d beside it, EDGE_INFER_* variables and flags as run does, and reports every error with its line. If there is none, it opens
the network in a child process and checks labels, zones, passwords, tokens, certificates, directories and addresses. A running daemon is not
disturbed. Cameras and brokers are not contacted: edge-infer doctor does that.`,
		RunE: func(command *cobra.Command, _ []string) error {
			c, mistakes := settings.Check()
			if len(mistakes) == 0 {
				program, err := os.Executable()
				if err != nil {
					return err
				}
				check := diagnose.Preflight{Config: c, Program: []string{program, diagnose.Command}}
				for _, mistake := range check.Run(command.Context()) {
					mistakes = append(mistakes, fmt.Errorf("config %s: %w", settings.File, mistake))
				}
			}
			result := checked{Version: 1, File: settings.File, Mistakes: make([]string, len(mistakes))}
			if len(mistakes) == 0 {
				result.Cameras = len(c.Cameras)
				return show(stdout, asJSON, result, nil)
			}
			for i, mistake := range mistakes {
				result.Mistakes[i] = mistake.Error()
			}
			return show(stdout, asJSON, result, mistakes)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document, with a text for each mistake")
	settings.Flags(command.Flags())
	settings.CameraFlag(command.Flags(), "as of run")
	settings.CascadeFlag(command.Flags())
	return command
}
