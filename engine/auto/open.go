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

// Choice is what the user asked for.
type Choice struct {
	// Engine is "auto" or empty for the first backend that runs the model, or the name of a backend, followed by "=address" where it needs
	// one and by "=provider" where it has several, as onnxruntime=cuda. What was named is never replaced by another.
	Engine string
	// Reason is why Engine is named; empty where a user asked for it.
	Reason string
	// Candidates is where to choose from; nil means Candidates().
	Candidates []Candidate
	// Yielding says that a plan which TensorRT lacks is built meanwhile: an engine that computes on the CPU then takes half of it, unless
	// options.Threads says otherwise. The builder needs CPUs too, and took three times as long without any.
	Yielding bool
}

// Open opens the model on the first backend that takes it. Refusals are logged as one short line, and each in full for who debugs;
// Model().Reason tells them too. The error, when none takes it, is an *engine.Error with what each lacks. A broken model file ends the
// search at once, because no backend would read it.
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
		// Joined errors are one a line.
		reasons = append(reasons, c.Title+" refused: "+strings.ReplaceAll(err.Error(), "\n", ", "))
	}
	return nil, none(refused, candidates)
}

// none says in a few words what each backend lacks.
func none(refused []error, candidates []Candidate) error {
	var titles, reasons []string
	for i, err := range refused {
		reason, most := err.Error(), longest
		if known, ok := errors.AsType[*engine.Error](err); ok && known.Message != "" {
			reason = known.Message
			if known.Err != nil && errors.Is(known.Kind, engine.ErrUnsupported) { // the backend is there, and says what is wrong with the model
				reason += ": " + known.Err.Error()
				most = 3 * longest
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
		Hint: remedy(refused) + "edge-infer devices says what is missing and where it was looked for",
	}
}

// remedy is the first clause of what the last of them advises: the last one asks for the least, and a machine with nothing
// needs to be told of that one only. Empty when it advises nothing.
func remedy(refused []error) string {
	if known, ok := errors.AsType[*engine.Error](refused[len(refused)-1]); ok && known.Hint != "" {
		return clause(known.Hint) + "; "
	}
	return ""
}

// longest is how much of a backend's words an error tells, in characters.
const longest = 120

func shorten(text string, most int) string {
	if runes := []rune(text); len(runes) > most {
		return string(runes[:most]) + " ..."
	}
	return text
}

// gist is the first clause of an error, without where it was looked for and what to do.
func gist(err error) string {
	text := err.Error()
	if known, ok := errors.AsType[*engine.Error](err); ok && known.Message != "" {
		text = known.Message
	}
	return clause(text)
}

// clause is text up to its first mark.
func clause(text string) string {
	if end := strings.IndexAny(text, ",:;(\n"); end > 0 {
		text = text[:end]
	}
	return strings.TrimSpace(text)
}

// candidates returns those that the choice allows, in their order.
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

// Remote reports whether the choice is a backend to which the model's file says nothing: it has the model already.
func (c Choice) Remote() bool {
	candidates, _, err := c.candidates(engine.Options{})
	return err == nil && !slices.ContainsFunc(candidates, func(c Candidate) bool { return !c.Remote })
}

func (c Choice) automatic() bool {
	name, _, _ := strings.Cut(c.Engine, "=")
	return name == "" || name == "auto"
}

// shared is the kind that all refusals have in common, nil when there is none.
func shared(refused []error) error {
	for _, kind := range []error{engine.ErrUnavailable, engine.ErrUnsupported} {
		if !slices.ContainsFunc(refused, func(err error) bool { return !errors.Is(err, kind) }) {
			return kind
		}
	}
	return nil
}

// reason puts the choice in one sentence.
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

// Unwrap gives the backend's own engine for one that Open returned, for what only that backend can do.
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
