// Package isolate makes library calls that may crash, hang or take all memory in a process of their own, and says how that process ended.
//
// The protocol is the only one between this program and its children: on its standard input the child gets one JSON line, the request, and
// the bytes that belong to it; the input stays open, and its end tells the child that nobody waits any more. It answers with one JSON
// document a line on a descriptor of its own, because libraries print to the standard output.
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

// killGrace is how long a killed child may take to end; one that a driver holds in the kernel never does.
const killGrace = 2 * time.Second

// Process is a program whose process calls Serve, as a rule this one with a hidden command, and how long each run of it may take.
type Process struct {
	Program     []string
	Environment []string      // added to this process' own
	Timeout     time.Duration // 0 for none
	// Grace is how long a child that is not wanted any more may take to tidy up before it is killed.
	Grace time.Duration
}

// header begins what a child reads.
type header struct {
	Request json.RawMessage `json:"request"`
	Payload int64           `json:"payload"` // bytes that follow the line
	Grace   time.Duration   `json:"grace"`
}

// Run starts the process, hands it the request with its payload, and each of its answers to each, in order and as they come. What was
// answered before a process died counts; the error says how it ended, nil when it did so in order: a *Death, the context's cause, or that
// it could not be started. The request travels over the standard input, because it may hold passwords.
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
	command.ExtraFiles = []*os.File{write}
	var said tail
	command.Stderr = &said
	command.WaitDelay = killGrace
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it starts can be killed with it
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
		// A child that ends early closes the pipe; how it ended is the better error.
		_, _ = input.Write(append(line, '\n'))
		_, _ = input.Write(payload)
	}()

	child := &child{process: p, command: command, input: input, said: &said, ended: make(chan error, 1), answers: make(chan json.RawMessage)}
	go func() { child.ended <- command.Wait() }()
	go child.decode(read)
	err = child.await(ctx, each)
	// Everything that it wrote is in the pipe by now. A grandchild may hold the other end.
	_ = read.SetReadDeadline(time.Now().Add(killGrace))
	for answer := range child.answers {
		each(answer)
	}
	return err
}

// child is a process that runs.
type child struct {
	process Process
	command *exec.Cmd
	input   io.Closer
	said    *tail // to be read when it has ended
	ended   chan error
	answers chan json.RawMessage // closed at their end
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

// await hands out answers until the process has ended, or must.
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
			return death(err, c.said)
		case <-timeout:
			return c.stop(each, fmt.Errorf("no answer in %v", c.process.Timeout))
		case <-ctx.Done():
			return c.stop(each, context.Cause(ctx))
		}
	}
}

// stop asks the child to end, and kills it and what it started when it does not in time.
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
			_ = syscall.Kill(-c.command.Process.Pid, syscall.SIGKILL) // it may have ended by itself meanwhile
		case <-killed.C:
			return fmt.Errorf("%w, and it cannot be killed: a driver holds it", why)
		}
	}
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
