package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestVerdicts(t *testing.T) {
	s := &report{Before: "0.1", After: "0.2"}
	s.atLeast("B1", "median and worst do", figures{0.99, 0.96, 0.98}, 0.97, tolerance, "")
	s.atLeast("B1", "the worst is too far", figures{0.99, 0.94, 0.98}, 0.97, tolerance, "")
	s.atLeast("B1", "the median is below", figures{0.96, 0.96, 0.98}, 0.97, tolerance, "")
	s.atMost("B7", "median and worst do", figures{1, 1.06}, 1.05, tolerance, "ratio", "")
	s.atMost("B7", "the worst is too far", figures{1, 1, 1.08}, 1.05, tolerance, "ratio", "")
	s.atMost("B7", "nothing", nil, 1.05, tolerance, "ratio", "")
	var verdicts []string
	for _, r := range s.Rows {
		verdicts = append(verdicts, r.Verdict)
	}
	require.Equal(t, []string{met, missed, missed, met, missed, notMeasured}, verdicts)
	require.InDelta(t, 0.98, s.Rows[0].Median, 0)
	require.InDelta(t, 0.96, s.Rows[0].Worst, 0)
	require.InDelta(t, 1.06, s.Rows[3].Worst, 0)
	var text bytes.Buffer
	require.NoError(t, s.print(&text))
	require.Contains(t, text.String(), "2 met, 3 missed, 1 not measured in 0 s; ")
	require.Contains(t, text.String(), "load 0.1 before and 0.2 after\n")
}

func TestAlternateSwapsTheOrder(t *testing.T) {
	var order []string
	note := func(name string) func() error { return func() error { order = append(order, name); return nil } }
	require.NoError(t, alternate(t.Context(), 4, note("a"), note("b")))
	require.Equal(t, "abbaabba", strings.Join(order, ""))
}

func TestParseBench(t *testing.T) {
	found := parseBench([]byte(`goos: linux
BenchmarkDecode/candidates=200-2         	 100	 45.1 us	 1.27 x-floor	 0 B/op
BenchmarkDecode/candidates=200-2         	 100	 47.1 us	 1.30 x-floor	 0 B/op
BenchmarkPlain 	 3	 7 ns/op
PASS
`))
	require.Equal(t, map[string]map[string]figures{
		"Decode/candidates=200": {"us": {45.1, 47.1}, "x-floor": {1.27, 1.30}, "B/op": {0, 0}}, "Plain": {"ns/op": {7}},
	}, found)
}
