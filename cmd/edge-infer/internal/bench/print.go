package bench

import (
	"cmp"
	"fmt"
	"io"
	"text/tabwriter"
)

// Print writes the results as tables.
func (r *Report) Print(out io.Writer) error {
	first := &r.Results[0]
	several := false
	for i := range r.Results {
		one := &r.Results[i]
		several = several || one.SpeedUp != 0
		if i == 0 || one.Engine != r.Results[i-1].Engine || one.Precision != r.Results[i-1].Precision {
			fmt.Fprintf(out, "%s %s on %s, %s\n", one.Backend, one.Version, one.Device, one.Precision)
		}
	}
	fmt.Fprintf(out, "%s, %d CPUs (%s)\n", first.Model, r.Machine.CPUs, cmp.Or(r.Machine.Processor, r.Machine.System))
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprint(table, "engine\twhat\tdrive\tbatch\tfps\tmean ms\tp50 ms\tp95 ms\tp99 ms\tp99.9 ms\tmax ms\tCPU us/frame\tallocs\t",
		"MiB\tGPU MiB\tlate\t")
	if several {
		fmt.Fprint(table, "speed-up\tagreement\t")
	}
	fmt.Fprintln(table)
	for i := range r.Results {
		r.Results[i].row(table, several)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	if err := r.clocks(out); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out, r.busy())
	return err
}

// clocks writes the stages of each run of the frame loop.
func (r *Report) clocks(out io.Writer) error {
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range r.Results {
		one := &r.Results[i]
		for j, c := range one.Clocks {
			if j == 0 {
				fmt.Fprintf(table, "stages of %s, %s, batch %d\tcount\tp50 ms\tp99 ms\tp99.9 ms\tmax ms\n", one.Engine, one.Drive, one.Batch)
			}
			fmt.Fprintf(table, "  %s\t%d\t%.3f\t%.3f\t%.3f\t%.3f\n", c.Stage, c.Count, c.P50, c.P99, c.P999, c.Max)
		}
	}
	return table.Flush()
}

func (r *Result) row(table io.Writer, several bool) {
	batch := fmt.Sprint(r.Batch)
	if r.Filled < float64(r.Batch)-0.05 {
		batch = fmt.Sprintf("%.1f of %d", r.Filled, r.Batch)
	}
	gpu := "-"
	if r.GPUMemory != nil {
		gpu = fmt.Sprint(*r.GPUMemory >> 20)
	}
	fmt.Fprintf(table, "%s\t%s\t%s\t%s\t%.1f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.3f\t%.0f\t%.2f\t%d\t%s\t%d\t",
		r.Engine, r.What, r.Drive, batch, r.FPS, r.Mean, r.P50, r.P95, r.P99, r.P999, r.Max, r.CPU, r.Allocations, r.Memory>>20, gpu, r.Skipped)
	if several {
		fmt.Fprintf(table, "%s\t%s\t", orDash(r.SpeedUp != 0, "%.2fx", r.SpeedUp), r.Agreement)
	}
	fmt.Fprintln(table)
}

// String returns the match rate or the largest difference.
func (a *Agreement) String() string {
	switch {
	case a == nil:
		return "-"
	case a.Rate != nil:
		return fmt.Sprintf("%.4f", *a.Rate)
	case a.Difference != nil:
		return fmt.Sprintf("%.2g of %.3g", *a.Difference, *a.Largest)
	}
	return "-"
}

func orDash(known bool, format string, value any) string {
	if !known {
		return "-"
	}
	return fmt.Sprintf(format, value)
}

// busy returns a line about the load of other programs.
func (r *Report) busy() string {
	share := func(s *float64) string {
		if s == nil {
			return "unknown"
		}
		return fmt.Sprintf("%.0f %%", 100**s)
	}
	var highest *float64
	for i := range r.Results {
		if o := r.Results[i].Others; o != nil && (highest == nil || *o > *highest) {
			highest = o
		}
	}
	text := fmt.Sprintf("load of other programs: %s before, at most %s during, %s after",
		share(r.Load.Before), share(highest), share(r.Load.After))
	for _, s := range []*float64{r.Load.Before, highest, r.Load.After} {
		if s != nil && *s > idleLoad {
			return text + ": compare only alternating runs (--wait-idle waits for an idle machine)"
		}
	}
	return text
}

// idleLoad is the share of all CPUs up to which a machine counts as idle.
const idleLoad = 0.03
