// Package dossier writes down in one file what others need to know of a machine to help with it: what doctor and devices say, versions, the
// configuration and the last lines of the log. Secrets are left out.
package dossier

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"golang.org/x/sys/unix"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/doctor"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/probe"
	"github.com/edge-infer/edge-infer/engine/atomicfile"
)

// Dossier is what is written down.
type Dossier struct {
	Program  string // version and build
	Settings *config.Sources
	Config   *config.Config // of the settings
	Findings doctor.Findings
	Machine  *probe.Machine
	Unit     string   // service whose log is read
	Root     string   // put before the paths of procfs and /etc
	Log      []string // command that prints the log; nil for journalctl
}

const (
	logLines = "200"            // at most
	logLimit = 10 * time.Second // that reading them may take
)

// Write writes the file, which only this user may read.
func (d *Dossier) Write(ctx context.Context, path string) error {
	if err := atomicfile.Write(path, d.text(ctx), 0o600); err != nil {
		return fmt.Errorf("report: %w", err)
	}
	return nil
}

// text is the whole as Markdown, what programs say as indented blocks.
func (d *Dossier) text(ctx context.Context) []byte {
	var text bytes.Buffer
	text.WriteString("# edge-infer on one machine\n\nPasswords, tokens and keys are left out. Names and addresses of cameras and brokers\n" +
		"are in it: look through it before you give it to others.\n")
	redactor := newRedactor(d.Settings.Secrets(d.Config))
	section := func(title, body string) {
		fmt.Fprintf(&text, "\n## %s\n\n", title)
		for line := range strings.Lines(redactor.redact(body)) {
			text.WriteString(strings.TrimRight("    "+line, " \r\n") + "\n")
		}
	}
	section("Versions", d.versions())
	var findings strings.Builder
	for _, f := range d.Findings {
		_ = f.Print(&findings) // a Builder takes everything
	}
	section("edge-infer doctor", findings.String())
	var machine strings.Builder
	_ = d.Machine.Print(&machine)
	section("edge-infer devices", machine.String())
	section("edge-infer config show --origin", d.settings())
	section("Environment, names only", strings.Join(variables(os.Environ()), "\n")+"\n")
	section("Last lines of the log", d.log(ctx))
	return text.Bytes()
}

// versions are those of the program, the kernel and the system, and of JetPack where it is there.
func (d *Dossier) versions() string {
	var out strings.Builder
	table := tabwriter.NewWriter(&out, 0, 0, 2, ' ', 0)
	row := func(name, value string) {
		fmt.Fprintf(table, "%s\t%s\n", name, cmp.Or(strings.TrimSpace(value), "not known"))
	}
	row("program", d.Program)
	row("time", time.Now().Format(time.RFC3339))
	var kernel unix.Utsname
	if err := unix.Uname(&kernel); err == nil {
		word := unix.ByteSliceToString
		row("kernel", word(kernel.Sysname[:])+" "+word(kernel.Release[:])+" "+word(kernel.Version[:])+" "+word(kernel.Machine[:]))
	}
	for line := range strings.Lines(d.file("/etc/os-release")) {
		if name, found := strings.CutPrefix(line, "PRETTY_NAME="); found {
			row("system", strings.Trim(strings.TrimSpace(name), `"`))
		}
	}
	if model := strings.TrimRight(d.file("/proc/device-tree/model"), "\x00"); model != "" {
		row("board", model)
	}
	if release, _, _ := strings.Cut(d.file("/etc/nv_tegra_release"), "\n"); release != "" {
		row("Jetson Linux", release)
	}
	if j := d.Machine.Jetson; j != nil {
		row("JetPack", j.JetPack)
	}
	_ = table.Flush()
	return out.String()
}

// file is the text of a file, "" when it is not there.
func (d *Dossier) file(path string) string {
	text, err := os.ReadFile(filepath.Join(d.Root, path))
	if err != nil {
		return ""
	}
	return string(text)
}

// settings are those in force, references as they stand.
func (d *Dossier) settings() string {
	all, err := d.Settings.Origins()
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

// variables are the names of those that concern this program or what it loads.
func variables(environment []string) []string {
	var names []string
	for _, entry := range environment {
		name, _, _ := strings.Cut(entry, "=")
		for _, prefix := range []string{"EDGE_INFER_", "CUDA_", "NVIDIA_", "LD_", "OPENCV_", "GST_", "GO"} {
			if strings.HasPrefix(name, prefix) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// log is the end of the service's log, or why there is none.
func (d *Dossier) log(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, logLimit)
	defer cancel()
	command := d.Log
	if command == nil {
		command = []string{"journalctl", "--unit=" + d.Unit, "--lines=" + logLines, "--no-pager", "--output=short-iso"}
	}
	var said bytes.Buffer
	program := exec.CommandContext(ctx, command[0], command[1:]...)
	program.Stdout, program.Stderr = &said, &said
	program.WaitDelay = time.Second // a child of its own may hold the pipe
	if err := program.Run(); err != nil {
		fmt.Fprintf(&said, "%s: %v\n", command[0], err)
	}
	return said.String()
}
