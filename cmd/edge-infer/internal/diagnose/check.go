// Package diagnose examines a machine and a configuration: the commands doctor, selftest, devices and config check, the preflight check of
// a reload, and the support bundle. Drivers, libraries, cameras and networks, which may crash or hang, are examined in child processes.
package diagnose

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is the result of a check.
type Status string

// A FAIL keeps edge-infer from doing what its configuration requires; a WARN does not. A check is skipped if the hardware or a program that
// it needs is absent.
const (
	OK   Status = "OK"
	Warn Status = "WARN"
	Fail Status = "FAIL"
	Skip Status = "SKIP"
)

// Check is one check of doctor or selftest and its result.
type Check struct {
	Name    string  `json:"check"`
	Status  Status  `json:"status"`
	Detail  string  `json:"detail"`
	Remedy  string  `json:"fix,omitempty"`
	Seconds float64 `json:"seconds,omitempty"` // duration, in selftest only
}

func ok(name, format string, arguments ...any) Check {
	return Check{Name: name, Status: OK, Detail: fmt.Sprintf(format, arguments...)}
}

func warn(name, remedy, format string, arguments ...any) Check {
	return Check{Name: name, Status: Warn, Detail: fmt.Sprintf(format, arguments...), Remedy: remedy}
}

func fail(name, remedy, format string, arguments ...any) Check {
	return Check{Name: name, Status: Fail, Detail: fmt.Sprintf(format, arguments...), Remedy: remedy}
}

func skip(name, format string, arguments ...any) Check {
	return Check{Name: name, Status: Skip, Detail: fmt.Sprintf(format, arguments...)}
}

// failIf makes a check a failure if failed is set, else a warning.
func failIf(failed bool, c Check) Check {
	c.Status = Warn
	if failed {
		c.Status = Fail
	}
	return c
}

// Print writes a check as a line of text, and the remedy as another one.
func (c Check) Print(out io.Writer) error {
	text := fmt.Sprintf("%-4s  %-16s  %s", c.Status, c.Name, oneLine(c.Detail))
	if c.Seconds >= 1 {
		text += fmt.Sprintf("  (%v)", time.Duration(c.Seconds*float64(time.Second)).Round(time.Second))
	}
	text += "\n"
	if c.Remedy != "" {
		text += fmt.Sprintf("%-24sfix: %s\n", "", oneLine(c.Remedy))
	}
	_, err := io.WriteString(out, text)
	return err
}

func oneLine(text string) string {
	return strings.Join(strings.FieldsFunc(text, func(r rune) bool { return r == '\n' || r == '\r' }), "; ")
}

// Checks holds the checks of one run of doctor or selftest.
type Checks []Check

// Count returns the number of checks with a status.
func (all Checks) Count(status Status) int {
	n := 0
	for i := range all {
		if all[i].Status == status {
			n++
		}
	}
	return n
}

// Summary returns the numbers of checks by status, in words.
func (all Checks) Summary() string {
	return fmt.Sprintf("%d ok, %d warnings, %d failed, %d skipped", all.Count(OK), all.Count(Warn), all.Count(Fail), all.Count(Skip))
}

// Encode writes the checks as one JSON document.
func (all Checks) Encode(out io.Writer) error {
	return json.NewEncoder(out).Encode(map[string]any{"v": 1, "failed": all.Count(Fail), "skipped": all.Count(Skip), "checks": all})
}

// collector keeps checks in order and passes each on as soon as it is complete.
type collector struct {
	checks Checks
	each   func(Check)
}

func (c *collector) add(checks ...Check) {
	for _, check := range checks {
		c.checks = append(c.checks, check)
		c.each(check)
	}
}
