package main

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"image/png"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/bench"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/plot"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
)

// drawn returns the texts of a plot's SVG file in their order, after decoding both of its files.
func drawn(t *testing.T, dir, name string) (texts []string) {
	t.Helper()
	img, err := os.Open(filepath.Join(dir, name+".png"))
	require.NoError(t, err)
	pixels, err := png.Decode(img)
	require.NoError(t, errors.Join(err, img.Close()))
	assert.Greater(t, pixels.Bounds().Dx(), 1000)
	file, err := os.Open(filepath.Join(dir, name+".svg"))
	require.NoError(t, err)
	defer file.Close()
	decoder := xml.NewDecoder(file)
	inText := false
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			return texts
		}
		require.NoError(t, err)
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.EndElement:
			inText = false
		case xml.CharData:
			if inText {
				texts = append(texts, string(token))
			}
		}
	}
}

// tableRow requires a row of a plot's table.
func tableRow(t *testing.T, texts []string, name string, values ...string) {
	t.Helper()
	at := slices.Index(texts, name)
	require.NotEqual(t, -1, at, "%q is not in %q", name, texts)
	require.Equal(t, values, texts[at+1:at+1+len(values)], name)
}

// A run is drawn when it ends, and documents are drawn beside each other with the numbers that they hold.
func TestBenchPlots(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first, second := filepath.Join(dir, "before.json"), filepath.Join(dir, "a<b&.json")
	plots := filepath.Join(dir, "new", "plots")
	programtest.Output(t, "bench", "--batch", "1,2", "--duration", "4x", "--warmup", "1x", "--engine", "onnxruntime=cpu", "--width", "64",
		"--height", "64", "--images", "2", "--what", "transfers", "--drive", "closed", "--output", first, "--plots", plots)
	data, err := os.ReadFile(first)
	require.NoError(t, err)
	before, err := bench.ParseReport(data)
	require.NoError(t, err)
	one, two := before.Results[0], before.Results[1]
	tableRow(t, drawn(t, plots, "latency"), "p50", plot.Number(one.P50), plot.Number(two.P50))
	tableRow(t, drawn(t, plots, "latency"), "p99", plot.Number(one.P99), plot.Number(two.P99))
	assert.Contains(t, drawn(t, plots, "latency"), "demo, onnxruntime=cpu, fp32, transfers, closed")
	assert.Contains(t, drawn(t, plots, "latency"), "ms")
	assert.Contains(t, drawn(t, plots, "throughput"), "images per second")
	assert.Contains(t, drawn(t, plots, "memory"), "MiB")
	tableRow(t, drawn(t, plots, "memory"), "host", plot.Number(float64(one.Memory)/(1<<20)), plot.Number(float64(two.Memory)/(1<<20)))

	// Another document has another engine, one batch fewer and one more, and memory of a GPU.
	gpu := int64(700 << 20)
	three := two
	three.Batch, three.FPS, three.Engine, three.Precision, three.GPUMemory = 16, 12345.6, "tensorrt", "fp16", &gpu
	two.FPS, two.Engine, two.Precision = 7.125, "tensorrt", "fp16"
	data, err = json.Marshal(bench.Report{Version: 1, Results: []bench.Result{two, three}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(second, data, 0o600))
	output := programtest.Output(t, "bench", "--plots", plots, first, second)
	assert.Equal(t, fmt.Sprintf("latency, throughput and memory drawn in %s\n", plots), string(output))
	texts := drawn(t, plots, "throughput")
	tableRow(t, texts, "before, onnxruntime=cpu, fp32", plot.Number(one.FPS), plot.Number(before.Results[1].FPS), "-")
	tableRow(t, texts, "a<b&, tensorrt, fp16", "-", "7.12", "12346")
	tableRow(t, drawn(t, plots, "memory"), "a<b&, tensorrt, fp16, GPU", "-", "-", "700")
	for _, text := range []string{"demo, transfers, closed", "batch 1", "batch 2", "batch 16", "batch size, images per request"} {
		assert.Contains(t, texts, text)
	}
	entries, err := os.ReadDir(plots)
	require.NoError(t, err)
	assert.Len(t, entries, 6, "no temporary files")

	// --compare draws, too; a document that is none and a directory that is a file are one line.
	other := filepath.Join(dir, "compared")
	programtest.Output(t, "bench", "--compare", first, second, "--plots", other)
	tableRow(t, drawn(t, other, "throughput"), "a<b&, tensorrt, fp16", "-", "7.12", "12346")
	for _, c := range []struct{ dir, document, want string }{
		{first, second, "edge-infer: --plots: mkdir " + first + ": not a directory\n"},
		{
			plots, filepath.Join(dir, "none.json"),
			"edge-infer: --plots: open " + filepath.Join(dir, "none.json") + ": no such file or directory\n",
		},
	} {
		text, err := programtest.Command(t, "bench", "--plots", c.dir, c.document).CombinedOutput()
		require.Error(t, err)
		require.Equal(t, c.want, string(text))
	}
}

// A full disk is an error with the path, and leaves no part of a file.
func TestPlotsOnAFullDisk(t *testing.T) {
	t.Parallel()
	document, plots := filepath.Join(t.TempDir(), "one.json"), t.TempDir()
	data, err := json.Marshal(bench.Report{Version: 1, Results: []bench.Result{{What: bench.Loop, Batch: 1, FPS: 1}}})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(document, data, 0o600))
	text, err := mounted(t, programtest.Command(t, "bench", "--plots", plots, document), "size=16k", plots)
	require.Error(t, err)
	require.Regexp(t, "^edge-infer: --plots: "+plots+`/latency.png: write .*: no space left on device$`, text)
}

// The curves and the confusion matrix show the numbers of the report.
func TestValidatePlots(t *testing.T) {
	t.Parallel()
	data, dir := programtest.Scenes(t, 4, 99), t.TempDir()
	validate := []string{"validate", "--data", data, "--engine", "onnxruntime=cpu", "--json", "--plots"}
	var r accuracy.Report
	output := programtest.Output(t, append(validate, dir)...)
	require.NoError(t, json.Unmarshal(output, &r), string(output))
	curves, f1, confusion := drawn(t, dir, "precision-recall"), drawn(t, dir, "f1"), drawn(t, dir, "confusion")
	for _, class := range r.Classes {
		tableRow(t, curves, class.Label, fmt.Sprintf("%.3f", class.AP50))
	}
	tableRow(t, f1, "mean of all classes", fmt.Sprintf("%.3f", slices.Max(r.Curves.F1[0].Values)), fmt.Sprintf("%.2f", r.Best.Confidence))
	var counts []string
	for _, line := range r.Confusion.Counts {
		for _, count := range line {
			if count > 0 {
				counts = append(counts, fmt.Sprint(count))
			}
		}
	}
	assert.Equal(t, strings.Join(counts, " "), strings.Join(confusion[len(confusion)-len(counts):], " "))
	assert.Contains(t, confusion, "background")
	for _, texts := range [][]string{curves, f1, confusion} {
		assert.Contains(t, strings.Join(texts, "\n"), "demo, onnxruntime fp32, 4 images")
	}

	text, err := programtest.Command(t, append(validate, "/proc/plots")...).CombinedOutput()
	require.Error(t, err)
	require.Equal(t, "edge-infer: --plots: mkdir /proc/plots: no such file or directory\n", string(text))
}
