#include "expect.h"

#include "exponent.h"

#define EXPECT()                                                          \
    const ei_eight numbers = {0, 1, 2, 3, 4, 5, 6, 7};                    \
    for (int32_t i = 0; i < count; i++) {                                 \
        const ei_eight raw = *(const ei_eight*)(logits + 8 * (int64_t)i); \
        float highest = raw[0];                                           \
        for (int32_t lane = 1; lane < 8; lane++) {                        \
            highest = raw[lane] > highest ? raw[lane] : highest;          \
        }                                                                 \
        const ei_eight v = raw - highest;                                 \
        ei_eight share;                                                   \
        EI_EXPONENT(share, v);                                            \
        const ei_eight weighted = share * numbers;                        \
        float sum = 0, mean = 0;                                          \
        for (int32_t lane = 0; lane < 8; lane++) {                        \
            sum += share[lane];                                           \
            mean += weighted[lane];                                       \
        }                                                                 \
        out[i] = mean / sum;                                              \
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
