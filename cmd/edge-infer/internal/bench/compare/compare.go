// Package compare sets two benchmark documents side by side.
package compare

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench/result"
)

// Comparison is of two documents: the rows of runs that both have, in the second one's order, and the names of the others.
type Comparison struct {
	Version int      `json:"v"`
	Rows    []Row    `json:"rows"`
	Only    []Lonely `json:"only"`
	// Differences are those of the machines and their loads that make figures hard to compare.
	Differences []string `json:"differences"`
}

// Row is one run.
type Row struct {
	Run     string   `json:"run"`
	Figures []Figure `json:"figures"`
}

// Figure is one number of both; Ratio is B over A, 0 when A is 0.
type Figure struct {
	Name  string  `json:"name"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	Ratio float64 `json:"ratio"`
}

// Lonely is a run that one document has alone.
type Lonely struct {
	Run string `json:"run"`
	In  string `json:"in"` // A or B
}

// Of compares b with a. Runs of one name come in the same order in both.
func Of(a, b *result.Report) *Comparison {
	c := &Comparison{Version: 1, Rows: []Row{}, Only: []Lonely{}, Differences: []string{}}
	taken := make([]bool, len(a.Results))
	for i := range b.Results {
		after := &b.Results[i]
		before := twin(a, taken, after)
		if before == nil {
			c.Only = append(c.Only, Lonely{name(after), "B"})
			continue
		}
		row := Row{Run: name(after)}
		add := func(what string, x, y float64) {
			f := Figure{Name: what, A: x, B: y}
			if x != 0 {
				f.Ratio = y / x
			}
			row.Figures = append(row.Figures, f)
		}
		add("fps", before.FPS, after.FPS)
		add("mean ms", before.Mean, after.Mean)
		add("p50 ms", before.P50, after.P50)
		add("p95 ms", before.P95, after.P95)
		add("p99 ms", before.P99, after.P99)
		add("p99.9 ms", before.P999, after.P999)
		add("CPU us/frame", before.CPU, after.CPU)
		add("allocations/frame", before.Allocations, after.Allocations)
		add("memory MiB", mebibytes(before.Memory), mebibytes(after.Memory))
		if before.GPUMemory != nil && after.GPUMemory != nil {
			add("GPU memory MiB", mebibytes(*before.GPUMemory), mebibytes(*after.GPUMemory))
		}
		c.Rows = append(c.Rows, row)
		if before.Device != after.Device || before.Version != after.Version {
			c.differ("%s: %s on %s, %s on %s", row.Run, before.Version, before.Device, after.Version, after.Device)
		}
	}
	for i := range a.Results {
		if !taken[i] {
			c.Only = append(c.Only, Lonely{name(&a.Results[i]), "A"})
		}
	}
	if a.Machine != b.Machine {
		c.differ("machines: %d CPUs (%s), %d CPUs (%s)", a.Machine.CPUs, a.Machine.Processor, b.Machine.CPUs, b.Machine.Processor)
	}
	for _, r := range []struct {
		name string
		*result.Report
	}{{"A", a}, {"B", b}} {
		if busy := r.Load.Before; busy != nil && *busy > result.Idle {
			c.differ("%s was measured on a machine that was busy to %.0f %%", r.name, 100**busy)
		}
	}
	return c
}

func (c *Comparison) differ(format string, arguments ...any) {
	c.Differences = append(c.Differences, fmt.Sprintf(format, arguments...))
}

func name(r *result.Result) string {
	text := fmt.Sprintf("%s, %s", r.Model, r.Name())
	if r.Cameras > 0 {
		text += fmt.Sprintf(", %d cameras", r.Cameras)
	}
	return text
}

// twin is the first run of that name that has no partner yet.
func twin(a *result.Report, taken []bool, like *result.Result) *result.Result {
	for i := range a.Results {
		if !taken[i] && name(&a.Results[i]) == name(like) {
			taken[i] = true
			return &a.Results[i]
		}
	}
	return nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// Print writes the comparison for a person.
func (c *Comparison) Print(out io.Writer) error {
	for _, row := range c.Rows {
		fmt.Fprintln(out, row.Run)
		table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
		fmt.Fprintln(table, "\tA\tB\tB/A\t")
		for _, f := range row.Figures {
			ratio := "-"
			if f.Ratio != 0 {
				ratio = fmt.Sprintf("%.3f", f.Ratio)
			}
			fmt.Fprintf(table, "%s\t%.3f\t%.3f\t%s\t\n", f.Name, f.A, f.B, ratio)
		}
		if err := table.Flush(); err != nil {
			return err
		}
	}
	for _, l := range c.Only {
		fmt.Fprintf(out, "only in %s: %s\n", l.In, l.Run)
	}
	for _, d := range c.Differences {
		if _, err := fmt.Fprintf(out, "note: %s\n", d); err != nil {
			return err
		}
	}
	return nil
}
