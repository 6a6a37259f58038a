package tensorrt

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/engine"
)

// Child builds plans in a process of its own, so that the kernel's out-of-memory killer, a crash of the library and the memory that a build
// leaves behind do not reach this one. The process is this program with a hidden command that calls ServeBuild.
//
// The protocol: the parent writes one JSON line, the request, and the model's bytes to the child's standard input and keeps it open; its
// end tells the child to stop. The child answers with JSON lines on standard output: progress and log lines while it works, then a plan or
// an error. The plan itself is a file, written in one step.
type Child struct {
	// Command is the program and its arguments, as a rule os.Executable() and "build-plan".
	Command []string
	// Environment is added to this process' own, for example CUDA_MODULE_LOADING=LAZY.
	Environment []string
}

// request is what the parent asks for.
type request struct {
	Options BuildOptions `json:"options"`
	Bytes   int64        `json:"model_bytes"`
	// Output is the plan file to write; empty for the cache.
	Output string `json:"output,omitempty"`
	Cache  string `json:"cache,omitempty"`
	Debug  bool   `json:"debug,omitempty"`
}

// answer is one line of the child; one field is set.
type answer struct {
	Progress *Progress   `json:"progress,omitempty"`
	Log      *logLine    `json:"log,omitempty"`
	Plan     *planAnswer `json:"plan,omitempty"`
	Error    *buildError `json:"error,omitempty"`
}

type logLine struct {
	Level   slog.Level `json:"level"`
	Message string     `json:"message"`
}

type planAnswer struct {
	Path  string    `json:"path"`
	Facts PlanFacts `json:"facts"`
	Bytes int64     `json:"bytes"`
}

// buildError carries an engine.Error over the pipe.
type buildError struct {
	Op      string `json:"op"`
	Backend string `json:"backend"`
	Code    int    `json:"code,omitempty"`
	Kind    string `json:"kind,omitempty"`
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

// BuiltPlan is a plan on disk.
type BuiltPlan struct {
	Path  string
	Facts PlanFacts
	Bytes int64
}

const (
	maxLine    = 16 << 20
	maxModel   = 4 << 30
	stderrTail = 4 << 10
	stopGrace  = 5 * time.Second // from the request to stop until the child is killed
)

// kindNames are the errors that a caller of Child.Build can decide by.
var kindNames = [...]struct {
	name string
	kind error
}{
	{"unavailable", engine.ErrUnavailable},
	{"mismatch", engine.ErrPlanMismatch},
	{"unsupported", engine.ErrUnsupported},
	{"shape", engine.ErrShape},
}

// Build builds a plan in a child process. The plan goes to output, or into the cache when output is empty; progress may be nil and is
// called from Build's goroutine. Cancelling the context stops the child.
func (c Child) Build(ctx context.Context, options BuildOptions, output string, cache Cache, progress func(Progress)) (*BuiltPlan, error) {
	r := request{Options: options, Bytes: int64(len(options.Model)), Output: output, Cache: cache.Folder}
	if options.Log != nil {
		r.Debug = options.Log.Enabled(ctx, slog.LevelDebug)
	}
	head, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	command := exec.CommandContext(ctx, c.Command[0], c.Command[1:]...)
	command.Env = append(os.Environ(), c.Environment...)
	command.WaitDelay = stopGrace
	stderr := &tail{}
	command.Stderr = stderr
	stdin, err := command.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("build process: %w", err)
	}
	// Not exec's own kill: the end of its input lets the child remove what it has written so far.
	command.Cancel = stdin.Close
	stdout, err := command.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("build process: %w", err)
	}
	if err := command.Start(); err != nil {
		return nil, &engine.Error{Op: "build", Backend: Name, Message: "build process", Err: err}
	}
	go func() {
		// A child that ends early closes the pipe; what it said is the better error.
		_, _ = stdin.Write(append(head, '\n'))
		_, _ = stdin.Write(options.Model)
	}()
	plan, answered := readAnswers(stdout, options.Log, progress)
	if answered != nil && plan == nil && !errors.Is(answered, errNoAnswer) {
		cancel() // the rest of its output is not wanted
	}
	_ = stdin.Close() // the child may go: it has answered or ended
	waited := command.Wait()
	if plan != nil {
		return plan, nil
	}
	if parent := context.Cause(ctx); parent != nil && errors.Is(answered, errNoAnswer) {
		return nil, refuse("build", nil, "", "cancelled: %v", parent)
	}
	if errors.Is(answered, errNoAnswer) {
		return nil, ended(waited, stderr.String())
	}
	return nil, answered
}

// errNoAnswer is a child's output that ends without a plan or an error.
var errNoAnswer = errors.New("the build process ended without an answer")

// ended explains a child that died.
func ended(waited error, stderr string) error {
	e := &engine.Error{Op: "build", Backend: Name, Message: errNoAnswer.Error(), Err: waited}
	var exit *exec.ExitError
	if errors.As(waited, &exit) {
		if status, ok := exit.Sys().(syscall.WaitStatus); ok && status.Signaled() && status.Signal() == syscall.SIGKILL {
			e.Message = "the build process was killed, most likely because memory ran out"
			e.Hint = "close other programs, add swap, or lower --workspace, --batch or --opt-level"
			e.Err = nil
			return e
		}
	}
	if stderr != "" {
		e.Hint = "its last words: " + stderr
	}
	return e
}

// readAnswers reads the child's lines up to a plan or an error.
func readAnswers(from io.Reader, log *slog.Logger, progress func(Progress)) (*BuiltPlan, error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var a answer
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return nil, fmt.Errorf("build process: %w in %.100q", err, lines.Bytes())
		}
		switch {
		case a.Progress != nil && progress != nil:
			progress(*a.Progress)
		case a.Log != nil && log != nil:
			log.Log(context.Background(), a.Log.Level, a.Log.Message, "source", "TensorRT")
		case a.Error != nil:
			return nil, a.Error.unpack()
		case a.Plan != nil:
			return &BuiltPlan{Path: a.Plan.Path, Facts: a.Plan.Facts, Bytes: a.Plan.Bytes}, nil
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("build process: %w", err)
	}
	return nil, errNoAnswer
}

func pack(err error) *buildError {
	var e *engine.Error
	if !errors.As(err, &e) {
		return &buildError{Op: "build", Backend: Name, Message: err.Error()}
	}
	packed := &buildError{Op: e.Op, Backend: e.Backend, Code: e.Code, Message: e.Message, Hint: e.Hint}
	if e.Err != nil {
		packed.Message = strings.TrimPrefix(packed.Message+": "+e.Err.Error(), ": ")
	}
	for _, k := range kindNames {
		if errors.Is(e, k.kind) {
			packed.Kind = k.name
		}
	}
	return packed
}

func (b *buildError) unpack() error {
	e := &engine.Error{Op: b.Op, Backend: b.Backend, Code: b.Code, Message: b.Message, Hint: b.Hint}
	for _, k := range kindNames {
		if b.Kind == k.name {
			e.Kind = k.kind
		}
	}
	return e
}

// tail keeps the end of what is written.
type tail struct {
	mu   sync.Mutex
	text []byte
}

func (t *tail) Write(p []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.text = append(t.text, p...)
	if extra := len(t.text) - stderrTail; extra > 0 {
		t.text = append(t.text[:0], t.text[extra:]...)
	}
	return len(p), nil
}

func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	return strings.TrimSpace(string(t.text))
}

// ServeBuild is the body of the hidden command: it serves one request of Child.Build from in and writes answers to out. It returns after
// the answer; the error is only about the pipes. A build that cannot be stopped, as before TensorRT 9, ends with the process.
func ServeBuild(ctx context.Context, in io.Reader, out io.Writer) error {
	answers := &answerWriter{out: out}
	reader := bufio.NewReaderSize(in, 1<<20)
	r, err := readRequest(reader)
	if err != nil {
		return errors.Join(err, answers.write(answer{Error: pack(err)}))
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	go func() { // the parent's end, or its wish to stop
		_, _ = reader.ReadByte()
		cancel(errors.New("the parent process closed the pipe"))
	}()
	level := slog.LevelInfo
	if r.Debug {
		level = slog.LevelDebug
	}
	r.Options.Log = slog.New(&answerLog{answers: answers, level: level})

	done := make(chan answer, 1)
	go func() { done <- r.serve(ctx, answers) }()
	select {
	case a := <-done:
		return answers.write(a)
	case <-ctx.Done():
	}
	select {
	case a := <-done:
		return answers.write(a)
	case <-time.After(stopGrace / 2):
		return answers.write(answer{Error: pack(refuse("build", nil, "", "cancelled: %v", context.Cause(ctx)))})
	}
}

func (r *request) serve(ctx context.Context, answers *answerWriter) answer {
	cache := Cache{Folder: r.Cache}
	folder, err := filepath.Dir(r.Output), error(nil)
	if r.Output == "" {
		r.Options.timings = &cache
		folder, err = cache.folder()
	}
	if err == nil {
		err = checkFolder(folder) // before minutes of work
	}
	if err != nil {
		return answer{Error: pack(err)}
	}
	plan, err := Build(ctx, r.Options, func(p Progress) {
		if answers.write(answer{Progress: &p}) != nil {
			return // the parent is gone; the end of the input stops the build
		}
	})
	if err != nil {
		return answer{Error: pack(err)}
	}
	path := r.Output
	if path != "" {
		err = replaceFile(path, plan.File)
	} else {
		path, err = cache.Store(plan.Key, plan.File)
	}
	if err != nil {
		return answer{Error: pack(err)}
	}
	return answer{Plan: &planAnswer{Path: path, Facts: plan.Facts, Bytes: int64(len(plan.File))}}
}

// readRequest reads the request line and the model.
func readRequest(reader *bufio.Reader) (*request, error) {
	var line []byte
	for {
		part, err := reader.ReadSlice('\n')
		line = append(line, part...)
		if err == nil {
			break
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return nil, fmt.Errorf("build request: %w", err)
		}
		if len(line) > maxLine {
			return nil, fmt.Errorf("build request: line longer than %d bytes", maxLine)
		}
	}
	var r request
	if err := json.Unmarshal(line, &r); err != nil {
		return nil, fmt.Errorf("build request: %w", err)
	}
	if r.Bytes < 0 || r.Bytes > maxModel {
		return nil, fmt.Errorf("build request: model of %d bytes", r.Bytes)
	}
	var model bytes.Buffer // grows with what arrives, whatever the request claims
	if n, err := io.CopyN(&model, reader, r.Bytes); err != nil {
		return nil, fmt.Errorf("build request: %d of %d bytes of the model: %w", n, r.Bytes, err)
	}
	r.Options.Model = model.Bytes()
	return &r, nil
}

// answerWriter writes whole lines from several goroutines.
type answerWriter struct {
	mu  sync.Mutex
	out io.Writer
}

func (w *answerWriter) write(a answer) error {
	line, err := json.Marshal(a)
	if err != nil {
		return fmt.Errorf("build answer: %w", err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	_, err = w.out.Write(append(line, '\n'))
	return err
}

// answerLog sends log records over the pipe.
type answerLog struct {
	answers *answerWriter
	level   slog.Level
}

func (l *answerLog) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }

func (l *answerLog) Handle(_ context.Context, r slog.Record) error {
	return l.answers.write(answer{Log: &logLine{Level: r.Level, Message: r.Message}})
}

func (l *answerLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *answerLog) WithGroup(string) slog.Handler      { return l }
