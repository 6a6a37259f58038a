package cross

import (
	"cmp"
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/stretchr/testify/require"
)

// slowest is the bound of a start, from the beginning of the process to the end of version, in processor time: what else the machine does
// adds little to that.
const slowest = 50 * time.Millisecond

// starts gives the fastest and the median of several starts. The fastest says most about the program and least about what else the machine
// does.
func starts(t *testing.T, program string) (fastest, median time.Duration) {
	var times []time.Duration
	for range 20 {
		command := exec.Command(program, "version")
		output, err := command.CombinedOutput()
		require.NoError(t, err, "%s", output)
		require.Contains(t, string(output), " linux/")
		times = append(times, command.ProcessState.UserTime()+command.ProcessState.SystemTime())
	}
	slices.Sort(times)
	return times[0], times[len(times)/2]
}

func TestStart(t *testing.T) {
	fastest, _ := starts(t, released(t, "amd64"))
	require.Less(t, fastest, slowest)
}

// TestTable prints what the checks look at, with the plain build of this machine for comparison.
func TestTable(t *testing.T) {
	var table strings.Builder
	out := tabwriter.NewWriter(&table, 0, 0, 2, ' ', 0)
	fmt.Fprintln(out, strings.Join([]string{
		"binary", "bytes", "stripped", "needed", "loaded at start", "version in processor time: fastest, median", "glibc", "other versions",
		"RPATH", "PIE", "RELRO", "NVML names, later",
	}, "\t"))
	for _, row := range []struct{ name, path string }{
		{"release amd64", released(t, "amd64")},
		{"release arm64", released(t, "arm64")},
		{"plain " + runtime.GOARCH, absolute(t, "../bin/edge-infer")},
	} {
		a, err := inspect(row.path)
		require.NoError(t, err)
		loaded, start := "-", "-"
		if a.machine == machines[runtime.GOARCH] {
			fastest, median := starts(t, row.path)
			loaded, start = fmt.Sprint(dependencies(t, row.path)), fmt.Sprintf("%.0f ms, %.0f ms", milliseconds(fastest), milliseconds(median))
		}
		relro := "no"
		switch {
		case a.relro && a.now:
			relro = "full"
		case a.relro:
			relro = "partial"
		}
		nvml := 0
		for _, symbol := range a.undefined {
			if strings.HasPrefix(symbol, "nvml") {
				nvml++
			}
		}
		foreign := cmp.Or(strings.Join(a.foreign, " "), "none")
		if len(a.foreign) > 4 {
			foreign = fmt.Sprint(len(a.foreign))
		}
		fmt.Fprintf(out, "%s\t%d\t%t\t%d\t%s\t%s\t2.%d\t%s\t%s\t%t\t%s\t%d\n", row.name, a.size, a.stripped, len(a.needed), loaded, start,
			a.glibc, foreign, cmp.Or(strings.Join(a.paths, " "), "none"), a.pie, relro, nvml)
		t.Logf("%s needs %s", row.name, strings.Join(a.needed, " "))
	}
	require.NoError(t, out.Flush())
	t.Log("\n" + table.String())
}

func milliseconds(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// dependencies counts the libraries that the loader maps before main, those of libraries too.
func dependencies(t *testing.T, program string) int {
	output, err := exec.Command("ldd", program).CombinedOutput()
	require.NoError(t, err, "%s", output)
	return strings.Count(string(output), "\n")
}
