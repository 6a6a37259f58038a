package bench

import (
	"math"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sampleReport() *Report {
	rate, memory := 0.995, int64(300<<20)
	run := func(batch int, p99, fps float64) Result {
		return Result{
			What: Loop, Drive: FlatOut, Engine: "tensorrt", Backend: "tensorrt", Precision: "fp16", Batch: batch, FPS: fps,
			Latency: Latency{P99: p99}, Usage: Usage{Memory: 512 << 20, GPUMemory: &memory},
			Agreement: &Agreement{Rate: &rate},
		}
	}
	return &Report{Results: []Result{run(1, 1, 1500), run(16, 2.5, 9999.5)}}
}

func TestMissedRequirements(t *testing.T) {
	for text, want := range map[string][]string{
		"p99<=2.5ms,throughput>=1500,memory<=512MiB": nil,
		"p99<=1ms":                 {"missed: p99<=1ms: 2.5ms (tensorrt, fp16, loop, flat-out, batch 16)"},
		"p99@1<=1ms":               nil,
		"p99@1<1ms":                {"missed: p99@1<1ms: 1ms (tensorrt, fp16, loop, flat-out, batch 1)"},
		"throughput@16@loop>=9999": nil,
		"throughput@16 >= 10000":   {"missed: throughput@16 >= 10000: 9999.5 (tensorrt, fp16, loop, flat-out, batch 16)"},
		"throughput@8>=1":          {"missed: throughput@8>=1: no run is 8"},
		"throughput@int8@16>=1":    {"missed: throughput@int8@16>=1: no run is int8 and 16"},
		"memory<512MiB": {
			"missed: memory<512MiB: 512.0 MiB (tensorrt, fp16, loop, flat-out, batch 1)",
			"missed: memory<512MiB: 512.0 MiB (tensorrt, fp16, loop, flat-out, batch 16)",
		},
		"gpu-memory<=0.3GiB, agreement>=0.98": nil,
		"watts@1<=15":                         {"missed: watts@1<=15: not measured (tensorrt, fp16, loop, flat-out, batch 1)"},
	} {
		all, err := ParseRequirements(text)
		require.NoError(t, err, text)
		assert.Equal(t, want, Judge(all, sampleReport()), text)
	}
}

func TestNaNMeetsNothing(t *testing.T) {
	r := sampleReport()
	r.Results[0].P99 = math.NaN()
	all, err := ParseRequirements("p99@1<=1s")
	require.NoError(t, err)
	require.Len(t, Judge(all, r), 1)
}

func TestWrongRequirements(t *testing.T) {
	for text, want := range map[string]string{
		"":                 `"": needs a bound, as in p99<=1ms`,
		"p99<=1ms,":        `"": needs a bound, as in p99<=1ms`,
		"p99":              `"p99": needs a bound, as in p99<=1ms`,
		"p99=1ms":          `"p99=1ms": must use <=, >=, < or >`,
		"p99==1ms":         `"p99==1ms": must use <=, >=, < or >`,
		"p99<=1":           `"p99<=1": the bound must be a time with its unit, as in 1ms or 250us`,
		"p99<=-1ms":        `"p99<=-1ms": the bound must be a time with its unit, as in 1ms or 250us`,
		"throughput>=1e4":  `"throughput>=1e4": the bound must be a number without a unit, as in 10000 or 0.98`,
		"throughput>=NaN":  `"throughput>=NaN": the bound must be a number without a unit, as in 10000 or 0.98`,
		"throughput>>=5":   `"throughput>>=5": the bound must be a number without a unit, as in 10000 or 0.98`,
		"memory<=512":      `"memory<=512": the bound must be a size with its unit, as in 512MiB or 2GB`,
		"memory<=512Mib":   `"memory<=512Mib": the bound must be a size with its unit, as in 512MiB or 2GB`,
		"throughput@>=100": `"throughput@>=100": needs a name after @ (a batch, what is measured, a drive, an engine or a precision)`,
	} {
		_, err := ParseRequirements(text)
		assert.EqualError(t, err, want, text)
	}
	_, err := ParseRequirements("p98<=1ms")
	assert.ErrorContains(t, err, `"p98<=1ms": unknown figure (one of mean, p50, `)
}

// Whatever is taken has a bound that a figure can be compared with, and judging says one thing of it.
func FuzzParseRequirements(f *testing.F) {
	for _, seed := range []string{
		"p99<=1ms,throughput>=10000,memory<=512MiB", "p99.9@16@loop<250us", "agreement>=0.98", "a@@=<", "memory<=1e9B", ",,", "p50<=1h1m",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		all, err := ParseRequirements(text)
		if err != nil {
			return
		}
		for _, r := range all {
			require.False(t, math.IsNaN(r.bound) || math.IsInf(r.bound, 0) || r.bound < 0, text)
			opposite := r
			opposite.above, opposite.strict = !r.above, !r.strict
			for _, value := range []float64{0, r.bound, r.bound + 1} {
				require.NotEqual(t, r.met(value), opposite.met(value), "%s at %v", text, value)
			}
		}
		Judge(all, sampleReport())
	})
}
