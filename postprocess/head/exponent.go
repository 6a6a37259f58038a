package head

import "math"

// exp returns e to the power of v, accurate to the last bits of a float32. It is several times as fast as math.Exp, in which heads with
// logits would spend most of their time: v = n ln 2 + r, and a polynomial for e to the power of r, which is at most half of ln 2.
func exp(v float32) float32 {
	const most, least = 88, -87
	switch {
	case v > most || v < least || v != v:
		return float32(math.Exp(float64(v)))
	}
	n := float32(math.RoundToEven(float64(v * math.Log2E)))
	// ln 2 in two parts, the first of which times n is exact.
	r := v - n*0.693359375 + n*2.12194440e-4
	p := 1 + r*(1+r*(1./2+r*(1./6+r*(1./24+r*(1./120+r*(1./720))))))
	return p * math.Float32frombits(uint32(int32(n)+127)<<23)
}
