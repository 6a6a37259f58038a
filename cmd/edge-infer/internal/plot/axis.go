package plot

import (
	"math"
	"strconv"
)

// Values returns an axis from 0 to at least the largest value, with about five ticks at round numbers.
func Values(label string, largest float64) Axis {
	if !(largest > 0) {
		largest = 1
	}
	step := math.Pow(10, math.Floor(math.Log10(largest/5)))
	for _, factor := range []float64{2, 2.5, 2} { // 2, 5 and 10 times the power of ten
		if largest/step <= 6 {
			break
		}
		step *= factor
	}
	axis := Axis{Label: label}
	digits := max(0, int(-math.Floor(math.Log10(step))))
	for i := 0; ; i++ {
		value := float64(i) * step
		axis.Ticks = append(axis.Ticks, Tick{value, strconv.FormatFloat(value, 'f', digits, 64)})
		if value >= largest {
			return axis
		}
	}
}

// Categories returns an axis with the names at 0, 1, 2 and so on.
func Categories(label string, names []string) Axis {
	axis := Axis{Label: label, Ticks: []Tick{{Value: -0.5}}}
	for i, name := range names {
		axis.Ticks = append(axis.Ticks, Tick{float64(i), name})
	}
	axis.Ticks = append(axis.Ticks, Tick{Value: float64(len(names)) - 0.5})
	return axis
}

// Number formats a value with three digits, or all digits before the point.
func Number(value float64) string {
	switch size := math.Abs(value); {
	case size >= 99.95:
		return strconv.FormatFloat(value, 'f', 0, 64)
	case size >= 9.995:
		return strconv.FormatFloat(value, 'f', 1, 64)
	case size >= 0.9995:
		return strconv.FormatFloat(value, 'f', 2, 64)
	}
	return strconv.FormatFloat(value, 'f', 3, 64)
}
