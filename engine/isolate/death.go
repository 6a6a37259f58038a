package isolate

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

// Death describes how a child process failed.
type Death struct {
	Signal   syscall.Signal // signal that killed it, or 0
	Status   int            // exit status
	LastLine string         // last line of its output
	Crash    string         // what Go's runtime printed about a signal that C code raised, "segmentation violation (SIGSEGV)"; else empty
}

// Error returns a predicate whose subject is the child.
func (d *Death) Error() string {
	switch {
	case d.Signal == syscall.SIGKILL:
		return fmt.Sprintf("crashes: %v, as when memory runs out", d.Signal)
	case d.Signal != 0:
		return fmt.Sprintf("crashes: %v", d.Signal)
	case d.Crash != "":
		return "crashes: " + d.Crash
	case d.LastLine != "":
		return fmt.Sprintf("ends the process with status %d: %s", d.Status, d.LastLine)
	}
	return fmt.Sprintf("ends the process with status %d", d.Status)
}

// crash matches the Go runtime's report of a signal raised by C code; the process then exits with status 2.
var crash = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+): ([a-z ]+)`)

// death converts an error of Wait to a *Death, nil for a normal exit.
func death(err error, output *tail) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	d := &Death{Status: exit.ExitCode()}
	if status, isWait := exit.Sys().(syscall.WaitStatus); isWait && status.Signaled() {
		d.Signal = status.Signal()
	} else if match := crash.FindStringSubmatch(output.String()); match != nil {
		d.Crash = fmt.Sprintf("%s (%s)", strings.TrimSpace(strings.TrimSuffix(match[2], " code")), match[1])
	}
	last := strings.TrimSpace(output.String())
	d.LastLine = last[strings.LastIndexByte(last, '\n')+1:]
	return d
}
