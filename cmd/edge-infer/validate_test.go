package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/accuracy"
	"github.com/edge-infer/edge-infer/cmd/edge-infer/internal/programtest"
	"github.com/edge-infer/edge-infer/engine"
	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// A converted model is compared with its original: figures and verdict.
func TestValidateAgainstAnotherModel(t *testing.T) {
	t.Parallel()
	data, dir := programtest.Scenes(t, 6, 99), t.TempDir()
	half := filepath.Join(dir, "half.onnx")
	require.NoError(t, programtest.Command(t, "quantize", "--precision", "fp16", "--gate", "0", "-o", half).Run())
	compare := func(extra ...string) (accuracy.Report, error) {
		c := programtest.Command(t, append([]string{
			"validate", "--model", half, "--data", data, "--engine", "onnxruntime", "--reference", "onnxruntime", "--reference-model", "demo",
			"--json",
		}, extra...)...)
		output, err := c.Output()
		var result accuracy.Report
		require.NoError(t, json.Unmarshal(output, &result), string(output))
		return result, err
	}
	result, err := compare("--max-loss", "0.05")
	require.NoError(t, err)
	assert.Equal(t, half, result.Model)
	assert.True(t, result.Verdict.Passed, result.Verdict.Reasons)
	assert.LessOrEqual(t, result.Verdict.Comparison.Loss.Low, result.Verdict.Comparison.Loss.MAP)
	assert.LessOrEqual(t, result.Verdict.Comparison.Loss.MAP, result.Verdict.Comparison.Loss.High)
	assert.InDelta(t, *result.MAP, result.Verdict.Comparison.CandidateAccuracy.MAP, 1e-9)
	assert.InDelta(t, *result.MAP, result.Verdict.Comparison.ReferenceAccuracy.MAP, 0.01)
	assert.Less(t, result.Bytes, result.Reference.Bytes, "two models, not one twice")

	c := programtest.Command(t, "validate", "--model", half, "--data", data, "--engine", "onnxruntime", "--reference", "onnxruntime",
		"--reference-model", half, "--json")
	itself, err := c.Output()
	require.NoError(t, err)
	assert.Contains(t, string(itself), `"match_rate":1}`, "a converted file may be named as the reference")

	output, err := programtest.Command(t, "validate", "--data", data, "--confidence", "0.9999", "--reference", "onnxruntime", "--gate",
		"0.98").CombinedOutput()
	require.Error(t, err)
	assert.Regexp(t, `edge-infer: the gate refused model demo: the reference found \d+ boxes in 6 images, fewer than 20 prove nothing`,
		string(output))
}

// A plan is compared with the model that it was built from, on an engine that knows nothing of plans or of TensorRT's library.
func TestValidateAPlan(t *testing.T) {
	programtest.Long(t)
	t.Parallel()
	environment, model := programtest.FakeMachine(t, 100300)
	environment, library := append(environment, tensorrt.LibraryEnvironment+"=/none"), programtest.FakeTensorRT(t, 100300)
	data, plan := programtest.Scenes(t, 3, 99), filepath.Join(t.TempDir(), "belt.plan")
	require.NoError(t, programtest.CommandWith(t, environment, "build", model, "--precision", "fp16", "--library", library, "-o", plan).Run())
	validate := func(extra ...string) (accuracy.Report, string, error) {
		c := programtest.CommandWith(t, environment, append([]string{
			"validate", "--model", plan, "--engine", "tensorrt", "--library", library, "--data", data, "--reference", "onnxruntime", "--json",
		}, extra...)...)
		var stderr bytes.Buffer
		c.Stderr = &stderr
		output, err := c.Output()
		var result accuracy.Report
		if len(output) > 0 {
			assert.Equal(t, 1, bytes.Count(output, []byte("\n")), "one line")
			require.NoError(t, json.Unmarshal(output, &result), string(output))
		}
		return result, stderr.String(), err
	}
	result, text, err := validate()
	require.NoError(t, err, text)
	assert.Equal(t, engine.FP16, result.Precision)
	assert.Equal(t, "tensorrt", result.Backend)
	info, err := os.Stat(plan)
	require.NoError(t, err)
	assert.EqualValues(t, info.Size(), result.Bytes)
	assert.Equal(t, model, result.Reference.Model)
	assert.Equal(t, engine.FP32, result.Reference.Precision)
	assert.Greater(t, *result.Reference.MAP, *result.MAP, "the fake sees other boxes in every image")
	assert.Positive(t, result.Reference.Request)

	_, text, err = validate("--gate", "0.98")
	require.Error(t, err)
	assert.Contains(t, text, "edge-infer: the gate refused model "+plan+": mAP50-95 fell by ")
	require.NoError(t, os.Remove(model))
	_, text, err = validate()
	require.Error(t, err)
	assert.Contains(t, text, fmt.Sprintf("edge-infer: the model %q, from which the plan %s was built, is not here (name it with --reference-model)\n", model, plan))
}

// The convention of published figures counts every class of a box, that of service one; the report says which. What was found comes out as
// COCO's list of results, with the ids of its annotations.
func TestValidateConventions(t *testing.T) {
	t.Parallel()
	data, dir := programtest.Scenes(t, 5, 99), t.TempDir()
	found := make(map[string]int)
	for _, convention := range []string{accuracy.Published, accuracy.Service} {
		predictions := filepath.Join(dir, convention+".json")
		output := programtest.Output(t, "validate", "--data", data, "--engine", "onnxruntime", "--convention", convention, "--limit", "3",
			"--predictions", predictions, "--json")
		var result accuracy.Report
		require.NoError(t, json.Unmarshal(output, &result), string(output))
		assert.Equal(t, convention, result.Convention.Name)
		assert.Equal(t, convention == accuracy.Published, result.Convention.MultiLabel)
		assert.Equal(t, 3, result.Images)
		text, err := os.ReadFile(predictions)
		require.NoError(t, err)
		var results []struct {
			Image    int64      `json:"image_id"`
			Category int64      `json:"category_id"`
			Box      [4]float64 `json:"bbox"`
			Score    float64    `json:"score"`
		}
		require.NoError(t, json.Unmarshal(text, &results))
		images, boxes := make(map[int64]bool), make(map[[5]float64]bool)
		for _, r := range results {
			images[r.Image] = true
			assert.Positive(t, r.Image, "the demo scenes count their images from 1")
			boxes[[5]float64{float64(r.Image), r.Box[0], r.Box[1], r.Box[2], r.Box[3]}] = true
			assert.Positive(t, r.Box[2])
		}
		assert.Len(t, images, 3)
		found[convention] = len(results)
		assert.Equal(t, convention == accuracy.Published, len(boxes) < len(results), "a box comes with several classes")
	}
	assert.Greater(t, found[accuracy.Published], found[accuracy.Service])

	output := programtest.Output(t, "validate", "--data", data, "--limit", "2")
	assert.Contains(t, string(output),
		"published convention: every class of a box from score 0.001, suppression at IoU 0.7, 300 detections an image\n")
	output, err := programtest.Command(t, "validate", "--data", data, "--convention", "mine").CombinedOutput()
	require.Error(t, err)
	assert.Contains(t, string(output), `edge-infer: --convention "mine" must be published or service`)
}

// Labels alone give the curves of each class, the best threshold and the confusion.
func TestValidateCurves(t *testing.T) {
	t.Parallel()
	data := programtest.Scenes(t, 4, 99)
	output := programtest.Output(t, "validate", "--data", data, "--engine", "onnxruntime", "--json")
	var result accuracy.Report
	require.NoError(t, json.Unmarshal(output, &result), string(output))

	// The area under a class's curve is its average precision, and the confusion counts every object once.
	require.Len(t, result.Curves.PrecisionRecall, len(result.Classes)+1)
	for i, curve := range result.Curves.PrecisionRecall[1:] {
		area := 0.0
		for _, precision := range curve.Values {
			area += precision / float64(len(curve.Values))
		}
		assert.Equal(t, result.Classes[i].Label, curve.Label)
		assert.InDelta(t, result.Classes[i].AP50, area, 1e-4)
	}
	require.Len(t, result.Confusion.Counts, len(result.Confusion.Labels)+1)
	for i, label := range result.Confusion.Labels {
		objects := 0
		for _, count := range result.Confusion.Counts[i] {
			objects += count
		}
		for _, class := range result.Classes {
			if class.Label == label {
				assert.Equal(t, class.Count, objects, label)
			}
		}
	}
	assert.InDelta(t, result.Best.F1, slices.Max(result.Curves.F1[0].Values), 1e-4)
}

// TestValidateGoesOnAfterABadLine: one line that cannot be used among the labels of 120 images does not end a validation; it is named.
func TestValidateGoesOnAfterABadLine(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	require.NoError(t, programtest.Command(t, "dataset", "--out", data, "--count", "120", "--width", "64", "--height", "64").Run())
	require.NoError(t, os.Remove(filepath.Join(data, "annotations.json")))
	bad := filepath.Join(data, "labels", "000007.txt")
	validate := func(labels string) (report accuracy.Report, said string, err error) {
		require.NoError(t, os.WriteFile(bad, []byte(labels), 0o600))
		command := programtest.Command(t, "validate", "--model", "demo", "--data", data, "--engine", "onnxruntime=cpu", "--json")
		var stdout, stderr bytes.Buffer
		command.Stdout = &stdout
		command.Stderr = &stderr
		if err = command.Run(); err == nil {
			require.NoError(t, json.Unmarshal(stdout.Bytes(), &report), stdout.String())
		}
		return report, stderr.String(), err
	}
	for _, labels := range []string{"2.0 0.5 0.5 0.1 0.1\n", "2 0.5 0.5 1.0016 0.1\n", "\uFEFF2 0.5 0.5 0.1 0.1\n"} {
		report, said, err := validate(labels)
		require.NoError(t, err, said)
		require.Equal(t, 120, report.Images, labels)
		require.NotContains(t, said, "left out")
	}
	report, said, err := validate("2 0.5 0.5 0.1 0.1\n6 0.5 0.5 0.1 0.1\n")
	require.NoError(t, err, said)
	require.Equal(t, 119, report.Images)
	require.Contains(t, said, "part of the dataset cannot be used and is left out")
	require.Contains(t, said, "1 of 120 images, the first: "+bad+":2: class 6, the data set names 6")

	require.NoError(t, os.WriteFile(filepath.Join(data, "labels", "000008.txt"), []byte("bolt 1 1 1 1\n"), 0o600))
	_, said, err = validate("2 0.5 0.5 0.1\n")
	require.Error(t, err)
	require.Contains(t, said, bad+":1: 4 fields, ")
	require.Contains(t, said, ", and 1 more of 120 images")
}
