package auto

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"slices"
	"strings"

	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// Choice is the user's choice of a backend.
type Choice struct {
	// Engine is "auto" or empty for the first backend that runs the model, or the name of a backend, followed by "=address" or "=provider"
	// (onnxruntime=cuda) if it has several. A named backend is never replaced by another.
	Engine string
	// Reason explains why Engine is set; empty if the user set it.
	Reason string
	// Candidates are the backends to choose from; nil means Candidates().
	Candidates []Candidate
	// Yielding is set while a missing TensorRT plan is built: an engine that computes on the CPU then uses half of the CPUs, unless
	// options.Threads is set, because the builder took three times as long without any.
	Yielding bool
}

// Open opens the model on the first backend that accepts it. Refusals are logged in one line, with details at debug level, and are part of
// Model().Reason. If every backend refuses, the error is an *engine.Error with all reasons. An invalid model file ends the search at once,
// because no backend could read it.
func Open(ctx context.Context, options engine.Options, choice Choice, logger *slog.Logger) (engine.Engine, error) {
	candidates, address, err := choice.candidates(options)
	if err != nil {
		return nil, err
	}
	var refused []error
	var reasons, short []string
	for _, c := range candidates {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		e, err := c.Open(ctx, address, options, logger)
		if err == nil {
			if len(short) > 0 {
				logger.Info("engine chosen", "engine", c.Title, "refused", strings.Join(short, ", "))
			}
			return &chosen{Engine: e, reason: reason(choice, c, candidates, reasons)}, nil
		}
		if known, ok := errors.AsType[*engine.Error](err); ok && known.Op == "model" {
			return nil, err
		}
		if len(candidates) == 1 {
			return nil, err
		}
		logger.Debug("engine refused", "engine", c.Title, "reason", err)
		if choice.Yielding && options.Threads == 0 && errors.Is(err, tensorrt.ErrNoPlan) {
			options.Threads = max(1, runtime.NumCPU()/2)
			logger.Info("half of the CPUs is left to building the plan", "threads", options.Threads)
		}
		refused = append(refused, err)
		short = append(short, c.Title+" ("+gist(err)+")")
		// errors.Join separates errors by line breaks.
		reasons = append(reasons, c.Title+" refused: "+strings.ReplaceAll(err.Error(), "\n", ", "))
	}
	return nil, none(refused, candidates)
}

// none returns the error that lists briefly why each backend refused.
func none(refused []error, candidates []Candidate) error {
	var titles, reasons []string
	for i, err := range refused {
		reason, most := err.Error(), maxReason
		if known, ok := errors.AsType[*engine.Error](err); ok && known.Message != "" {
			reason = known.Message
			if known.Err != nil && errors.Is(known.Kind, engine.ErrUnsupported) { // the backend works; the model is the problem
				reason += ": " + known.Err.Error()
				most = 3 * maxReason
			}
		}
		reason = shorten(strings.Join(strings.Fields(reason), " "), most)
		if at := slices.Index(reasons, reason); at >= 0 {
			titles[at] += " and " + candidates[i].Title
			continue
		}
		titles, reasons = append(titles, candidates[i].Title), append(reasons, reason)
	}
	for i := range reasons {
		reasons[i] = titles[i] + ": " + reasons[i]
	}
	return &engine.Error{
		Op: "open", Backend: "engine", Kind: shared(refused), Message: "no backend runs the model: " + strings.Join(reasons, "; "),
		Hint: remedy(refused) + "edge-infer devices lists what is missing and where it was searched",
	}
}

// remedy returns the first clause of the last hint, or "". The last candidate needs the least, so its hint is the one that helps on a
// machine without any backend.
func remedy(refused []error) string {
	if known, ok := errors.AsType[*engine.Error](refused[len(refused)-1]); ok && known.Hint != "" {
		return clause(known.Hint) + "; "
	}
	return ""
}

// maxReason limits a backend's reason in an error, in characters.
const maxReason = 120

func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " ..."
	}
	return text
}

// gist returns the first clause of an error, without paths and hints.
func gist(err error) string {
	text := err.Error()
	if known, ok := errors.AsType[*engine.Error](err); ok && known.Message != "" {
		text = known.Message
	}
	return clause(text)
}

// clause returns text up to its first punctuation mark.
func clause(text string) string {
	if end := strings.IndexAny(text, ",:;(\n"); end > 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}

// candidates returns the candidates that the choice allows, in order.
func (c Choice) candidates(options engine.Options) (allowed []Candidate, address string, err error) {
	all := c.Candidates
	if all == nil {
		all = Candidates()
	}
	name, address, addressed := strings.Cut(c.Engine, "=")
	automatic := c.automatic()
	known := []string{"auto"}
	named := false
	for _, candidate := range all {
		if !slices.Contains(known, candidate.Engine) {
			known = append(known, candidate.Engine)
		}
		if automatic && candidate.Explicit || !automatic && candidate.Engine != name {
			continue
		}
		named = true
		provider := options.Provider
		if addressed && candidate.Provider != "" {
			provider = engine.Provider(address)
		}
		if provider == "" || candidate.Provider == "" || candidate.Provider == provider {
			allowed = append(allowed, candidate)
		}
	}
	switch {
	case !named || automatic && addressed:
		err = &engine.Error{
			Op: "open", Backend: "engine", Kind: engine.ErrUnsupported, Message: fmt.Sprintf("%q is no engine", c.Engine),
			Hint: "use " + strings.Join(known, ", "),
		}
	case automatic && options.Library != "":
		err = &engine.Error{
			Op: "open", Backend: "engine", Kind: engine.ErrUnsupported,
			Message: fmt.Sprintf("library %s is named, but not the engine it belongs to", options.Library),
			Hint:    "name the engine as well: " + strings.Join(known[1:], ", "),
		}
	case len(allowed) == 0:
		err = &engine.Error{
			Op: "open", Backend: "engine", Kind: engine.ErrUnsupported,
			Message: fmt.Sprintf("no engine has the provider %q", cmp.Or(address, string(options.Provider))),
			Hint:    fmt.Sprintf("use %s or %s", engine.CPU, engine.CUDA),
		}
	}
	return allowed, address, err
}

// Remote reports whether the chosen backend has the model already, so that no model file is needed.
func (c Choice) Remote() bool {
	candidates, _, err := c.candidates(engine.Options{})
	return err == nil && !slices.ContainsFunc(candidates, func(c Candidate) bool { return !c.Remote })
}

func (c Choice) automatic() bool {
	name, _, _ := strings.Cut(c.Engine, "=")
	return name == "" || name == "auto"
}

// shared returns the error kind that all refusals have in common, or nil.
func shared(refused []error) error {
	for _, kind := range []error{engine.ErrUnavailable, engine.ErrUnsupported} {
		if !slices.ContainsFunc(refused, func(err error) bool { return !errors.Is(err, kind) }) {
			return kind
		}
	}
	return nil
}

// reason explains the choice in one sentence.
func reason(choice Choice, c Candidate, candidates []Candidate, refused []string) string {
	switch {
	case !choice.automatic() && choice.Reason != "":
		return strings.Join(append([]string{c.Title + " " + choice.Reason}, refused...), "; ")
	case !choice.automatic():
		return strings.Join(append([]string{c.Title + " was asked for"}, refused...), "; ")
	case len(refused) == 0 && len(candidates) > 1:
		return c.Title + " is the first choice and works"
	}
	return strings.Join(append([]string{c.Title + " works"}, refused...), "; ")
}

// chosen adds the reason to the engine's model.
type chosen struct {
	engine.Engine
	reason string
}

// Unwrap returns the backend's engine behind an engine returned by Open, for backend-specific methods.
func Unwrap(e engine.Engine) engine.Engine {
	if c, ok := e.(*chosen); ok {
		return c.Engine
	}
	return e
}

// Model implements engine.Engine.
func (c *chosen) Model() engine.Model {
	m := c.Engine.Model()
	m.Reason = c.reason
	return m
}
