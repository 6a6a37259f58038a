package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/onnx"
)

// The kernel tests need EDGE_INFER_TEST_GPU=1, and log their figures even if they fail.
func TestLetterboxOnGPU(t *testing.T) {
	dir := t.TempDir()
	tests, python := filepath.Join(dir, "kerneltest.test"), filepath.Join(dir, "python3")
	require.NoError(t, os.WriteFile(tests, []byte(`#!/bin/sh
[ "$EDGE_INFER_TEST_GPU" = 1 ] || exit 1
case $2 in
LetterboxTime)
	echo '    timing_test.go:119: BGR   1920x1080 -> 640 float32: device memory   4.40 us, mapped  90.10 us; '\
'copy of the 11.1 MB 5.30 us (ratio 0.83), at full bandwidth 2.60 us (ratio 1.69)'
	echo '    timing_test.go:119: BGR   1920x1080 -> 640 float16: device memory   4.10 us, mapped  90.10 us; '\
'copy of the 8.7 MB 4.30 us (ratio 0.95), at full bandwidth 2.00 us (ratio 2.05)'
	echo FAIL; exit 1 ;;
*) echo '--- PASS: TestLetterboxEqualsTheCPU (0.10s)' ;;
esac
`), 0o755))
	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\necho 44.000\n"), 0o755))
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	g, s := gpu{options: &options{rounds: 5}, kernelTest: tests, plain: "letterbox.py"}, &report{}
	require.NoError(t, g.letterbox(t.Context(), s))
	require.Equal(t, []float64{4.4, 0.83, 0, 10}, []float64{s.Rows[0].Median, s.Rows[1].Median, s.Rows[2].Median, s.Rows[3].Median})
	for _, r := range s.Rows {
		require.Equal(t, met, r.Verdict, r.What)
	}

	require.NoError(t, os.WriteFile(python, []byte("#!/bin/sh\necho no torch >&2\nexit 1\n"), 0o755))
	s = &report{}
	require.NoError(t, g.letterbox(t.Context(), s))
	require.Equal(t, notMeasured, s.Rows[3].Verdict)
	require.Contains(t, s.Rows[3].Note, "no torch")
}

func TestHalfNetworkTakesFloat16(t *testing.T) {
	path := filepath.Join(t.TempDir(), "half.onnx")
	require.NoError(t, writeNetwork([]string{path, "64", "half"}))
	m, err := onnx.Read(path)
	require.NoError(t, err)
	inputs, err := m.Inputs()
	require.NoError(t, err)
	require.Equal(t, "float16", inputs[0].Type.String())
	require.Error(t, writeNetwork([]string{path, "64", "quarter"}))
}
