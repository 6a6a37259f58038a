package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/onnx"
	"github.com/edge-infer/edge-infer/engine/onnx/testnet"
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

// One convolution of 3x3 from 3 to 16 channels at stride 2, then the network that is measured: YOLOv8n has 8.7 billion operations at 640.
func TestLimit(t *testing.T) {
	b := testnet.NewBuilder(1)
	x := b.Input("images", -1, 3, 8, 8)
	b.Output(b.Conv("conv", x, testnet.Convolution{In: 3, Out: 16, Kernel: 3, Stride: 2, NoBias: true}), -1, 16, 4, 4)
	got, err := limit(b.Model(17), 2, 1e12, 1e9)
	require.NoError(t, err)
	require.Equal(t, bound{
		layers: 1, operations: 2 * 2 * 16 * 4 * 4 * 27, bytes: 2 * (2*3*8*8 + 16*27 + 2*16*4*4),
		arithmetic: 27648e-12, memory: 2656e-9, both: 2656e-9,
	}, got)

	got, err = limit(testnet.YOLO{Dynamic: true}.V8(), 16, 1e12, 1e12)
	require.NoError(t, err)
	require.InDelta(t, 8.74, got.operations/16/1e9, 0.01)
	var text bytes.Buffer
	require.ErrorIs(t, printLimit(&text, []string{"x.onnx"}), usage{})
}
