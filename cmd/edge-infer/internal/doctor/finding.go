// Package doctor looks for what keeps edge-infer from working on a machine, and says what to do about it. What may crash or hang, a driver,
// a library, a camera, is looked at in a child process.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// Status is how much a finding matters.
type Status string

// A FAIL keeps edge-infer from doing what its configuration asks for; a WARN does not, or not now.
const (
	OK   Status = "OK"
	Warn Status = "WARN"
	Fail Status = "FAIL"
)

// Finding is what one check came to.
type Finding struct {
	Check  string `json:"check"`
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"` // what to do; empty when all is well
}

func ok(check, format string, arguments ...any) Finding {
	return Finding{Check: check, Status: OK, Detail: fmt.Sprintf(format, arguments...)}
}

func warn(check, fix, format string, arguments ...any) Finding {
	return Finding{Check: check, Status: Warn, Detail: fmt.Sprintf(format, arguments...), Fix: fix}
}

func fail(check, fix, format string, arguments ...any) Finding {
	return Finding{Check: check, Status: Fail, Detail: fmt.Sprintf(format, arguments...), Fix: fix}
}

// worse makes a finding a failure when that holds, a warning otherwise.
func worse(failed bool, f Finding) Finding {
	f.Status = Warn
	if failed {
		f.Status = Fail
	}
	return f
}

// Print writes a finding for people: one line, and one more for what to do.
func (f Finding) Print(out io.Writer) error {
	text := fmt.Sprintf("%-4s  %-16s  %s\n", f.Status, f.Check, oneLine(f.Detail))
	if f.Fix != "" {
		text += fmt.Sprintf("%-24sfix: %s\n", "", oneLine(f.Fix))
	}
	_, err := io.WriteString(out, text)
	return err
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// Findings are all of one examination.
type Findings []Finding

// Failed counts those that are failures.
func (all Findings) Failed() int {
	failed := 0
	for _, f := range all {
		if f.Status == Fail {
			failed++
		}
	}
	return failed
}

// Encode writes the findings as one JSON document.
func (all Findings) Encode(out io.Writer) error {
	return json.NewEncoder(out).Encode(map[string]any{"v": 1, "failed": all.Failed(), "checks": all})
}
