package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"
)

// sheet is what the aims came to.
type sheet struct {
	Time   time.Time `json:"time"`
	Took   float64   `json:"seconds"`
	Before string    `json:"load_before"`
	After  string    `json:"load_after"`
	Busy   float64   `json:"busy"` // share of all CPUs, this program's children included
	Rows   []row     `json:"rows"`
}

// row is one figure of an aim.
type row struct {
	Bar     string  `json:"bar"`
	What    string  `json:"what"`
	Median  float64 `json:"median"`
	Worst   float64 `json:"worst"`
	Unit    string  `json:"unit,omitempty"`
	Aim     string  `json:"aim,omitempty"` // empty where the figure only makes another legible
	Verdict string  `json:"verdict,omitempty"`
	Note    string  `json:"note,omitempty"`
}

// The verdicts.
const (
	met         = "met"
	missed      = "missed"
	notMeasured = "not measured"
)

// tolerance is how far the worst round of a ratio may be from its aim when the median meets it.
const tolerance = 0.02

// figures are those of the rounds of one aim.
type figures []float64

func (f figures) sorted() figures {
	s := append(figures{}, f...)
	for i := 1; i < len(s); i++ {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s
}

func (f figures) median() float64 {
	if len(f) == 0 {
		return 0
	}
	s := f.sorted()
	return (s[(len(s)-1)/2] + s[len(s)/2]) / 2
}

// atLeast judges ratios that shall not be below an aim.
func (s *sheet) atLeast(bar, what string, f figures, aim, slack float64, note string) {
	s.judge(bar, what, f, aim, slack, "ratio", note, true)
}

// atMost judges figures that shall not be above an aim.
func (s *sheet) atMost(bar, what string, f figures, aim, slack float64, unit, note string) {
	s.judge(bar, what, f, aim, slack, unit, note, false)
}

func (s *sheet) judge(bar, what string, f figures, aim, slack float64, unit, note string, above bool) {
	if len(f) == 0 {
		s.skip(bar, what+": no figures")
		return
	}
	sorted := f.sorted()
	r := row{Bar: bar, What: what, Median: f.median(), Unit: unit, Verdict: missed, Note: note}
	if above {
		r.Worst, r.Aim = sorted[0], ">= "+number(aim)
		if r.Median >= aim && r.Worst >= aim-slack {
			r.Verdict = met
		}
	} else {
		r.Worst, r.Aim = sorted[len(sorted)-1], "<= "+number(aim)
		if r.Median <= aim && r.Worst <= aim+slack {
			r.Verdict = met
		}
	}
	s.Rows = append(s.Rows, r)
}

// beside notes figures without an aim, which make others legible; the worst is the smallest or, of times, the largest.
func (s *sheet) beside(bar, what string, f figures, unit, note string) {
	if len(f) == 0 {
		return
	}
	sorted := f.sorted()
	s.Rows = append(s.Rows, row{Bar: bar, What: what, Median: f.median(), Worst: sorted[len(sorted)-1], Unit: unit, Note: note})
}

// tell notes an aim that a test decides.
func (s *sheet) tell(bar, what string, passed bool, note string) {
	r := row{Bar: bar, What: what, Verdict: missed, Note: note}
	if passed {
		r.Verdict = met
	}
	s.Rows = append(s.Rows, r)
}

// skip notes an aim that was not measured.
func (s *sheet) skip(bar, why string) {
	s.Rows = append(s.Rows, row{Bar: bar, Verdict: notMeasured, Note: why})
}

func (s *sheet) save(path string) error {
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

// print writes the verdicts for a person, and how busy the machine was.
func (s *sheet) print(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "bar\twhat\tmedian\tworst\tunit\taim\tverdict\tnote")
	counts := map[string]int{}
	for _, r := range s.Rows {
		counts[r.Verdict]++
		median, worst := number(r.Median), number(r.Worst)
		if r.Unit == "" && r.Median == 0 && r.Worst == 0 {
			median, worst = "-", "-"
		}
		fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", r.Bar, r.What, median, worst, r.Unit, r.Aim, r.Verdict, r.Note)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	_, err := fmt.Fprintf(out, "%d met, %d missed, %d not measured in %.0f s; %d CPUs busy to %.0f %% with everything, load %s before and "+
		"%s after\n",
		counts[met], counts[missed], counts[notMeasured], s.Took, runtime.NumCPU(), 100*s.Busy, s.Before, s.After)
	return err
}

func loadAverage() string {
	data, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return "not known"
	}
	first, _, _ := strings.Cut(string(data), " ")
	return first
}

// watchLoad gives the share of all CPUs that is busy from now until it is asked.
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
