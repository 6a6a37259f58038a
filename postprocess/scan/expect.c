#include "expect.h"

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_numbers __attribute__((vector_size(32), aligned(4), may_alias));

// e to the power of v is 2 to the power of n times that of r, which is at most half of ln 2 and has a polynomial; ln 2 is in two parts, the
// first of which times n is exact. v is 0 at most. Adding 1.5 * 2^23 and taking it away again rounds.
#define EXPECT()                                                                                                                     \
    const eight numbers = {0, 1, 2, 3, 4, 5, 6, 7}, least = {-87, -87, -87, -87, -87, -87, -87, -87};                                \
    for (int32_t i = 0; i < count; i++) {                                                                                            \
        const eight raw = *(const eight*)(logits + 8 * (int64_t)i);                                                                  \
        float highest = raw[0];                                                                                                      \
        for (int32_t lane = 1; lane < 8; lane++) {                                                                                   \
            highest = raw[lane] > highest ? raw[lane] : highest;                                                                     \
        }                                                                                                                            \
        eight v = raw - highest;                                                                                                     \
        const eight_numbers low = v < -87.0f;                                                                                        \
        v = (eight)(((eight_numbers)v & ~low) | ((eight_numbers)least & low));                                                       \
        const eight n = (v * 1.44269504f + 12582912.0f) - 12582912.0f;                                                               \
        const eight r = v - n * 0.693359375f + n * 2.12194440e-4f;                                                                   \
        const eight p = 1.0f + r * (1.0f + r * (1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720)))))); \
        const eight_numbers power = (__builtin_convertvector(n, eight_numbers) + 127) << 23;                                         \
        const eight share = p * (eight)power, weighted = share * numbers;                                                            \
        float sum = 0, mean = 0;                                                                                                     \
        for (int32_t lane = 0; lane < 8; lane++) {                                                                                   \
            sum += share[lane];                                                                                                      \
            mean += weighted[lane];                                                                                                  \
        }                                                                                                                            \
        out[i] = mean / sum;                                                                                                         \
    }

static void expect_plain(const float* logits, int32_t count, float* out) { EXPECT() }

#if defined(__x86_64__)

__attribute__((target("avx2,fma"))) static void expect_avx2(const float* logits, int32_t count, float* out) { EXPECT() }

#endif

void ei_expect(const float* logits, int32_t count, float* out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        expect_avx2(logits, count, out);
        return;
    }
#endif
    expect_plain(logits, count, out);
}
