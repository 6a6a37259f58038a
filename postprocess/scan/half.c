#include <string.h>

#include "scan.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

static float half_to_float(uint16_t half) {
    const uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    const uint32_t exponent = (half >> 10) & 0x1f;
    uint32_t mantissa = half & 0x3ff;
    float value;
    uint32_t bits;
    if (exponent == 0) {
        value = (float)mantissa * (1.0f / (1 << 24));
        memcpy(&bits, &value, sizeof(bits));
        bits |= sign;
    } else if (exponent == 0x1f) {
        // The hardware conversions make every NaN a quiet one.
        bits = sign | 0x7f800000 | mantissa << 13 | (mantissa ? 0x400000 : 0);
    } else {
        bits = sign | (exponent + 112) << 23 | mantissa << 13;
    }
    memcpy(&value, &bits, sizeof(value));
    return value;
}

#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static int64_t widen_vectors(const uint16_t *from, float *to, int64_t count) {
    int64_t i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(to + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(from + i))));
    }
    return i;
}
#endif

void ei_half_to_float(const uint16_t *from, float *to, int64_t count) {
    int64_t i = 0;
#if defined(__x86_64__)
    // Every processor with AVX2 has F16C.
    if (__builtin_cpu_supports("avx2")) {
        i = widen_vectors(from, to, count);
    }
#elif defined(__aarch64__)
    for (; i + 4 <= count; i += 4) {
        vst1q_f32(to + i, vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(from + i))));
    }
#endif
    for (; i < count; i++) {
        to[i] = half_to_float(from[i]);
    }
}
