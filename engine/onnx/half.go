package onnx

import "math"

// MaxHalf is the largest finite float16, MinHalf the smallest positive one.
const (
	MaxHalf = 65504
	MinHalf = 1.0 / (1 << 24)
)

// ToHalf rounds to the nearest float16, ties to even. Values from 65520 on become infinite, as in IEEE 754.
func ToHalf(f float32) uint16 {
	bits := math.Float32bits(f)
	sign := uint16(bits>>16) & 0x8000
	magnitude := bits & 0x7fffffff
	switch {
	case magnitude > 0x7f800000:
		return sign | 0x7e00
	case magnitude >= 0x477ff000:
		return sign | 0x7c00
	case magnitude >= 0x38800000:
		rounded := magnitude + 0xfff + (magnitude>>13)&1
		return sign | uint16((rounded-0x38000000)>>13)
	case magnitude < 0x33000000:
		return sign
	}
	exponent := magnitude >> 23
	mantissa := magnitude&0x7fffff | 0x800000
	shift := 126 - exponent
	half := mantissa >> shift
	rest, middle := mantissa&(1<<shift-1), uint32(1)<<(shift-1)
	if rest > middle || rest == middle && half&1 == 1 {
		half++
	}
	return sign | uint16(half)
}

// FromHalf converts a float16 exactly.
func FromHalf(h uint16) float32 {
	sign := uint32(h&0x8000) << 16
	exponent, mantissa := uint32(h>>10)&31, uint32(h&0x3ff)
	switch exponent {
	case 0:
		value := float32(mantissa) * MinHalf
		return math.Float32frombits(math.Float32bits(value) | sign)
	case 31:
		return math.Float32frombits(sign | 0x7f800000 | mantissa<<13)
	}
	return math.Float32frombits(sign | (exponent+112)<<23 | mantissa<<13)
}
