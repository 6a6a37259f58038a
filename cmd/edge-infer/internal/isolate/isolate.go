// Package isolate makes library calls that may crash or hang in a process of their own, and says how that process ended.
package isolate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"
)

// answers is the file descriptor on which the child writes, one JSON document a line. Libraries print to the standard output.
const answers = 3

// killGrace is how long a killed child may take to end; one that a driver holds in the kernel never does.
const killGrace = 2 * time.Second

// Process is a program whose process calls Serve, as a rule this one with a hidden command, and how long each run of it may take.
type Process struct {
	Program []string
	Timeout time.Duration
}

// Run starts the process, hands it the request and each of its answers to each, in order. What was answered before a process died counts; the
// error says how it ended, nil when it did so in order. The request travels over the standard input, because it may hold passwords.
func (p Process) Run(ctx context.Context, request any, each func(answer json.RawMessage)) error {
	line, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return err
	}
	defer read.Close()
	defer write.Close()
	command := exec.Command(p.Program[0], p.Program[1:]...)
	command.Env = append(os.Environ(), "GOTRACEBACK=none")
	command.ExtraFiles = []*os.File{write}
	var said tail
	command.Stderr = &said
	command.WaitDelay = killGrace
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it starts can be killed with it
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	defer input.Close() // its end tells the child that nobody waits any more
	if err := command.Start(); err != nil {
		return err
	}
	write.Close()
	if _, err := input.Write(append(line, '\n')); err != nil && !errors.Is(err, syscall.EPIPE) {
		return stop(command, wait(command), err)
	}

	heard := make(chan []json.RawMessage, 1)
	go func() { heard <- decode(read) }()
	ended := wait(command)
	timer := time.NewTimer(p.Timeout)
	defer timer.Stop()
	select {
	case err = <-ended:
		err = death(err, said.String())
	case <-timer.C:
		err = stop(command, ended, fmt.Errorf("no answer in %v", p.Timeout))
	case <-ctx.Done():
		err = stop(command, ended, context.Cause(ctx))
	}
	// Everything that it wrote is in the pipe by now. A grandchild may hold the other end.
	_ = read.SetReadDeadline(time.Now().Add(killGrace))
	for _, answer := range <-heard {
		each(answer)
	}
	return err
}

func wait(command *exec.Cmd) <-chan error {
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	return ended
}

// stop kills the child and what it started.
func stop(command *exec.Cmd, ended <-chan error, why error) error {
	_ = syscall.Kill(-command.Process.Pid, syscall.SIGKILL) // it may have ended by itself meanwhile
	timer := time.NewTimer(killGrace)
	defer timer.Stop()
	select {
	case <-ended:
		return why
	case <-timer.C:
		return fmt.Errorf("%w, and it cannot be killed: a driver holds it", why)
	}
}

func decode(in io.Reader) []json.RawMessage {
	var all []json.RawMessage
	decoder := json.NewDecoder(bufio.NewReader(in))
	for {
		var answer json.RawMessage
		if decoder.Decode(&answer) != nil {
			return all
		}
		all = append(all, answer)
	}
}

// Serve is the child's side: it reads the request from in and has work answer it with tell. The end of the input ends the process at once,
// wherever it hangs.
func Serve(in io.Reader, request any, work func(tell func(answer any)) error) error {
	reader := bufio.NewReader(in)
	line, err := reader.ReadBytes('\n')
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	if err := json.Unmarshal(line, request); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		os.Exit(1)
	}()
	out := os.NewFile(answers, "answers")
	if out == nil {
		return errors.New("nobody reads the answers")
	}
	encoder := json.NewEncoder(out)
	var failed error
	err = work(func(answer any) { failed = errors.Join(failed, encoder.Encode(answer)) })
	return errors.Join(err, failed, out.Close())
}

// What Go's runtime says on standard error of a signal that C code raised; it ends the process with status 2 then.
var signalled = regexp.MustCompile(`(?m)^(?:\[signal )?(SIG[A-Z]+): ([a-z ]+)`)

// death says how a child ended, nil when it did so in order.
func death(err error, stderr string) error {
	var exit *exec.ExitError
	switch {
	case err == nil:
		return nil
	case !errors.As(err, &exit):
		return err
	}
	if status, isWait := exit.Sys().(syscall.WaitStatus); isWait && status.Signaled() {
		return fmt.Errorf("crashes: %v%s", status.Signal(), oomHint(status.Signal()))
	}
	if match := signalled.FindStringSubmatch(stderr); match != nil {
		return fmt.Errorf("crashes: %s (%s)", strings.TrimSpace(strings.TrimSuffix(match[2], " code")), match[1])
	}
	last := strings.TrimSpace(stderr)
	if cut := strings.LastIndexByte(last, '\n'); cut >= 0 {
		last = last[cut+1:]
	}
	if last != "" {
		last = ": " + last
	}
	return fmt.Errorf("ends the process with status %d%s", exit.ExitCode(), last)
}

func oomHint(signal syscall.Signal) string {
	if signal == syscall.SIGKILL {
		return ", as when memory runs out"
	}
	return ""
}

// tail keeps the last bytes that are written. exec.Cmd writes from one goroutine and Wait ends that.
type tail struct{ bytes.Buffer }

const tailSize = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	if t.Len() > tailSize {
		t.Next(t.Len() / 2)
	}
	return t.Buffer.Write(p)
}
