package quantize

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func sampleCache() *Cache {
	return &Cache{Version: 1, Model: "aa", Samples: "bb", Count: 3, Percentile: 99.99, Ranges: Ranges{
		"images":                  {Min: 0, Max: 1, Limits: map[Method]float32{MinMax: 1, Entropy: 0.9, Percentile: 1, MSE: 0.95}},
		"/model.0/act: the Mul_0": {Min: -0.25, Max: 127, Limits: map[Method]float32{MinMax: 127, Entropy: 63.5, Percentile: 120, MSE: 100}},
	}}
}

func TestCacheRoundTrip(t *testing.T) {
	path := filepath.Join(t.TempDir(), "model.cache")
	require.NoError(t, sampleCache().Save(path))
	back, err := ReadCache(path)
	require.NoError(t, err)
	assert.Equal(t, sampleCache(), back)
	again := filepath.Join(filepath.Dir(path), "again")
	require.NoError(t, back.Save(again))
	a, err := os.ReadFile(path)
	require.NoError(t, err)
	b, err := os.ReadFile(again)
	require.NoError(t, err)
	assert.Equal(t, a, b)
}

func TestTensorRTCache(t *testing.T) {
	text, err := sampleCache().FormatTensorRT(8503, Entropy)
	require.NoError(t, err)
	assert.Equal(t, "TRT-8503-EntropyCalibration2\n/model.0/act: the Mul_0: 3f000000\nimages: 3be836d4\n", string(text))
	text, err = sampleCache().FormatTensorRT(100600, MinMax)
	require.NoError(t, err)
	assert.Equal(t, "TRT-100600-MinMaxCalibration\n/model.0/act: the Mul_0: 3f800000\nimages: 3c010204\n", string(text))
}

func TestDamagedCaches(t *testing.T) {
	for data, want := range map[string]string{
		"":              "it is not JSON",
		"\x00\x01":      "it is not JSON",
		"{":             "damaged: unexpected end of JSON input",
		`{"version":9}`: "version 9, this program writes 1",
		`{"version":1,"ranges":{"x":{"limits":{"minmax":-1}}}}`: `the minmax limit -1 of tensor "x" is not a magnitude`,
	} {
		_, err := ParseCache([]byte(data))
		assert.EqualError(t, err, "quantize calibration cache: "+want+" (remove the file to calibrate again)", "%q", data)
	}
	_, err := ParseCache([]byte("TRT-8503-EntropyCalibration2\nx: 3f800000\n"))
	assert.EqualError(t, err, "quantize calibration cache: that of TensorRT cannot be used for Q/DQ nodes (name another file to calibrate)")
	_, err = ReadCache("testdata/absent")
	assert.EqualError(t, err, "read calibration cache: open testdata/absent: no such file or directory")
}

func TestCacheFits(t *testing.T) {
	model := []byte("model")
	c := sampleCache()
	c.Model = hashBytes(model)
	for _, test := range []struct {
		model   string
		tensors []string
		want    bool
	}{
		{"model", []string{"images"}, true},
		{"model", []string{"images", "other"}, false},
		{"other model", []string{"images"}, false},
	} {
		fits, err := c.Fits([]byte(test.model), nil, test.tensors)
		require.NoError(t, err)
		assert.Equal(t, test.want, fits, "%v", test)
	}
}

func FuzzParseCache(f *testing.F) {
	f.Add([]byte(`{"version":1,"ranges":{"x":{"min":-1,"max":1,"limits":{"minmax":1}}}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := ParseCache(data)
		if err != nil {
			return
		}
		for name, r := range c.Ranges {
			for method, limit := range r.Limits {
				if !(limit >= 0) || math.IsInf(float64(limit), 0) || !(Scale(limit) > 0) {
					t.Fatalf("%q: %s limit %v", name, method, limit)
				}
			}
		}
	})
}
