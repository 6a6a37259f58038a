package diagnose

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/internal/atomicfile"
)

// Bundle is a support bundle: one file with the output of doctor and devices, versions, settings and the last lines of the log, without
// secrets.
type Bundle struct {
	Program  string // version and build
	Settings *config.Sources
	Config   *config.Config // result of Settings
	Checks   Checks
	Devices  *Devices
	Unit     string   // service whose log is read
	Root     string   // prefix of paths in /proc and /etc
	Log      []string // command that prints the log; nil for journalctl

	Commands [][]string // that describe the board; nil for those of a Jetson
}

// machineFilesTitle is the heading of the last section, whose lines are those of telemetry's recorded machines.
const machineFilesTitle = "Files of the machine"

const (
	logLines   = "200"
	logTimeout = 10 * time.Second
)

// Write writes the file with mode 0600.
func (b *Bundle) Write(ctx context.Context, path string) error {
	if err := atomicfile.Write(path, b.text(ctx), 0o600); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// text returns the bundle as Markdown, with output of programs as indented blocks.
func (b *Bundle) text(ctx context.Context) []byte {
	var text bytes.Buffer
	text.WriteString("# edge-infer on one machine\n\nPasswords, tokens and keys are removed. Names and addresses of cameras and brokers\n" +
		"are not: review this file before you share it.\n")
	redactor := newRedactor(b.Settings.Secrets(b.Config))
	section := func(title, body string) {
		fmt.Fprintf(&text, "\n## %s\n\n", title)
		for line := range strings.Lines(redactor.redact(body)) {
			text.WriteString(strings.TrimRight("    "+line, " \r\n") + "\n")
		}
	}
	section("Versions", b.versions())
	var checks strings.Builder
	for _, c := range b.Checks {
		_ = c.Print(&checks) // a Builder never fails
	}
	section("edge-infer doctor", checks.String())
	var devices strings.Builder
	_ = b.Devices.Print(&devices)
	section("edge-infer devices", devices.String())
	section("edge-infer config show --origin", b.settings())
	section("Environment, names only", strings.Join(variables(os.Environ()), "\n")+"\n")
	section("Last lines of the log", b.log(ctx))
	section("Devices, packages and logs of the system", b.board(ctx))
	section(machineFilesTitle, b.machineFiles(ctx))
	return text.Bytes()
}

// versions lists the versions of the program, the kernel, the system and JetPack.
func (b *Bundle) versions() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		fmt.Fprintf(table, "%s\t%s\n", name, cmp.Or(strings.TrimSpace(value), "unknown"))
	}
	row("program", b.Program)
	row("time", time.Now().Format(time.RFC3339))
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err == nil {
		word := unix.ByteSliceToString
		row("kernel", word(kernel.Sysname[:])+" "+word(kernel.Release[:])+" "+word(kernel.Version[:])+" "+word(kernel.Machine[:]))
	}
	for line := range strings.Lines(b.file("/etc/os-release")) {
		if name, found := strings.CutPrefix(line, "PRETTY_NAME="); found {
			row("system", strings.Trim(strings.TrimSpace(name), `"`))
		}
	}
	if model := strings.TrimRight(b.file("/proc/device-tree/model"), "\x00"); model != "" {
		row("board", model)
	}
	if release, _, _ := strings.Cut(b.file("/etc/nv_tegra_release"), "\n"); release != "" {
		row("Jetson Linux", release)
	}
	if j := b.Devices.Jetson; j != nil {
		row("JetPack", j.JetPack)
	}
	_ = table.Flush()
	return out.String()
}

// file returns the text of a file, "" if it cannot be read.
func (b *Bundle) file(path string) string {
	text, err := os.ReadFile(filepath.Join(b.Root, path))
	if err != nil {
		return ""
	}
	return string(text)
}

// settings lists the settings in force with their origins; references to secrets are not resolved.
func (b *Bundle) settings() string {
	all, err := b.Settings.Origins()
	if err != nil {
		return err.Error() + "\n"
	}
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	for _, setting := range all {
		fmt.Fprintf(table, "%s\t%s\t%s\n", setting.Key, setting.Value, setting.From)
	}
	_ = table.Flush()
	return out.String()
}

// variables returns the names of the environment variables that concern this program and its libraries.
func variables(environment []string) []string {
	var names []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"EDGE_INFER_", "CUDA_", "NVIDIA_", "LD_", "OPENCV_", "GST_", "GO", "DISPLAY", "EGL_", "XAUTHORITY"} {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// log returns the end of the service's log, or the reason why it cannot be read.
func (b *Bundle) log(ctx context.Context) string {
	command := b.Log
	if command == nil {
		command = []string{"journalctl", "--unit=" + b.Unit, "--lines=" + logLines, "--no-pager", "--output=short-iso"}
	}
	return output(ctx, command)
}
