#include "classes.h"

#include <string.h>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// The cells of a block: their highest scores and its planes stay in the nearest cache while the planes pass over them, and a block is long
// enough that memory hands a plane's part over at full speed.
#define BLOCK 1024

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_numbers __attribute__((vector_size(16), aligned(4), may_alias));

// Takes each number of yes where the mask has all bits set, of no where it has none.
#define BY_BITS(mask, yes, no) (((yes) & (mask)) | ((no) & ~(mask)))
#define BY_LANES(mask, yes, no) ((eight_numbers)_mm256_blendv_epi8((__m256i)(no), (__m256i)(yes), (__m256i)(mask)))

// Two planes at a time, so that what was highest so far is read and written half as often. Of equal scores the first one counts.
#define HIGHEST(extra, name, lanes, numbers, SELECT)                                                \
    extra static int64_t name(const float* scores, int32_t planes, int64_t count, uint8_t* out) {   \
        const int64_t step = (int64_t)(sizeof(lanes) / sizeof(float));                              \
        float best[BLOCK];                                                                          \
        int32_t which[BLOCK];                                                                       \
        int64_t none = 0;                                                                           \
        for (int64_t from = 0; from < count; from += BLOCK) {                                       \
            const int64_t length = count - from < BLOCK ? count - from : BLOCK;                     \
            memcpy(best, scores + from, sizeof(*best) * (size_t)length);                            \
            memset(which, 0, sizeof(*which) * (size_t)length);                                      \
            int32_t p = 1;                                                                          \
            for (; p + 1 < planes; p += 2) {                                                        \
                const float *first = scores + p * count + from, *second = first + count;            \
                int64_t x = 0;                                                                      \
                for (; x + step <= length; x += step) {                                             \
                    const lanes a = *(const lanes*)(first + x), b = *(const lanes*)(second + x);    \
                    const lanes old = *(const lanes*)(best + x);                                    \
                    const numbers later = b > a;                                                    \
                    const lanes higher = (lanes)SELECT(later, (numbers)b, (numbers)a);              \
                    const numbers over = higher > old;                                              \
                    *(lanes*)(best + x) = (lanes)SELECT(over, (numbers)higher, (numbers)old);       \
                    /* A comparison is -1 where it holds. */                                        \
                    *(numbers*)(which + x) = SELECT(over, p - later, *(const numbers*)(which + x)); \
                }                                                                                   \
                for (; x < length; x++) {                                                           \
                    for (int32_t q = 0; q < 2; q++) {                                               \
                        const float score = (q ? second : first)[x];                                \
                        if (score > best[x]) {                                                      \
                            best[x] = score;                                                        \
                            which[x] = p + q;                                                       \
                        }                                                                           \
                    }                                                                               \
                }                                                                                   \
            }                                                                                       \
            for (; p < planes; p++) {                                                               \
                const float* last = scores + p * count + from;                                      \
                for (int64_t x = 0; x < length; x++) {                                              \
                    which[x] = last[x] > best[x] ? p : which[x];                                    \
                    best[x] = last[x] > best[x] ? last[x] : best[x];                                \
                }                                                                                   \
            }                                                                                       \
            for (int64_t x = 0; x < length; x++) {                                                  \
                const int unknown = best[x] != best[x];                                             \
                none += unknown;                                                                    \
                out[from + x] = unknown ? EI_NO_CLASS : (uint8_t)which[x];                          \
            }                                                                                       \
        }                                                                                           \
        return none;                                                                                \
    }

HIGHEST(, highest_plain, four, four_numbers, BY_BITS)

#if defined(__x86_64__)

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_numbers __attribute__((vector_size(32), aligned(4), may_alias));

HIGHEST(__attribute__((target("avx2"))), highest_avx2, eight, eight_numbers, BY_LANES)

#endif

int64_t ei_highest_plane(const float* scores, int32_t planes, int64_t count, uint8_t* out) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        return highest_avx2(scores, planes, count, out);
    }
#endif
    return highest_plain(scores, planes, count, out);
}

#define NARROW(name, type, wide)                                                 \
    int64_t name(const type* numbers, int64_t count, wide limit, uint8_t* out) { \
        int64_t none = 0;                                                        \
        for (int64_t i = 0; i < count; i++) {                                    \
            const int known = numbers[i] >= 0 && numbers[i] < limit;             \
            out[i] = known ? (uint8_t)numbers[i] : EI_NO_CLASS;                  \
            none += !known;                                                      \
        }                                                                        \
        return none;                                                             \
    }

NARROW(ei_narrow_int32, int32_t, int32_t)
NARROW(ei_narrow_int64, int64_t, int64_t)
NARROW(ei_narrow_uint8, uint8_t, int32_t)
