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
	"sync"
	"time"
)

const (
	answersDescriptor = 3
	maxLine           = 16 << 20
	maxPayload        = 4 << 30
)

// Answers returns the descriptor for a child's answers. It fails in a process that was not started by Run.
func Answers() (io.WriteCloser, error) {
	out := os.NewFile(answersDescriptor, "answers")
	if _, err := out.Stat(); err != nil {
		return nil, errors.New("nobody reads the answers (this command is for edge-infer itself)")
	}
	return out, nil
}

// Serve runs work in the child with the request and payload from in. answer sends an answer and may be called from any goroutine. When the
// input ends, work's context is cancelled, and after the parent's grace period the process exits even if work hangs.
func Serve(
	ctx context.Context, in io.Reader, out io.Writer, request any,
	work func(ctx context.Context, payload []byte, answer func(answer any)) error,
) error {
	yieldMemory()
	reader := bufio.NewReader(in)
	head, payload, err := readRequest(reader)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(head.Request, request); err != nil {
		return fmt.Errorf("request: %w", err)
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	finished := make(chan struct{})
	defer close(finished)
	go func() {
		_, _ = io.Copy(io.Discard, reader)
		cancel(errors.New("the parent process closed the pipe"))
		select {
		case <-finished: // work finished first; without grace both channels may be ready
			return
		default:
		}
		select {
		case <-finished:
		case <-time.After(head.Grace):
			os.Exit(1)
		}
	}()
	answers := &answers{encoder: json.NewEncoder(out)}
	err = work(ctx, payload, answers.send)
	return errors.Join(err, answers.failed)
}

// yieldMemory makes the kernel's out-of-memory killer choose this process before its parent, which runs cameras.
func yieldMemory() {
	_ = os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0) // a process may always raise its own
}

// answers writes whole lines from several goroutines.
type answers struct {
	mu      sync.Mutex
	encoder *json.Encoder
	failed  error // first error
}

func (a *answers) send(answer any) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if err := a.encoder.Encode(answer); err != nil && a.failed == nil {
		a.failed = fmt.Errorf("answer: %w", err)
	}
}

func readRequest(reader *bufio.Reader) (head header, payload []byte, err error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return head, nil, fmt.Errorf("request: %w", err)
		}
		if len(line) > maxLine {
			return head, nil, fmt.Errorf("request: line longer than %d bytes", maxLine)
		}
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return head, nil, fmt.Errorf("request: %w", err)
	}
	if head.Payload < 0 || head.Payload > maxPayload {
		return head, nil, fmt.Errorf("request: payload of %d bytes", head.Payload)
	}
	var data bytes.Buffer // grows with the bytes received, not by the announced size
	if n, err := io.CopyN(&data, reader, head.Payload); err != nil {
		return head, nil, fmt.Errorf("request: %d of %d bytes of the payload: %w", n, head.Payload, err)
	}
	return head, data.Bytes(), nil
}
