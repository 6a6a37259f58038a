package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/edge-infer/edge-infer/engine/tensorrt"
)

// A table of another release serves: only its head is written anew, and the file itself stays.
func TestCalibrationTableOfAnotherRelease(t *testing.T) {
	for _, test := range []struct {
		head, want string
		minmax     bool
	}{
		{"TRT-8601-MinMaxCalibration\n", "TRT-100600-MinMaxCalibration\n", true},
		{"TRT-100300-EntropyCalibration2\n", "TRT-100600-EntropyCalibration2\n", false},
		{"TRT-8503-MinMaxCalibration\r\n", "TRT-100600-MinMaxCalibration\r\n", true},
	} {
		const lines = "images: 3c010a14\n"
		path := filepath.Join(t.TempDir(), "table")
		require.NoError(t, os.WriteFile(path, []byte(test.head+lines), 0o600))
		c := &calibration{cache: path, folder: t.TempDir()}
		var o tensorrt.BuildOptions
		require.NoError(t, c.prepare(t.Context(), nil, &o, tensorrt.Version{Number: 100600, Major: 10}))
		given, err := os.ReadFile(o.Calibration.Cache)
		require.NoError(t, err)
		assert.Equal(t, test.want+lines, string(given))
		assert.Equal(t, test.minmax, o.Calibration.MinMax)
		kept, err := os.ReadFile(path)
		require.NoError(t, err)
		assert.Equal(t, test.head+lines, string(kept))
	}
}
