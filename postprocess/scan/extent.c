#include "extent.h"

#include <string.h>

typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
typedef int32_t four_hits __attribute__((vector_size(16), aligned(4), may_alias));

// A row marks the columns in which it is over 0, and is asked itself by what its lanes have marked together.
#define EXTENT(lanes, hits)                                        \
    const int32_t step = (int32_t)(sizeof(lanes) / sizeof(float)); \
    int32_t first = height, last = 0, left = 0, right = width;     \
    memset(columns, 0, sizeof(*columns) * (size_t)width);          \
    for (int32_t y = 0; y < height; y++) {                         \
        const float* from = grid + (int64_t)y * width;             \
        hits row = {0};                                            \
        int32_t x = 0, any = 0;                                    \
        for (; x + step <= width; x += step) {                     \
            const hits over = *(const lanes*)(from + x) > 0.0f;    \
            *(hits*)(columns + x) |= over;                         \
            row |= over;                                           \
        }                                                          \
        for (; x < width; x++) {                                   \
            columns[x] |= from[x] > 0.0f;                          \
            any |= from[x] > 0.0f;                                 \
        }                                                          \
        for (int32_t lane = 0; lane < step; lane++) {              \
            any |= row[lane];                                      \
        }                                                          \
        if (any) {                                                 \
            first = first < y ? first : y;                         \
            last = y + 1;                                          \
        }                                                          \
    }                                                              \
    memset(bounds, 0, 4 * sizeof(*bounds));                        \
    if (last == 0) {                                               \
        return;                                                    \
    }                                                              \
    for (; !columns[left]; left++) {                               \
    }                                                              \
    for (; !columns[right - 1]; right--) {                         \
    }                                                              \
    bounds[0] = left, bounds[1] = first, bounds[2] = right, bounds[3] = last;

static void extent_plain(const float* grid, int32_t width, int32_t height, int32_t* columns, int32_t* bounds) { EXTENT(four, four_hits) }

#if defined(__x86_64__)

typedef float eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t eight_hits __attribute__((vector_size(32), aligned(4), may_alias));

__attribute__((target("avx2"))) static void extent_avx2(const float* grid, int32_t width, int32_t height, int32_t* columns,
                                                        int32_t* bounds) {
    EXTENT(eight, eight_hits)
}

#endif

void ei_extent(const float* grid, int32_t width, int32_t height, int32_t* columns, int32_t bounds[4]) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        extent_avx2(grid, width, height, columns, bounds);
        return;
    }
#endif
    extent_plain(grid, width, height, columns, bounds);
}
