#include "rows.h"

#include <stdatomic.h>
#include <string.h>

#include "half.h"
#include "taps.h"

static uint8_t clamped(int32_t fixed) {
    int32_t v = fixed >> EI_YUV_SHIFT;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

// Two pixels with one U and V.
static void yuv_pair(uint8_t luma0, uint8_t luma1, int32_t u, int32_t v, uint8_t *bgrx) {
    int32_t y[2] = {luma0 < 16 ? 0 : (luma0 - 16) * EI_Y, luma1 < 16 ? 0 : (luma1 - 16) * EI_Y};
    u -= 128;
    v -= 128;
    for (int i = 0; i < 2; i++) {
        bgrx[4 * i] = clamped(y[i] + EI_YUV_HALF + EI_UB * u);
        bgrx[4 * i + 1] = clamped(y[i] + EI_YUV_HALF + EI_VG * v + EI_UG * u);
        bgrx[4 * i + 2] = clamped(y[i] + EI_YUV_HALF + EI_VR * v);
        bgrx[4 * i + 3] = 0;
    }
}

void ei_nv12_from(const uint8_t *luma, const uint8_t *chroma, int from, int count, uint8_t *bgrx) {
    for (int i = from; i < count; i += 2) {
        yuv_pair(luma[i], luma[i + 1], chroma[i], chroma[i + 1], bgrx + 4 * i);
    }
}

void ei_yuyv_from(const uint8_t *row, int from, int count, uint8_t *bgrx) {
    for (int i = from; i < count; i += 2) {
        const uint8_t *p = row + 2 * i;
        yuv_pair(p[0], p[2], p[1], p[3], bgrx + 4 * i);
    }
}

void ei_gray_row(const uint8_t *row, int pixel, int width, uint8_t *gray) {
    for (int i = 0; i < width; i++) {
        const uint8_t *p = row + i * pixel;
        gray[i] = (uint8_t)((p[0] * 3735 + p[1] * 19235 + p[2] * 9798 + (1 << 14)) >> 15);
    }
}

static void nv12_row(const uint8_t *luma, const uint8_t *chroma, int width, uint8_t *bgrx) { ei_nv12_from(luma, chroma, 0, width, bgrx); }

static void yuyv_row(const uint8_t *row, int width, uint8_t *bgrx) { ei_yuyv_from(row, 0, width, bgrx); }

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

void ei_blend_float_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float scale, float bias,
                         float *output) {
    for (int i = from; i < count; i++) {
        output[i] = (float)level(upper[i], lower[i], b0, b1) * scale + bias;
    }
}

void ei_blend_half_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float scale, float bias,
                        uint16_t *output) {
    for (int i = from; i < count; i++) {
        output[i] = ei_half((float)level(upper[i], lower[i], b0, b1) * scale + bias);
    }
}

void ei_blend_bytes_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, uint8_t *output) {
    for (int i = from; i < count; i++) {
        output[i] = (uint8_t)level(upper[i], lower[i], b0, b1);
    }
}

static void blend_float(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                        void *output) {
    ei_blend_float_from(upper, lower, b0, b1, 0, count, scale, bias, output);
}

static void blend_half(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                       void *output) {
    ei_blend_half_from(upper, lower, b0, b1, 0, count, scale, bias, output);
}

static void blend_bytes(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                        void *output) {
    (void)scale;
    (void)bias;
    ei_blend_bytes_from(upper, lower, b0, b1, 0, count, output);
}

void ei_weigh_columns_from(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int from,
                           int count, uint8_t *lines, size_t pitch) {
    int channels = pixel == 1 ? 1 : 3;
    for (int i = from; i < count; i++) {
        const int32_t *w = weights + (size_t)i * (size_t)padded;
        for (int c = 0; c < channels; c++) {
            const uint8_t *p = row + offsets[i] + c;
            int32_t sum = 0;
            for (int k = 0; k < taps; k++) {
                sum += w[k] * p[k * pixel];
            }
            lines[(size_t)c * pitch + (size_t)i] = (uint8_t)ei_rounded(sum);
        }
    }
}

static void weigh_columns(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                          int wide, uint8_t *lines, size_t pitch) {
    (void)wide;
    ei_weigh_columns_from(row, pixel, offsets, weights, taps, padded, 0, count, lines, pitch);
}

void ei_weigh_lines_from(const uint8_t *const *lines, const int32_t *weights, int taps, int from, int count, uint8_t *levels) {
    for (int i = from; i < count; i++) {
        int32_t sum = 0;
        for (int k = 0; k < taps; k++) {
            sum += weights[k] * lines[k][i];
        }
        levels[i] = (uint8_t)ei_rounded(sum);
    }
}

static void weigh_lines(const uint8_t *const *lines, const int32_t *weights, int taps, int count, uint8_t *levels) {
    ei_weigh_lines_from(lines, weights, taps, 0, count, levels);
}

void ei_store_float_from(const uint8_t *levels, int from, int count, float scale, float bias, float *output) {
    for (int i = from; i < count; i++) {
        output[i] = (float)levels[i] * scale + bias;
    }
}

void ei_store_half_from(const uint8_t *levels, int from, int count, float scale, float bias, uint16_t *output) {
    for (int i = from; i < count; i++) {
        output[i] = ei_half((float)levels[i] * scale + bias);
    }
}

static void store_float(const uint8_t *levels, int count, float scale, float bias, void *output) {
    ei_store_float_from(levels, 0, count, scale, bias, output);
}

static void store_half(const uint8_t *levels, int count, float scale, float bias, void *output) {
    ei_store_half_from(levels, 0, count, scale, bias, output);
}

void ei_store_bytes(const uint8_t *levels, int count, float scale, float bias, void *output) {
    (void)scale;
    (void)bias;
    memcpy(output, levels, (size_t)count);
}

const ei_kernels ei_kernels_plain = {
    .name = "plain",
    .nv12_row = nv12_row,
    .yuyv_row = yuyv_row,
    .columns = {columns, columns, columns},
    .blend = {blend_float, blend_half, blend_bytes},
    .weigh_columns = {weigh_columns, weigh_columns, weigh_columns},
    .weigh_lines = weigh_lines,
    .store = {store_float, store_half, ei_store_bytes},
};

// The choice is cached: CPUID traps to the hypervisor on virtual machines.
const ei_kernels *ei_kernels_of_this_machine(void) {
    static const ei_kernels *_Atomic chosen;
    const ei_kernels *set = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (set) {
        return set;
    }
    set = ei_kernels_avx2();
    if (!set) {
        set = ei_kernels_neon();
    }
    if (!set) {
        set = &ei_kernels_plain;
    }
    atomic_store_explicit(&chosen, set, memory_order_relaxed);
    return set;
}
