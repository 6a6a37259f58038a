// Package selftest tries on its owner's machine what the hardware tests try: libraries, kernels, graphs, memory, the network in each
// precision, decoder, camera, sensors and the service's rules. What may crash or hang is tried in a process of its own, one for each part.
package selftest

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"
)

// Status is how a part went.
type Status string

// A part that is Absent could not be tried, for a reason that is told: the hardware or a program is not there.
const (
	OK     Status = "ok"
	Warn   Status = "warning"
	Failed Status = "failed"
	Absent Status = "not here"
)

// Result is what one part came to.
type Result struct {
	Part    string  `json:"part"`
	Status  Status  `json:"status"`
	Detail  string  `json:"detail"`
	Fix     string  `json:"fix,omitempty"` // what to do
	Seconds float64 `json:"seconds"`
}

func ok(format string, arguments ...any) Result {
	return Result{Status: OK, Detail: fmt.Sprintf(format, arguments...)}
}

func failed(format string, arguments ...any) Result {
	return Result{Status: Failed, Detail: fmt.Sprintf(format, arguments...)}
}

func absent(format string, arguments ...any) Result {
	return Result{Status: Absent, Detail: fmt.Sprintf(format, arguments...)}
}

// Print writes a result for people: a line, and one more for what to do.
func (r *Result) Print(out io.Writer) error {
	line := fmt.Sprintf("%-8s  %-24s  %s", r.Status, r.Part, strings.Join(strings.Fields(r.Detail), " "))
	if r.Seconds >= 1 {
		line += fmt.Sprintf("  (%v)", time.Duration(r.Seconds*float64(time.Second)).Round(time.Second))
	}
	if r.Fix != "" {
		line += fmt.Sprintf("\n%36sfix: %s", "", strings.Join(strings.Fields(r.Fix), " "))
	}
	_, err := fmt.Fprintln(out, line)
	return err
}

// Results are all of a self-test.
type Results []Result

// Count counts those of a status.
func (all Results) Count(status Status) int {
	n := 0
	for i := range all {
		if all[i].Status == status {
			n++
		}
	}
	return n
}

// String sums up.
func (all Results) String() string {
	return fmt.Sprintf("%d ok, %d warnings, %d failed, %d not here", all.Count(OK), all.Count(Warn), all.Count(Failed), all.Count(Absent))
}

// Encode writes the results as one JSON document.
func (all Results) Encode(out io.Writer) error {
	return json.NewEncoder(out).Encode(map[string]any{"v": 1, "failed": all.Count(Failed), "not_here": all.Count(Absent), "parts": all})
}
