package bench

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
)

// Document is a report with the name of its file, which is empty for one that has just been measured.
type Document struct {
	Path string
	*Report
}

// checkPlots checks that plots can be written, if they are wanted.
func (b *Bench) checkPlots() error {
	if b.Plots == "" {
		return nil
	}
	return plot.Check(b.Plots)
}

// WritePlots draws latency, throughput and memory by batch size into b.Plots, if set.
func (b *Bench) WritePlots(documents ...Document) error {
	if b.Plots == "" {
		return nil
	}
	s := newSweeps(documents)
	return plot.Write(b.Plots, []plot.Figure{
		{Name: "latency", Drawing: s.chart("Latency by batch size", "ms", []measure{
			{"p50", func(r *Result) (float64, bool) { return r.P50, true }},
			{"p99", func(r *Result) (float64, bool) { return r.P99, true }},
		})},
		{Name: "throughput", Drawing: s.chart("Throughput by batch size", "images per second", []measure{
			{"", func(r *Result) (float64, bool) { return r.FPS, true }},
		})},
		{Name: "memory", Drawing: s.chart("Peak memory by batch size", "MiB", []measure{
			{"host", func(r *Result) (float64, bool) { return mebibytes(r.Memory), true }},
			{"GPU", func(r *Result) (float64, bool) {
				if r.GPUMemory == nil {
					return 0, false
				}
				return mebibytes(*r.GPUMemory), true
			}},
		})},
	})
}

// measure is a figure of a run; it reports false if that is unknown.
type measure struct {
	name  string
	value func(*Result) (float64, bool)
}

// sweeps holds the runs that differ in nothing but the batch size, in the order of the documents.
type sweeps struct {
	parts   [][]string // what describes a sweep: document, model, engine ...
	runs    []map[int]*Result
	batches []int
	note    string
}

func newSweeps(documents []Document) *sweeps {
	s := &sweeps{}
	names := documentNames(documents)
	index := map[string]int{}
	for i, document := range documents {
		for j := range document.Results {
			one := &document.Results[j]
			parts := append([]string{names[i]}, describe(one)...)
			for repeat := 1; ; repeat++ { // a run that was repeated has a line of its own
				key := fmt.Sprint(i, parts, repeat)
				at, known := index[key]
				if !known {
					at = len(s.runs)
					index[key] = at
					s.runs = append(s.runs, map[int]*Result{})
					s.parts = append(s.parts, append(slices.Clone(parts), repetition(repeat)))
				}
				if s.runs[at][one.Batch] == nil {
					s.runs[at][one.Batch] = one
					break
				}
			}
			s.batches = append(s.batches, one.Batch)
		}
	}
	slices.Sort(s.batches)
	s.batches = slices.Compact(s.batches)
	s.note = machines(documents, names)
	return s
}

func repetition(number int) string {
	if number == 1 {
		return ""
	}
	return fmt.Sprintf("repeat %d", number)
}

// describe returns what distinguishes a run besides its batch size.
func describe(r *Result) []string {
	engine := r.Engine
	if engine == "" || engine == "auto" {
		engine = r.Backend
	}
	parts := []string{filepath.Base(r.Model), engine, string(r.Precision), string(r.What), string(r.Drive), "", ""}
	if r.Cameras > 1 && r.Cameras != r.Batch { // without a rate there are as many as images in a request
		parts[5] = fmt.Sprintf("%d cameras", r.Cameras)
	}
	if r.Rate > 0 {
		parts[6] = fmt.Sprintf("%v images due per second", r.Rate)
	}
	return parts
}

// documentNames returns the names of the files, or their paths if names are equal.
func documentNames(documents []Document) []string {
	var names, paths []string
	for _, document := range documents {
		names = append(names, strings.TrimSuffix(filepath.Base(document.Path), ".json"))
		paths = append(paths, document.Path)
	}
	if len(documents) == 1 {
		return []string{""}
	}
	sorted := slices.Sorted(slices.Values(names))
	if len(slices.Compact(sorted)) < len(names) {
		return paths
	}
	return names
}

// machines names each machine, and documents that were measured beside other work.
func machines(documents []Document, names []string) string {
	var notes []string
	for i, document := range documents {
		m := &document.Machine
		text := fmt.Sprintf("%d CPUs (%s)", m.CPUs, cmp.Or(m.Processor, m.System))
		if busy := document.Load.Before; busy != nil && *busy > idleLoad {
			text += fmt.Sprintf(", %.0f %% busy with other programs", 100**busy)
		}
		if names[i] != "" && (i > 0 || len(documents) > 1) {
			text = names[i] + ": " + text
		}
		notes = append(notes, text)
	}
	return strings.Join(notes, "; ")
}

// common returns the parts that all sweeps share, and for each sweep the others.
func (s *sweeps) common() (shared string, names []string) {
	var same []string
	rest := make([][]string, len(s.parts))
	for column := range s.parts[0] {
		equal := true
		for _, parts := range s.parts {
			equal = equal && parts[column] == s.parts[0][column]
		}
		if equal {
			same = append(same, s.parts[0][column])
			continue
		}
		for i, parts := range s.parts {
			rest[i] = append(rest[i], parts[column])
		}
	}
	for _, parts := range rest {
		names = append(names, joined(parts))
	}
	return joined(same), names
}

func joined(parts []string) string {
	return strings.Join(slices.DeleteFunc(slices.Clone(parts), func(part string) bool { return part == "" }), ", ")
}

// chart draws measures over the batch size; all but the first one are dashed.
func (s *sweeps) chart(title, unit string, measures []measure) *plot.Chart {
	var sizes, columns []string
	for _, batch := range s.batches {
		sizes = append(sizes, strconv.Itoa(batch))
		columns = append(columns, fmt.Sprintf("batch %d", batch))
	}
	c := &plot.Chart{Title: title, Columns: columns, Note: s.note, X: plot.Categories("batch size, images per request", sizes)}
	var names []string
	c.Subtitle, names = s.common()
	largest := 0.0
	for i, runs := range s.runs {
		for j, m := range measures {
			line := plot.Line{Color: i, Dashed: j > 0, Dots: true}
			line.Name = cmp.Or(joined([]string{names[i], m.name}), title)
			for x, batch := range s.batches {
				value, known := 0.0, false
				if run := runs[batch]; run != nil {
					value, known = m.value(run)
				}
				if !known {
					line.Values = append(line.Values, "-")
					continue
				}
				largest = max(largest, value)
				line.X = append(line.X, float64(x))
				line.Y = append(line.Y, value)
				line.Values = append(line.Values, plot.Number(value))
			}
			if len(line.X) > 0 {
				c.Lines = append(c.Lines, line)
			}
		}
	}
	c.Y = plot.Values(unit, largest)
	return c
}
