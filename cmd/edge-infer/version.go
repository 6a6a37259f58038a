package main

import (
	"encoding/json"
	"fmt"
	"io"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"
)

// release is set by the linker for release builds.
var release = "development"

// build is what version prints.
type build struct {
	Version  string `json:"version"`
	Revision string `json:"revision"`
	Go       string `json:"go"`
	Platform string `json:"platform"`
}

// String is one line for a person.
func (b build) String() string {
	return fmt.Sprintf("edge-infer %s %s %s %s", b.Version, b.Revision, b.Go, b.Platform)
}

func thisBuild() build {
	b := build{Version: release, Go: runtime.Version(), Platform: runtime.GOOS + "/" + runtime.GOARCH}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				b.Revision = s.Value
			}
		}
	}
	return b
}

func newVersion(stdout io.Writer) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use: "version", Short: "Print the version", Args: noArguments,
		RunE: func(*cobra.Command, []string) error {
			b := thisBuild()
			if asJSON {
				return json.NewEncoder(stdout).Encode(b)
			}
			_, err := fmt.Fprintln(stdout, b)
			return err
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print one JSON document")
	return command
}
