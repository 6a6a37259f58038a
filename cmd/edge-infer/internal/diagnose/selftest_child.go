package diagnose

import (
	"errors"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/progress"
	"github.com/edge-infer/edge-infer/engine"
)

// errAbsent is the error of a part that needs hardware or a program that this machine does not have.
var errAbsent = errors.New("absent")

// resultOf makes a check from the detail and the error of a part.
func resultOf(detail string, err error) Check {
	if err == nil {
		return ok("", "%s", detail)
	}
	c := fail("", "", "%v", err)
	if e := (*engine.Error)(nil); errors.As(err, &e) && e.Hint != "" {
		plain := *e
		plain.Hint = ""
		c.Detail = plain.Error()
		c.Remedy = e.Hint
	}
	if errors.Is(err, errAbsent) || errors.Is(err, engine.ErrUnavailable) {
		c.Status = Skip
		c.Detail = strings.TrimPrefix(c.Detail, errAbsent.Error()+": ")
	}
	return c
}

// steps returns a reporter that sends the notes of a longer task to the parent.
func (r *request) steps() progress.Reporter {
	return func(string) progress.Step { return noteStep{r.note} }
}

type noteStep struct{ note func(string) }

func (noteStep) Count(int, int)     {}
func (n noteStep) Note(text string) { n.note(text) }
func (noteStep) Close()             {}
