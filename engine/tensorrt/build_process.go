package tensorrt

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/isolate"
)

// BuildProcess builds plans in a child process, which isolates this process from the out-of-memory killer, crashes of the library and
// memory leaked by builds. The child is this program with a hidden command that calls ServeBuild. The model follows the request on the
// pipe; progress and log lines come back, then a plan or an error. The plan itself is a file that is written atomically.
type BuildProcess struct {
	// Command is the program with its arguments, usually os.Executable() and "build-plan".
	Command []string
	// Environment is added to the environment of this process, for example CUDA_MODULE_LOADING=LAZY.
	Environment []string
}

// request is the parent's request.
type request struct {
	Options BuildOptions `json:"options"`
	// Output is the plan file to write; empty for the cache.
	Output string `json:"output,omitempty"`
	Cache  string `json:"cache,omitempty"`
	Debug  bool   `json:"debug,omitempty"`
}

// response is one line from the child; one field is set.
type response struct {
	Progress *Progress   `json:"progress,omitempty"`
	Log      *logLine    `json:"log,omitempty"`
	Plan     *BuiltPlan  `json:"plan,omitempty"`
	Error    *buildError `json:"error,omitempty"`
}

type logLine struct {
	Level   slog.Level `json:"level"`
	Message string     `json:"message"`
}

// buildError is an engine.Error in JSON.
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
	Path  string    `json:"path"`
	Facts PlanFacts `json:"facts"`
	Bytes int64     `json:"bytes"`
}

// stopGrace is the time for a build to stop before its process is killed; builds before TensorRT 9 cannot be cancelled.
const stopGrace = 5 * time.Second

// kindNames are the error kinds that cross the pipe.
var kindNames = [...]struct {
	name string
	kind error
}{
	{"unavailable", engine.ErrUnavailable},
	{"mismatch", engine.ErrPlanMismatch},
	{"unsupported", engine.ErrUnsupported},
	{"shape", engine.ErrShape},
}

// Build builds a plan in a child process and writes it to output, or into the cache if output is empty. progress may be nil and is called
// from Build's goroutine. Cancelling the context stops the child.
func (c BuildProcess) Build(
	ctx context.Context, options BuildOptions, output string, cache Cache, progress func(Progress),
) (*BuiltPlan, error) {
	r := request{Options: options, Output: output, Cache: cache.Dir}
	if options.Log != nil {
		r.Debug = options.Log.Enabled(ctx, slog.LevelDebug)
	}
	var plan *BuiltPlan
	var failed error
	process := isolate.Process{Program: c.Command, Environment: c.Environment, Grace: stopGrace}
	err := process.Run(ctx, r, options.Model, func(line json.RawMessage) {
		var a response
		switch err := json.Unmarshal(line, &a); {
		case err != nil:
			failed = fmt.Errorf("build process: %w in %.100q", err, line)
		case a.Progress != nil && progress != nil:
			progress(*a.Progress)
		case a.Log != nil && options.Log != nil:
			options.Log.Log(context.Background(), a.Log.Level, a.Log.Message, "source", "TensorRT")
		case a.Error != nil:
			failed = a.Error.unpack()
		case a.Plan != nil:
			plan = a.Plan
		}
	})
	switch {
	case plan != nil:
		return plan, nil
	case failed != nil:
		return nil, failed
	case ctx.Err() != nil:
		return nil, newError("build", nil, "", "cancelled: %v", context.Cause(ctx))
	}
	return nil, childError(err)
}

// childError returns the error of a child that exited without a plan or an error.
func childError(err error) error {
	e := &engine.Error{Op: "build", Backend: Name, Message: "the build process ended without a result"}
	death, died := errors.AsType[*isolate.Death](err)
	switch {
	case died && death.Signal == syscall.SIGKILL:
		e.Message = "the build process was killed, most likely because memory ran out"
		e.Hint = "close other programs, add swap, or lower --workspace, --batch or --opt-level"
	case died:
		e.Message = "the build " + death.Error()
	case err != nil:
		e.Message, e.Err = "build process", err
	}
	return e
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

// ServeBuild implements the hidden command: it reads one request of BuildProcess.Build from in and writes answers to out. It returns after
// the last answer; its error concerns the pipes only.
func ServeBuild(ctx context.Context, in io.Reader, out io.Writer) error {
	var r request
	return isolate.Serve(ctx, in, out, &r, func(ctx context.Context, model []byte, send func(any)) error {
		level := slog.LevelInfo
		if r.Debug {
			level = slog.LevelDebug
		}
		r.Options.Model, r.Options.Log = model, slog.New(&responseLog{send: send, level: level})
		plan, err := r.serve(ctx, func(p Progress) { send(response{Progress: &p}) })
		if err != nil {
			send(response{Error: pack(err)})
			return nil
		}
		send(response{Plan: plan})
		return nil
	})
}

func (r *request) serve(ctx context.Context, progress func(Progress)) (*BuiltPlan, error) {
	cache := Cache{Dir: r.Cache}
	dir, err := filepath.Dir(r.Output), error(nil)
	if r.Output == "" {
		r.Options.timingDir = &cache
		dir, err = cache.dir()
	}
	if err == nil {
		err = checkDir(dir) // before minutes of work
	}
	if err != nil {
		return nil, err
	}
	plan, err := Build(ctx, r.Options, progress)
	if err != nil {
		return nil, err
	}
	path := r.Output
	if path != "" {
		err = replaceFile(path, plan.File)
	} else {
		path, err = cache.Store(plan.Key, plan.File)
	}
	if err != nil {
		return nil, err
	}
	return &BuiltPlan{Path: path, Facts: plan.Facts, Bytes: int64(len(plan.File))}, nil
}

// responseLog sends log records over the pipe.
type responseLog struct {
	send  func(any)
	level slog.Level
}

func (l *responseLog) Enabled(_ context.Context, level slog.Level) bool { return level >= l.level }

func (l *responseLog) Handle(_ context.Context, r slog.Record) error {
	l.send(response{Log: &logLine{Level: r.Level, Message: r.Message}})
	return nil
}

func (l *responseLog) WithAttrs([]slog.Attr) slog.Handler { return l }
func (l *responseLog) WithGroup(string) slog.Handler      { return l }
