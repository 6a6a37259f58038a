package bench

import (
	"encoding/json"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// Percentiles are those of a sorted list, to three digits.
func TestLatency(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	h := NewHistogram()
	all := make([]float64, 20000)
	for i := range all {
		d := time.Duration(random.ExpFloat64() * float64(3*time.Millisecond))
		h.Add(d)
		all[i] = float64(d) / float64(time.Millisecond)
	}
	slices.Sort(all)
	l := h.Latency()
	for percentile, got := range map[float64]float64{0.5: l.P50, 0.9: l.P90, 0.95: l.P95, 0.99: l.P99, 0.999: l.P999, 1: l.Max} {
		require.InEpsilon(t, all[int(percentile*float64(len(all)-1))], got, 0.003, percentile)
	}
	require.InEpsilon(t, 3, l.Mean, 0.05)
	require.True(t, slices.IsSortedFunc(l.Curve, func(a, b Point) int { return int(1e7 * (a.Latency - b.Latency)) }))
	require.InDelta(t, 100, l.Curve[len(l.Curve)-1].Percentile, 0.01)

	h = NewHistogram()
	h.Add(time.Hour)
	h.Add(-time.Second)
	require.InEpsilon(t, 60e3, h.Latency().Max, 0.002, "what is longer counts as a minute")
}

func TestNoLatencies(t *testing.T) {
	data, err := json.Marshal(NewHistogram().Latency())
	require.NoError(t, err)
	require.Contains(t, string(data), `"latency_curve":[]`)
}

func TestForeignDocuments(t *testing.T) {
	for text, want := range map[string]string{
		"{":                             "unexpected end of JSON input",
		`{"v":2,"results":[{}]}`:        "version 2 with 1 results",
		`{"v":1,"results":[]}`:          "version 1 with 0 results",
		`{"v":1,"results":[{"fps":3}]}`: `result 1 has no "what"`,
	} {
		_, err := ParseReport([]byte(text))
		require.ErrorContains(t, err, want, text)
		require.ErrorContains(t, err, "not a document of edge-infer bench --output: ", text)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"v":1,"results":[{"what":"loop","latency_p50_ms":1}]}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		r, err := ParseReport(data)
		if err == nil {
			require.NotEmpty(t, r.Results)
			require.NoError(t, r.Print(discard{}))
		}
	})
}

type discard struct{}

func (discard) Write(p []byte) (int, error) { return len(p), nil }

func TestARunWithoutAFrameIsAnError(t *testing.T) {
	report := Report{Results: []Result{{Batch: 1, Frames: 7}, {Batch: 16, Seconds: 1.04}}}
	require.EqualError(t, report.Err(), "bench: batch 16: no frame was completed in 1.0 s (use a longer --duration)")
	report.Results = report.Results[:1]
	require.NoError(t, report.Err())
}
