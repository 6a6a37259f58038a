package doctor

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

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/config"
)

// Request is what a child process is to examine. It travels over the standard input, because addresses of cameras may hold passwords.
type Request struct {
	Examine string        `json:"examine"`
	Root    string        `json:"root,omitempty"`
	Camera  string        `json:"camera,omitempty"`
	Model   config.Model  `json:"model"`
	Engine  config.Engine `json:"engine"`
	Detect  config.Detect `json:"detect"`
}

// The examinations that are made in a child process.
const (
	driverExamination      = "driver"
	tensorrtExamination    = "tensorrt"
	onnxruntimeExamination = "onnxruntime"
	cameraExamination      = "camera"
	ModelExamination       = "model"
)

// answers is the file descriptor on which the child writes its findings, one JSON line each. Libraries print to the standard output.
const answers = 3

// killGrace is how long a killed child may take to end; one that a driver holds in the kernel never does.
const killGrace = 2 * time.Second

// child makes an examination in a process of its own. Whatever that process found before it died counts; its death is one more finding, with fix.
func (d *Doctor) child(ctx context.Context, check string, r Request, fix string) []Finding {
	r.Root, r.Model, r.Engine, r.Detect = d.Root, d.Config.Model, d.Config.Engine, d.Config.Detect
	found, err := d.start(ctx, &r)
	for i := range found {
		if found[i].Check == "" {
			found[i].Check = check
		}
	}
	if err != nil {
		found = append(found, fail(check, fix, "%v", err))
	}
	return found
}

func (d *Doctor) start(ctx context.Context, r *Request) ([]Finding, error) {
	request, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("examine %s: %w", r.Examine, err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("examine %s: %w", r.Examine, err)
	}
	defer read.Close()
	defer write.Close()
	command := exec.Command(d.Program[0], d.Program[1:]...)
	command.Env = append(os.Environ(), "GOTRACEBACK=none")
	command.ExtraFiles = []*os.File{write}
	var said tail
	command.Stderr = &said
	command.WaitDelay = killGrace
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // so that what it starts can be killed with it
	input, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("examine %s: %w", r.Examine, err)
	}
	defer input.Close() // its end tells the child that nobody waits any more
	if err := command.Start(); err != nil {
		return nil, fmt.Errorf("examine %s: %w", r.Examine, err)
	}
	write.Close()
	if _, err := input.Write(append(request, '\n')); err != nil && !errors.Is(err, syscall.EPIPE) {
		return nil, fmt.Errorf("examine %s: %w", r.Examine, err)
	}

	findings := make(chan []Finding, 1)
	go func() { findings <- decode(read) }()
	ended := make(chan error, 1)
	go func() { ended <- command.Wait() }()
	timer := time.NewTimer(d.Timeout)
	defer timer.Stop()
	select {
	case err = <-ended:
		err = death(err, said.String())
	case <-timer.C:
		err = stop(command, ended, fmt.Errorf("no answer in %v", d.Timeout))
	case <-ctx.Done():
		err = stop(command, ended, context.Cause(ctx))
	}
	// Everything that it wrote is in the pipe by now. A grandchild may hold the other end.
	_ = read.SetReadDeadline(time.Now().Add(killGrace))
	return <-findings, err
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

func decode(in io.Reader) []Finding {
	var found []Finding
	decoder := json.NewDecoder(bufio.NewReader(in))
	for {
		var f Finding
		if decoder.Decode(&f) != nil {
			return found
		}
		found = append(found, f)
	}
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
