package main

import (
	"bytes"
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/infer"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// TestSeveralLooksAreFused: a network that looks twice finds what it finds once, and mirrored images show the same objects.
func TestSeveralLooksAreFused(t *testing.T) {
	t.Parallel()
	data := filepath.Join(t.TempDir(), "data")
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "6", "--seed", "11", "--width", "416", "--height",
		"416").Run())
	run := func(flags ...string) (all []infer.Seen) {
		output := programtest.Output(t, append([]string{"infer", "--model", "demo", filepath.Join(data, "images"), "--json"}, flags...)...)
		for line := range bytes.Lines(output) {
			var seen infer.Seen
			require.NoError(t, json.Unmarshal(line, &seen))
			all = append(all, seen)
		}
		return all
	}
	once, twice := run(), run("--ensemble", "demo", "--weights", "2,1", "--batch", "2")
	require.Len(t, twice, 6)
	objects := 0
	for i := range once {
		require.Len(t, twice[i].Detections, len(once[i].Detections))
		for k, d := range once[i].Detections {
			require.Equal(t, d.Class, twice[i].Detections[k].Class)
			require.InDelta(t, d.Score, twice[i].Detections[k].Score, 1e-5)
			require.InDelta(t, d.Box[0], twice[i].Detections[k].Box[0], 1e-2)
			objects++
		}
	}
	require.Greater(t, objects, 6)
	output := programtest.Output(t, "validate", "--data", data, "--json", "--augment", "flip,scale=0.83", "--fusion", "wbf")
	var report accuracy.Report
	require.NoError(t, json.Unmarshal(output, &report))
	require.Equal(t, []string{"flip", "scale=0.83"}, report.Augment)
	require.Greater(t, *report.MAP50, 0.85)

	for want, flags := range map[string][]string{
		`inference.augment: "rotate" must be flip, scale=0.83 or flip+scale=0.83`: {"--augment", "rotate"},
		"inference.augment: scale 3, must be 0.25 to 1":                           {"--augment", "scale=3"},
		"inference.weights: 3 weights, must be 2":                                 {"--ensemble", "demo", "--weights", "1,2,3"},
		"inference.weights: they are those of the networks of --ensemble":         {"--weights", "1"},
		`inference.fusion "mean" must be wbf, vote or nms`:                        {"--fusion", "mean"},
	} {
		output, err := programtest.Command(t, append([]string{"infer", "--model", "demo", data}, flags...)...).CombinedOutput()
		require.Error(t, err)
		require.Contains(t, string(output), want)
	}
}
