package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// report holds the verdicts of all benchmarks.
type report struct {
	Time   time.Time `json:"time"`
	Took   float64   `json:"seconds"`
	Before string    `json:"load_before"`
	After  string    `json:"load_after"`
	Busy   float64   `json:"busy"` // share of all CPUs in use, child processes included
	Rows   []row     `json:"rows"`
}

// row is one figure of a benchmark.
type row struct {
	Name    string  `json:"name"`
	What    string  `json:"what"`
	Median  float64 `json:"median"`
	Worst   float64 `json:"worst"`
	Unit    string  `json:"unit,omitempty"`
	Target  string  `json:"target,omitempty"` // empty for context figures
	Verdict string  `json:"verdict,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// The verdicts.
const (
	met         = "met"
	missed      = "missed"
	notMeasured = "not measured"
)

// tolerance is how far the worst round of a ratio may miss its target if the median meets it.
const tolerance = 0.02

// figures holds the results of all rounds of one benchmark.
type figures []float64

func (f figures) sorted() figures {
	s := slices.Clone(f)
	slices.Sort(s)
	return s
}

func (f figures) median() float64 {
	if len(f) == 0 {
		return 0
	}
	s := f.sorted()
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// atLeast adds a verdict for ratios that must not be below the target.
func (s *report) atLeast(name, what string, f figures, target, slack float64, note string) {
	s.judge(name, what, f, target, slack, "ratio", note, true)
}

// atMost adds a verdict for figures that must not be above the target.
func (s *report) atMost(name, what string, f figures, target, slack float64, unit, note string) {
	s.judge(name, what, f, target, slack, unit, note, false)
}

func (s *report) judge(name, what string, f figures, target, slack float64, unit, note string, above bool) {
	if len(f) == 0 {
		s.skip(name, what+": no figures")
		return
	}
	sorted := f.sorted()
	r := row{Name: name, What: what, Median: f.median(), Unit: unit, Verdict: missed, Note: note}
	if above {
		r.Worst, r.Target = sorted[0], ">= "+number(target)
		if r.Median >= target && r.Worst >= target-slack {
			r.Verdict = met
		}
	} else {
		r.Worst, r.Target = sorted[len(sorted)-1], "<= "+number(target)
		if r.Median <= target && r.Worst <= target+slack {
			r.Verdict = met
		}
	}
	s.Rows = append(s.Rows, r)
}

// info adds context figures without a target. Worst is the largest of them.
func (s *report) info(name, what string, f figures, unit, note string) {
	if len(f) == 0 {
		return
	}
	sorted := f.sorted()
	s.Rows = append(s.Rows, row{Name: name, What: what, Median: f.median(), Worst: sorted[len(sorted)-1], Unit: unit, Note: note})
}

// pass adds the verdict of a test.
func (s *report) pass(name, what string, passed bool, note string) {
	r := row{Name: name, What: what, Verdict: missed, Note: note}
	if passed {
		r.Verdict = met
	}
	s.Rows = append(s.Rows, r)
}

// skip adds a benchmark that was not measured.
func (s *report) skip(name, reason string) {
	s.Rows = append(s.Rows, row{Name: name, Verdict: notMeasured, Note: reason})
}

func (s *report) save(path string) error {
	if path == "" {
		return nil
	}
	data, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(data, '\n'), 0o644)
}

func number(v float64) string { return strconv.FormatFloat(v, 'g', 4, 64) }

// print writes the verdicts as a table, and the load of the machine.
func (s *report) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "name\twhat\tmedian\tworst\tunit\ttarget\tverdict\tnote")
	counts := map[string]int{}
	for _, r := range s.Rows {
		counts[r.Verdict]++
		median, worst := number(r.Median), number(r.Worst)
		if r.Unit == "" && r.Median == 0 && r.Worst == 0 {
			median, worst = "-", "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Name, r.What, median, worst, r.Unit, r.Target, r.Verdict, r.Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d met, %d missed, %d not measured in %.0f s; %d CPUs %.0f %% busy, load %s before and "+
		"%s after\n",
		counts[met], counts[missed], counts[notMeasured], s.Took, runtime.NumCPU(), 100*s.Busy, s.Before, s.After)
	return err
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "unknown"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// watchLoad returns a function that returns the share of all CPUs in use since the call of watchLoad.
func watchLoad() func() float64 {
	busy, total := ticks()
	return func() float64 {
		b, t := ticks()
		return float64(b-busy) / float64(max(t-total, 1))
	}
}

// ticks adds up the first line of /proc/stat.
func ticks() (busy, total uint64) {
	data, err := os.ReadFile("/proc/stat")
	if err != nil {
		return 0, 0
	}
	line, _, _ := bytes.Cut(data, []byte("\n"))
	for i, field := range bytes.Fields(line) {
		n, err := strconv.ParseUint(string(field), 10, 64)
		if err != nil || i > 8 {
			continue // the name; guests are part of users
		}
		total += n
		if i != 4 && i != 5 {
			busy += n
		}
	}
	return busy, total
}
