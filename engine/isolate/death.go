package isolate

import (
	"errors"
	"fmt"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
)

// Death is how a child ended that did not do so in order.
type Death struct {
	Signal syscall.Signal // that killed it, 0 for none
	Status int            // that it ended with
	Said   string         // its last line on standard error
	Crash  string         // what Go's runtime said of a signal that C code raised, "segmentation violation (SIGSEGV)"; else empty
}

// Error says it with the child as the subject.
func (d *Death) Error() string {
	switch {
	case d.Signal == syscall.SIGKILL:
		return fmt.Sprintf("crashes: %v, as when memory runs out", d.Signal)
	case d.Signal != 0:
		return fmt.Sprintf("crashes: %v", d.Signal)
	case d.Crash != "":
		return "crashes: " + d.Crash
	case d.Said != "":
		return fmt.Sprintf("ends the process with status %d: %s", d.Status, d.Said)
	}
	return fmt.Sprintf("ends the process with status %d", d.Status)
}

// crash matches what Go's runtime says of a signal that C code raised; it ends the process with status 2 then.
var crash = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+): ([a-z ]+)`)

// death says how a process ended that Wait tells of, nil when it did so in order.
func death(err error, said *tail) error {
	exit, ok := errors.AsType[*exec.ExitError](err)
	if !ok {
		return err
	}
	d := &Death{Status: exit.ExitCode()}
	if status, isWait := exit.Sys().(syscall.WaitStatus); isWait && status.Signaled() {
		d.Signal = status.Signal()
	} else if match := crash.FindStringSubmatch(said.String()); match != nil {
		d.Crash = fmt.Sprintf("%s (%s)", strings.TrimSpace(strings.TrimSuffix(match[2], " code")), match[1])
	}
	last := strings.TrimSpace(said.String())
	d.Said = last[strings.LastIndexByte(last, '\n')+1:]
	return d
}
