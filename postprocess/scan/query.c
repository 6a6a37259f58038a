#include "query.h"

#include "exponent.h"
#include "hit.h"

// The numbers are added one after another and without fused operations, as plain code does it.
#define SUM()                                                      \
    float sum = 0;                                                 \
    int32_t x = 0;                                                 \
    ei_eight power;                                                \
    for (; x + 8 <= count; x += 8) {                               \
        EI_EXPONENT(power, *(const ei_eight*)(row + x) - highest); \
        for (int32_t lane = 0; lane < 8; lane++) {                 \
            sum += power[lane];                                    \
        }                                                          \
    }                                                              \
    ei_eight rest = {0};                                           \
    for (int32_t lane = 0; x + lane < count; lane++) {             \
        rest[lane] = row[x + lane] - highest;                      \
    }                                                              \
    EI_EXPONENT(power, rest);                                      \
    for (int32_t lane = 0; x + lane < count; lane++) {             \
        sum += power[lane];                                        \
    }                                                              \
    return sum;

static float sum_plain(const float* row, int32_t count, float highest) { SUM() }

#if defined(__x86_64__)

__attribute__((target("avx2"))) static float sum_avx2(const float* row, int32_t count, float highest) { SUM() }

#endif

static float sum_of(const float* row, int32_t count, float highest) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return sum_avx2(row, count, highest);
    }
#endif
    return sum_plain(row, count, highest);
}

int64_t ei_queries(const float* logits, int64_t rows, int32_t classes, float odds, ei_query* out) {
    const ei_next_row next = ei_choose_next_row(1);
    const int64_t stride = (int64_t)classes + 1;
    int64_t found = 0;
    for (int64_t row = next(logits, stride, classes, 0, rows, odds); row < rows; row = next(logits, stride, classes, row + 1, rows, odds)) {
        const float* from = logits + row * stride;
        int32_t best = 0;
        for (int32_t class_id = 1; class_id < classes; class_id++) {
            best = from[class_id] > from[best] ? class_id : best;
        }
        const float highest = from[best] > from[classes] ? from[best] : from[classes];
        out[found++] = (ei_query){(int32_t)row, best, highest, sum_of(from, classes + 1, highest)};
    }
    return found;
}
