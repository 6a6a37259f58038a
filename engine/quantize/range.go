package quantize

import "math"

// Method names a way to choose the largest magnitude that INT8 keeps; larger values saturate.
type Method string

// The calibration methods.
const (
	MinMax     Method = "minmax"     // the largest magnitude that was seen
	Percentile Method = "percentile" // the magnitude that 99.99 % of the values stay under
	Entropy    Method = "entropy"    // least Kullback-Leibler divergence of the limits from the percentile on, as TensorRT's
	MSE        Method = "mse"        // least mean squared error
)

// Methods lists the calibration methods.
func Methods() []Method { return []Method{MinMax, Percentile, Entropy, MSE} }

// DefaultMethod kept the demo model's boxes and scores nearest to FP32 and does not hang on the largest outlier.
const DefaultMethod = MSE

// DefaultPercentile is the share of values that Percentile keeps, in percent.
const DefaultPercentile = 99.99

// Range is what was seen of one tensor.
type Range struct {
	Min float32 `json:"min"`
	Max float32 `json:"max"`
	// Limits is the largest magnitude to keep, by method.
	Limits map[Method]float32 `json:"limits"`
}

// Ranges are the ranges of tensors by name.
type Ranges map[string]Range

// Limit is the largest magnitude that the method keeps of a tensor, and whether it was measured.
func (r Ranges) Limit(name string, method Method) (float32, bool) {
	limit, measured := r[name].Limits[method]
	return limit, measured
}

// Scale is the value of one step of symmetric INT8 whose 127 stands for limit; 1 where everything is 0, since a scale must be positive.
func Scale(limit float32) float32 {
	scale := limit / 127
	if scale < math.SmallestNonzeroFloat32*(1<<23) {
		return 1
	}
	return scale
}
