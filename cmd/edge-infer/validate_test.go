package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// A converted model is compared with its original: figures, plot and verdict.
func TestValidateAgainstAnotherModel(t *testing.T) {
	data, dir := scenes(t, "6", "99"), t.TempDir()
	half, drawing := filepath.Join(dir, "half.onnx"), filepath.Join(dir, "half.svg")
	require.NoError(t, command(t, "quantize", "--to", "fp16", "--gate", "0", "-o", half).Run())
	compare := func(extra ...string) (validated, error) {
		c := command(t, append([]string{
			"validate", "--model", half, "--data", data, "--engine", "onnxruntime", "--reference", "onnxruntime", "--reference-model", "demo", "--json",
		}, extra...)...)
		output, err := c.Output()
		var result validated
		require.NoError(t, json.Unmarshal(output, &result), string(output))
		return result, err
	}
	result, err := compare("--gate", "0.98", "--plot", drawing)
	require.NoError(t, err)
	assert.Equal(t, half, result.Model)
	assert.True(t, result.Verdict.Passed)
	assert.InDelta(t, *result.MAP, result.Verdict.Comparison.CandidateAccuracy.MAP, 1e-9)
	assert.InDelta(t, *result.MAP, result.Verdict.Comparison.ReferenceAccuracy.MAP, 0.01)
	assert.Positive(t, result.Agreement.MaxDrift, "two models, not one twice")
	picture, err := os.ReadFile(drawing)
	require.NoError(t, err)
	assert.Contains(t, string(picture), "onnxruntime fp16 against onnxruntime")
	assert.Contains(t, string(picture), "</svg>")

	output, err := command(t, "validate", "--data", data, "--conf", "0.9999", "--reference", "onnxruntime", "--gate", "0.98").CombinedOutput()
	require.Error(t, err)
	assert.Regexp(t, `edge-infer: the gate refused model demo: the reference found \d+ boxes in 6 pictures, fewer than 20 prove nothing`, string(output))
}
