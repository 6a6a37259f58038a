package quantize

import "math"

// Method is a way to choose the largest magnitude of INT8; larger values saturate.
type Method string

// The calibration methods.
const (
	MinMax     Method = "minmax"     // the largest magnitude
	Percentile Method = "percentile" // the magnitude that is not exceeded by 99.99 % of the values
	Entropy    Method = "entropy"    // least Kullback-Leibler divergence of the limits from the percentile on, like TensorRT
	MSE        Method = "mse"        // least mean squared error
)

// Methods lists the calibration methods.
func Methods() []Method { return []Method{MinMax, Percentile, Entropy, MSE} }

// DefaultMethod was closest to FP32 in boxes and scores of the demo model and does not depend on the largest outlier.
const DefaultMethod = MSE

// DefaultPercentile is the percentage of the values within the limit of Percentile.
const DefaultPercentile = 99.99

// Range describes the values of one tensor.
type Range struct {
	Min float32 `json:"min"`
	Max float32 `json:"max"`
	// Limits is the largest magnitude by method.
	Limits map[Method]float32 `json:"limits"`
}

// Ranges are the ranges of tensors by name.
type Ranges map[string]Range

// Limit returns the method's limit of a tensor, and whether it was measured.
func (r Ranges) Limit(name string, method Method) (float32, bool) {
	limit, measured := r[name].Limits[method]
	return limit, measured
}

// Scale returns the step of symmetric INT8 with 127 steps up to limit; 1 if limit is 0, because a scale must be positive.
func Scale(limit float32) float32 {
	scale := limit / 127
	if scale < math.SmallestNonzeroFloat32*(1<<23) {
		return 1
	}
	return scale
}
