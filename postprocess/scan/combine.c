#include "combine.h"

#include <string.h>

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));

// A row of the result stays in the nearest cache while the planes pass over it.
#define COMBINE(lanes)                                                                      \
    const int32_t step = (int32_t)(sizeof(lanes) / sizeof(float));                          \
    for (int32_t y = 0; y < height; y++) {                                                  \
        float* to = out + (int64_t)y * width;                                               \
        memset(to, 0, sizeof(*to) * (size_t)width);                                         \
        for (int32_t p = 0; p < count; p++) {                                               \
            const float *from = planes + p * plane + y * row, weight = weights[p];          \
            int32_t x = 0;                                                                  \
            for (; x + step <= width; x += step) {                                          \
                *(lanes*)(to + x) = *(lanes*)(to + x) + *(const lanes*)(from + x) * weight; \
            }                                                                               \
            for (; x < width; x++) {                                                        \
                to[x] += from[x] * weight;                                                  \
            }                                                                               \
        }                                                                                   \
    }

static void combine_plain(const float* planes, int64_t plane, int64_t row, const float* weights, int32_t count, int32_t width,
                          int32_t height, float* out) {
    COMBINE(four)
}

#if defined(__x86_64__)

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));

__attribute__((target("avx2,fma"))) static void combine_avx2(const float* planes, int64_t plane, int64_t row, const float* weights,
                                                             int32_t count, int32_t width, int32_t height, float* out) {
    COMBINE(eight)
}

#endif

void ei_combine(const float* planes, int64_t plane, int64_t row, const float* weights, int32_t count, int32_t width, int32_t height,
                float* out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) {
        combine_avx2(planes, plane, row, weights, count, width, height, out);
        return;
    }
#endif
    combine_plain(planes, plane, row, weights, count, width, height, out);
}
