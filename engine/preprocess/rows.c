#include "rows.h"

#include <string.h>

#include "colour.h"

static void nv12_row(const uint8_t *luma, const uint8_t *chroma, int width, uint8_t *bgr) {
    ei_yuv_row(luma, 1, chroma, chroma + 1, 2, width, bgr);
}

static void yuyv_row(const uint8_t *row, int width, uint8_t *bgr) { ei_yuv_row(row, 2, row + 1, row + 3, 4, width, bgr); }

static void gray_row(const uint8_t *row, int pixel, int width, uint8_t *gray) {
    if (pixel == 3) {
        ei_gray_row(row, 3, width, gray);
    } else {
        ei_gray_row(row, 4, width, gray);
    }
}

void ei_columns_from(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int from, int count,
                     int16_t *lines, size_t pitch) {
    int channels = pixel == 1 ? 1 : 3;
    for (int i = from; i < count; i++) {
        const uint8_t *first = row + offsets[i], *second = first + step;
        int32_t a0 = weights[i] & 0xffff, a1 = weights[i] >> 16;
        for (int c = 0; c < channels; c++) {
            lines[(size_t)c * pitch + (size_t)i] = (int16_t)((first[c] * a0 + second[c] * a1) >> 4);
        }
    }
}

static void columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                    int16_t *lines, size_t pitch) {
    (void)wide;
    ei_columns_from(row, pixel, step, offsets, weights, 0, count, lines, pitch);
}

static inline int32_t level(int16_t upper, int16_t lower, int16_t b0, int16_t b1) {
    return (((b0 * upper) >> 16) + ((b1 * lower) >> 16) + 2) >> 2;
}

void ei_blend_float_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float *output) {
    for (int i = from; i < count; i++) {
        output[i] = (float)level(upper[i], lower[i], b0, b1) * EI_LEVEL;
    }
}

void ei_blend_half_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, uint16_t *output) {
    for (int i = from; i < count; i++) {
        output[i] = ei_half_of_level(level(upper[i], lower[i], b0, b1));
    }
}

static void blend_float(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, void *output) {
    ei_blend_float_from(upper, lower, b0, b1, 0, count, output);
}

static void blend_half(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, void *output) {
    ei_blend_half_from(upper, lower, b0, b1, 0, count, output);
}

// Rounds to nearest, ties to even. Levels over 0 are normal numbers in both formats, so only exponent and mantissa are to be moved.
uint16_t ei_half_of_level(int level) {
    if (level == 0) {
        return 0;
    }
    float value = (float)level * EI_LEVEL;
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    bits -= (uint32_t)(127 - 15) << 23;
    return (uint16_t)((bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

const ei_kernels ei_kernels_plain = {"plain", nv12_row, yuyv_row, gray_row, {columns, columns, columns}, {blend_float, blend_half}};

const ei_kernels *ei_kernels_of_this_machine(void) {
    const ei_kernels *set = ei_kernels_avx2();
    if (!set) {
        set = ei_kernels_neon();
    }
    return set ? set : &ei_kernels_plain;
}
