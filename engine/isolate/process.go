// Package isolate runs library calls that may crash, hang or exhaust memory in a child process and reports how it ended.
//
// The child reads one JSON line, the request, and its payload from standard input. The input stays open; its end means that the parent no
// longer waits. The child answers with one JSON document per line on a separate descriptor, because libraries print to standard output.
package isolate

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"time"
)

// killGrace limits the wait for a killed child; one blocked in a driver call never ends.
const killGrace = 2 * time.Second

// Process is a program that calls Serve, usually this one with a hidden command, and its time limits.
type Process struct {
	Program     []string
	Environment []string      // added to this process's environment
	Timeout     time.Duration // 0 for no limit
	// Grace is the time a cancelled child has to clean up before it is killed.
	Grace time.Duration
	// Files are further open files of the child, whose descriptors begin with FirstFile.
	Files []*os.File
}

// FirstFile is the descriptor of the first of Process.Files in the child.
const FirstFile = answersDescriptor + 1

// header is the first line of the child's input.
type header struct {
	Request json.RawMessage `json:"request"`
	Payload int64           `json:"payload"` // bytes that follow the line
	Grace   time.Duration   `json:"grace"`
}

// Run starts the process, sends it the request with its payload, and calls each with every answer in order of arrival, including those
// before a crash. The error is nil after a normal exit, otherwise a *Death, the context's cause, or the reason why the process did not
// start. The request is passed on standard input because it may contain passwords.
func (p Process) Run(ctx context.Context, request any, payload []byte, each func(answer json.RawMessage)) error {
	asked, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("request: %w", err)
	}
	line, err := json.Marshal(header{asked, int64(len(payload)), p.Grace})
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
	command.Env = append(append(os.Environ(), "GOTRACEBACK=none"), p.Environment...)
	command.ExtraFiles = append([]*os.File{write}, p.Files...)
	var output tail
	command.Stdout = &output // where libraries explain themselves, too
	command.Stderr = &output
	command.WaitDelay = killGrace
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // to kill it together with its children
	input, err := command.StdinPipe()
	if err != nil {
		return err
	}
	defer input.Close()
	if err := command.Start(); err != nil {
		return err
	}
	write.Close()
	go func() {
		// If the child exited early, its exit status is the better error.
		_, _ = input.Write(append(line, '\n'))
		_, _ = input.Write(payload)
	}()

	child := &child{
		process: p, command: command, input: input, output: &output, ended: make(chan error, 1),
		answers: make(chan json.RawMessage),
	}
	go func() { child.ended <- command.Wait() }()
	go child.decode(read)
	err = child.await(ctx, each)
	// Everything it wrote is in the pipe by now. A grandchild may hold the other end.
	_ = read.SetReadDeadline(time.Now().Add(killGrace))
	for answer := range child.answers {
		each(answer)
	}
	return err
}

// child is a running process.
type child struct {
	process Process
	command *exec.Cmd
	input   io.Closer
	output  *tail // valid after it has ended
	ended   chan error
	answers chan json.RawMessage // closed after the last one
}

func (c *child) decode(in io.Reader) {
	defer close(c.answers)
	decoder := json.NewDecoder(bufio.NewReader(in))
	for {
		var answer json.RawMessage
		if decoder.Decode(&answer) != nil {
			return
		}
		c.answers <- answer
	}
}

// await delivers answers until the process has ended or must be stopped.
func (c *child) await(ctx context.Context, each func(json.RawMessage)) error {
	var timeout <-chan time.Time
	if c.process.Timeout > 0 {
		timer := time.NewTimer(c.process.Timeout)
		defer timer.Stop()
		timeout = timer.C
	}
	answers := c.answers
	for {
		select {
		case answer, more := <-answers:
			if !more {
				answers = nil
				continue
			}
			each(answer)
		case err := <-c.ended:
			return death(err, c.output)
		case <-timeout:
			return c.stop(each, fmt.Errorf("no answer in %v", c.process.Timeout))
		case <-ctx.Done():
			return c.stop(each, context.Cause(ctx))
		}
	}
}

// stop ends the child by closing its input, then kills its process group after the grace period.
func (c *child) stop(each func(json.RawMessage), why error) error {
	_ = c.input.Close()
	grace := time.NewTimer(c.process.Grace)
	defer grace.Stop()
	killed := time.NewTimer(c.process.Grace + killGrace)
	defer killed.Stop()
	answers := c.answers
	for {
		select {
		case answer, more := <-answers:
			if !more {
				answers = nil
				continue
			}
			each(answer)
		case <-c.ended:
			return why
		case <-grace.C:
			_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL) // it may have ended already
		case <-killed.C:
			return fmt.Errorf("%w, and it cannot be killed: a driver holds it", why)
		}
	}
}

// tail keeps the last bytes written. exec.Cmd writes from one goroutine, which ends before Wait returns.
type tail struct{ bytes.Buffer }

const tailSize = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	if t.Len() > tailSize {
		t.Next(t.Len() / 2)
	}
	return t.Buffer.Write(p)
}
