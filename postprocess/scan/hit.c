#include "hit.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__aarch64__)
#include <arm_neon.h>
#endif

static int64_t next_hit_plain(const float *values, int64_t from, int64_t count, float threshold) {
    while (from < count && values[from] < threshold) {
        from++;
    }
    return from;
}

#if defined(__x86_64__)

__attribute__((target("avx2"))) static int64_t next_hit_avx2(const float *values, int64_t from, int64_t count, float threshold) {
    const __m256 limit = _mm256_set1_ps(threshold);
#define HITS(offset) _mm256_cmp_ps(_mm256_loadu_ps(values + from + (offset)), limit, _CMP_NLT_UQ)
    for (; from + 64 <= count; from += 64) {
        __m256 low = _mm256_or_ps(_mm256_or_ps(HITS(0), HITS(8)), _mm256_or_ps(HITS(16), HITS(24)));
        __m256 high = _mm256_or_ps(_mm256_or_ps(HITS(32), HITS(40)), _mm256_or_ps(HITS(48), HITS(56)));
        if (_mm256_movemask_ps(_mm256_or_ps(low, high))) {
            break;
        }
    }
    for (; from + 8 <= count; from += 8) {
        int mask = _mm256_movemask_ps(HITS(0));
        if (mask) {
            return from + __builtin_ctz((unsigned)mask);
        }
    }
#undef HITS
    return next_hit_plain(values, from, count, threshold);
}

ei_next_hit ei_choose_next_hit(void) { return __builtin_cpu_supports("avx2") ? next_hit_avx2 : next_hit_plain; }

#elif defined(__aarch64__)

static int64_t next_hit_neon(const float *values, int64_t from, int64_t count, float threshold) {
    const float32x4_t limit = vdupq_n_f32(threshold);
// A lane is all ones where the value is less; NaN gives zero, as a hit does.
#define MISSES(offset) vcltq_f32(vld1q_f32(values + from + (offset)), limit)
    for (; from + 32 <= count; from += 32) {
        uint32x4_t low = vandq_u32(vandq_u32(MISSES(0), MISSES(4)), vandq_u32(MISSES(8), MISSES(12)));
        uint32x4_t high = vandq_u32(vandq_u32(MISSES(16), MISSES(20)), vandq_u32(MISSES(24), MISSES(28)));
        if (vminvq_u32(vandq_u32(low, high)) == 0) {
            break;
        }
    }
    for (; from + 4 <= count; from += 4) {
        if (vminvq_u32(MISSES(0)) == 0) {
            break;
        }
    }
#undef MISSES
    return next_hit_plain(values, from, count, threshold);
}

ei_next_hit ei_choose_next_hit(void) { return next_hit_neon; }

#else

ei_next_hit ei_choose_next_hit(void) { return next_hit_plain; }

#endif

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_misses __attribute__((vector_size(16), aligned(4), may_alias));

// A lane is all ones while every value is less. The last vectors of a row overlap those before, so that only rows shorter than a vector are
// looked through number by number.
#define LESS(lanes, x, base) (*(const lanes *)(from + (x)) - (base) < threshold)
#define NEXT_ROW(lanes, misses, base)                                                                                                   \
    const int32_t step = (int32_t)(sizeof(lanes) / sizeof(float)), last = count - step, last_four = last - 3 * step;                    \
    for (; row < rows; row++) {                                                                                                         \
        const float *from = values + row * stride;                                                                                      \
        misses less = ~(misses){0};                                                                                                     \
        int32_t x = 0, missed = -1;                                                                                                     \
        for (; x < last_four; x += 4 * step) {                                                                                          \
            less &=                                                                                                                     \
                LESS(lanes, x, base) & LESS(lanes, x + step, base) & LESS(lanes, x + 2 * step, base) & LESS(lanes, x + 3 * step, base); \
        }                                                                                                                               \
        if (last_four >= 0) {                                                                                                           \
            less &= LESS(lanes, last_four, base) & LESS(lanes, last_four + step, base) & LESS(lanes, last - step, base) &               \
                    LESS(lanes, last, base);                                                                                            \
        } else if (last >= 0) {                                                                                                         \
            for (; x < last; x += step) {                                                                                               \
                less &= LESS(lanes, x, base);                                                                                           \
            }                                                                                                                           \
            less &= LESS(lanes, last, base);                                                                                            \
        } else {                                                                                                                        \
            for (; x < count; x++) {                                                                                                    \
                missed &= -(from[x] - (base) < threshold);                                                                              \
            }                                                                                                                           \
        }                                                                                                                               \
        for (int32_t lane = 0; lane < step; lane++) {                                                                                   \
            missed &= less[lane];                                                                                                       \
        }                                                                                                                               \
        if (!missed) {                                                                                                                  \
            break;                                                                                                                      \
        }                                                                                                                               \
    }                                                                                                                                   \
    return row;

#define ROW_PARAMETERS const float *values, int64_t stride, int32_t count, int64_t row, int64_t rows, float threshold

static int64_t next_row_plain(ROW_PARAMETERS) { NEXT_ROW(four, four_misses, 0.0f) }

static int64_t next_row_beyond_plain(ROW_PARAMETERS) { NEXT_ROW(four, four_misses, from[count]) }

#if defined(__x86_64__)

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_misses __attribute__((vector_size(32), aligned(4), may_alias));

__attribute__((target("avx2"))) static int64_t next_row_avx2(ROW_PARAMETERS) { NEXT_ROW(eight, eight_misses, 0.0f) }

__attribute__((target("avx2"))) static int64_t next_row_beyond_avx2(ROW_PARAMETERS){NEXT_ROW(eight, eight_misses, from[count])}

ei_next_row ei_choose_next_row(int beyond) {
    if (__builtin_cpu_supports("avx2")) {
        return beyond ? next_row_beyond_avx2 : next_row_avx2;
    }
    return beyond ? next_row_beyond_plain : next_row_plain;
}

#else

ei_next_row ei_choose_next_row(int beyond) { return beyond ? next_row_beyond_plain : next_row_plain; }

#endif
