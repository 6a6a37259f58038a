package bench

import (
	"fmt"
	"io"
	"text/tabwriter"
)

// Comparison compares two documents: one row for each run that both have, in the order of the second, and the names of the others.
type Comparison struct {
	Version int         `json:"v"`
	Rows    []Row       `json:"rows"`
	Only    []Unmatched `json:"only"`
	// Differences lists differences of the machines and their load that impair the comparison.
	Differences []string `json:"differences"`
}

// Row compares one run.
type Row struct {
	Run     string   `json:"run"`
	Figures []Figure `json:"figures"`
}

// Figure is one number of both documents; Ratio is B/A, 0 if A is 0.
type Figure struct {
	Name  string  `json:"name"`
	A     float64 `json:"a"`
	B     float64 `json:"b"`
	Ratio float64 `json:"ratio"`
}

// Unmatched is a run that only one document has.
type Unmatched struct {
	Run string `json:"run"`
	In  string `json:"in"` // A or B
}

// Compare compares b with a. Runs with the same name must be in the same order in both.
func Compare(a, b *Report) *Comparison {
	c := &Comparison{Version: 1, Rows: []Row{}, Only: []Unmatched{}, Differences: []string{}}
	taken := make([]bool, len(a.Results))
	for i := range b.Results {
		after := &b.Results[i]
		before := match(a, taken, after)
		if before == nil {
			c.Only = append(c.Only, Unmatched{runName(after), "B"})
			continue
		}
		row := Row{Run: runName(after)}
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
			c.Only = append(c.Only, Unmatched{runName(&a.Results[i]), "A"})
		}
	}
	if a.Machine != b.Machine {
		c.differ("machines: %d CPUs (%s), %d CPUs (%s)", a.Machine.CPUs, a.Machine.Processor, b.Machine.CPUs, b.Machine.Processor)
	}
	for _, r := range []struct {
		name string
		*Report
	}{{"A", a}, {"B", b}} {
		if busy := r.Load.Before; busy != nil && *busy > idleLoad {
			c.differ("%s was measured on a machine that was %.0f %% busy", r.name, 100**busy)
		}
	}
	return c
}

func (c *Comparison) differ(format string, arguments ...any) {
	c.Differences = append(c.Differences, fmt.Sprintf(format, arguments...))
}

func runName(r *Result) string {
	text := fmt.Sprintf("%s, %s", r.Model, r.Name())
	if r.Cameras > 0 {
		text += fmt.Sprintf(", %d cameras", r.Cameras)
	}
	return text
}

// match returns the first run with the same name that is not yet matched.
func match(a *Report, taken []bool, like *Result) *Result {
	for i := range a.Results {
		if !taken[i] && runName(&a.Results[i]) == runName(like) {
			taken[i] = true
			return &a.Results[i]
		}
	}
	return nil
}

func mebibytes(n int64) float64 { return float64(n) / (1 << 20) }

// Print writes the comparison as tables.
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
