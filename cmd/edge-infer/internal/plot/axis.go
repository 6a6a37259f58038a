package plot

import (
	"math"
	"strconv"
)

// Axis is one side of a chart. Where Min and Max are equal, they come from the data.
type Axis struct {
	Label    string
	Min, Max float64
}

// span gives an axis without limits those of the values, and a little room around them; 0 stays the lower end of what is not negative.
func (a Axis) span(series []Series, values func(Series) []float64) Axis {
	if a.Min != a.Max {
		return a
	}
	low, high := math.Inf(1), math.Inf(-1)
	for _, s := range series {
		for _, v := range values(s) {
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				low, high = min(low, v), max(high, v)
			}
		}
	}
	switch {
	case low > high:
		low, high = 0, 1
	case low >= 0 && low < high/2, low == high && low > 0:
		low = 0
	case low == high:
		high = low + 1
	}
	step := nice((high - low) / 5)
	a.Min, a.Max = step*math.Floor(low/step+1e-9), step*math.Ceil(high/step-1e-9)
	if !(a.Max > a.Min) || math.IsInf(a.Max-a.Min, 0) {
		a.Min, a.Max = 0, 1
	}
	return a
}

// nice is 1, 2 or 5 times a power of ten, the next one that is not below v.
func nice(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= v*(1-1e-9) {
			return m * power
		}
	}
	return 10 * power
}

// tick is a place on an axis with its number.
type tick struct {
	value float64
	text  string
}

// ticks are at most count round numbers within the axis, all with the same number of decimals.
func (a Axis) ticks(count float64) (ticks []tick) {
	step := nice((a.Max - a.Min) / max(count, 1))
	decimals := max(0, int(-math.Floor(math.Log10(step)+1e-9)))
	first := math.Ceil(a.Min/step - 1e-9)
	for i := range int(count) + 2 { // of numbers as large as 1e300 the next one may be the same
		v := (first+float64(i))*step + 0 // no -0
		if v > a.Max+step*1e-9 {
			break
		}
		ticks = append(ticks, tick{v, digits(v, decimals)})
	}
	return ticks
}

// digits writes a number with that many decimals; with a power of ten where that would be a long row of digits.
func digits(v float64, decimals int) string {
	if decimals > 9 || math.Abs(v) >= 1e9 {
		return strconv.FormatFloat(v, 'g', 4, 64)
	}
	return strconv.FormatFloat(v, 'f', decimals, 64)
}

// place is where a value stands between two ends on the canvas.
func (a Axis) place(v, from, to float64) float64 { return from + (v-a.Min)/(a.Max-a.Min)*(to-from) }
