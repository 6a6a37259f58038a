package bench

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Requirement is a bound on a figure of the runs in its scope.
type Requirement struct {
	Text   string // as given
	figure *figure
	scope  []string // batches, parts, drives, engines or precisions; all must match
	above  bool     // lower bound, else upper bound
	strict bool     // the bound itself is excluded
	bound  float64
}

// figureUnit is the unit of a bound.
type figureUnit int

const (
	number figureUnit = iota
	duration
	size
)

// figure is a figure that can be required. read returns false if a run does not have it.
type figure struct {
	name string
	unit figureUnit // milliseconds for durations, bytes for sizes
	read func(r *Result) (value float64, known bool)
}

func always(read func(r *Result) float64) func(*Result) (float64, bool) {
	return func(r *Result) (float64, bool) { return read(r), true }
}

func optional(read func(r *Result) *float64) func(*Result) (float64, bool) {
	return func(r *Result) (float64, bool) {
		if v := read(r); v != nil {
			return *v, true
		}
		return 0, false
	}
}

var figures = []figure{
	{"mean", duration, always(func(r *Result) float64 { return r.Mean })},
	{"p50", duration, always(func(r *Result) float64 { return r.P50 })},
	{"p90", duration, always(func(r *Result) float64 { return r.P90 })},
	{"p95", duration, always(func(r *Result) float64 { return r.P95 })},
	{"p99", duration, always(func(r *Result) float64 { return r.P99 })},
	{"p99.9", duration, always(func(r *Result) float64 { return r.P999 })},
	{"max", duration, always(func(r *Result) float64 { return r.Max })},
	{"throughput", number, always(func(r *Result) float64 { return r.FPS })},
	{"cpu", duration, always(func(r *Result) float64 { return r.CPU / 1e3 })},
	{"memory", size, always(func(r *Result) float64 { return float64(r.Memory) })},
	{"gpu-memory", size, func(r *Result) (float64, bool) {
		if r.GPUMemory == nil {
			return 0, false
		}
		return float64(*r.GPUMemory), true
	}},
	{"allocations", number, always(func(r *Result) float64 { return r.Allocations })},
	{"lost", number, always(func(r *Result) float64 { return float64(r.Lost) })},
	{"late", number, always(func(r *Result) float64 { return float64(r.Skipped) })},
	{"watts", number, optional(func(r *Result) *float64 { return r.Watts })},
	{"temperature", number, optional(func(r *Result) *float64 { return r.Temperature })},
	{"fairness", number, optional(func(r *Result) *float64 { return r.Fairness })},
	{"others", number, optional(func(r *Result) *float64 { return r.Others })},
	{"agreement", number, func(r *Result) (float64, bool) {
		if r.Agreement == nil || r.Agreement.Rate == nil {
			return 0, false
		}
		return *r.Agreement.Rate, true
	}},
	{"speed-up", number, func(r *Result) (float64, bool) { return r.SpeedUp, r.SpeedUp != 0 }},
}

// figureNames returns the names of the figures.
func figureNames() (names []string) {
	for _, f := range figures {
		names = append(names, f.name)
	}
	return names
}

// ParseRequirements parses requirements separated by commas, like p99<=1ms,throughput>=10000,memory<=512MiB.
func ParseRequirements(text string) (all []Requirement, err error) {
	for part := range strings.SplitSeq(text, ",") {
		r, err := parseRequirement(strings.TrimSpace(part))
		if err != nil {
			return nil, fmt.Errorf("%q: %w", strings.TrimSpace(part), err)
		}
		all = append(all, r)
	}
	return all, nil
}

func parseRequirement(text string) (Requirement, error) {
	r := Requirement{Text: text}
	at := strings.IndexAny(text, "<>=")
	if at < 0 {
		return r, errors.New("needs a bound, as in p99<=1ms")
	}
	name, rest := text[:at], text[at:]
	switch {
	case strings.HasPrefix(rest, "<="), strings.HasPrefix(rest, ">="):
		r.above, rest = rest[0] == '>', rest[2:]
	case rest[0] != '=':
		r.above, r.strict, rest = rest[0] == '>', true, rest[1:]
	default:
		return r, errors.New("must use <=, >=, < or >")
	}
	words := strings.Split(strings.TrimSpace(name), "@")
	for i := range figures {
		if figures[i].name == words[0] {
			r.figure = &figures[i]
		}
	}
	if r.figure == nil {
		return r, fmt.Errorf("unknown figure (one of %s)", strings.Join(figureNames(), ", "))
	}
	if r.scope = words[1:]; slices.Contains(r.scope, "") {
		return r, errors.New("needs a name after @ (a batch, what is measured, a drive, an engine or a precision)")
	}
	var err error
	r.bound, err = r.figure.unit.parse(strings.TrimSpace(rest))
	return r, err
}

var sizes = []struct {
	name  string
	bytes float64
}{
	{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"kB", 1e3}, {"MB", 1e6}, {"GB", 1e9}, {"B", 1},
}

func (u figureUnit) parse(text string) (float64, error) {
	switch u {
	case duration:
		d, err := time.ParseDuration(text)
		if err != nil || d < 0 {
			return 0, errors.New("the bound must be a time with its unit, as in 1ms or 250us")
		}
		return float64(d) / float64(time.Millisecond), nil
	case size:
		for _, s := range sizes {
			if digits, found := strings.CutSuffix(text, s.name); found {
				v, err := positive(digits)
				if err != nil {
					break
				}
				return v * s.bytes, nil
			}
		}
		return 0, errors.New("the bound must be a size with its unit, as in 512MiB or 2GB")
	}
	return positive(text)
}

// positive parses a number without sign and exponent.
func positive(text string) (float64, error) {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "0123456789.") != "" || math.IsInf(v, 0) {
		return 0, errors.New("the bound must be a number without a unit, as in 10000 or 0.98")
	}
	return v, nil
}

func (u figureUnit) show(v float64) string {
	switch u {
	case duration:
		return time.Duration(v * float64(time.Millisecond)).Round(100 * time.Nanosecond).String()
	case size:
		return fmt.Sprintf("%.1f MiB", v/(1<<20))
	}
	return strconv.FormatFloat(v, 'f', -1, 64)
}

// applies reports whether a run is in the scope of the requirement.
func (r *Requirement) applies(run *Result) bool {
	for _, word := range r.scope {
		switch word {
		case strconv.Itoa(run.Batch), string(run.What), string(run.Drive), run.Engine, run.Backend, string(run.Precision):
		default:
			return false
		}
	}
	return true
}

func (r *Requirement) met(value float64) bool {
	switch {
	case math.IsNaN(value):
		return false
	case r.above && r.strict:
		return value > r.bound
	case r.above:
		return value >= r.bound
	case r.strict:
		return value < r.bound
	}
	return value <= r.bound
}

// Judge returns a line for each run that misses a requirement and for each requirement that applies to no run; nil if all are met.
func Judge(all []Requirement, report *Report) (missed []string) {
	for i := range all {
		r, runs := &all[i], 0
		for j := range report.Results {
			run := &report.Results[j]
			if !r.applies(run) {
				continue
			}
			runs++
			value, known := r.figure.read(run)
			switch {
			case !known:
				missed = append(missed, fmt.Sprintf("missed: %s: not measured (%s)", r.Text, run.Name()))
			case !r.met(value):
				missed = append(missed, fmt.Sprintf("missed: %s: %s (%s)", r.Text, r.figure.unit.show(value), run.Name()))
			}
		}
		if runs == 0 {
			missed = append(missed, fmt.Sprintf("missed: %s: no run is %s", r.Text, strings.Join(r.scope, " and ")))
		}
	}
	return missed
}
