// Row kernels of the letterbox, one set per instruction set. All sets give the same numbers.
#ifndef EDGE_INFER_PREPROCESS_ROWS_H_
#define EDGE_INFER_PREPROCESS_ROWS_H_

#include <stddef.h>
#include <stdint.h>

#include "letterbox.h"

#define EI_LEVEL (1.0f / 255.0f)

typedef struct {
    const char *name;
    // BT.601 limited range to BGRx, as OpenCV rounds it; width is even.
    void (*nv12_row)(const uint8_t *luma, const uint8_t *chroma, int width, uint8_t *bgrx);
    void (*yuyv_row)(const uint8_t *row, int width, uint8_t *bgrx);
    // Horizontal step: line c of lines, pitch elements apart, gets (first * a0 + second * a1) >> 4 for channel c of every column. offsets
    // are bytes from row to the first sample, step bytes to the second; the first wide columns may be loaded 8 bytes at a time. Indexed by
    // samples a pixel: 0 for one, 1 for three, 2 for four (the last one ignored).
    void (*columns[3])(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                       int16_t *lines, size_t pitch);
    // Vertical step: levels of two lines, scaled to 0..1, as binary32 (0) or binary16 (1).
    void (*blend[2])(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, void *output);
} ei_kernels;

const ei_kernels *ei_kernels_of_this_machine(void);

// Sets; NULL where the machine or the compiler has no such instructions.
extern const ei_kernels ei_kernels_plain;
const ei_kernels *ei_kernels_avx2(void);
const ei_kernels *ei_kernels_neon(void);

// ei_letterbox_run on a given set.
void ei_letterbox_run_with(const ei_kernels *kernels, const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source,
                           size_t stride, int border, void *output);

// BT.601 limited range in 20-bit fixed point.
enum { EI_Y = 1220542, EI_UB = 2116026, EI_UG = -409993, EI_VG = -852492, EI_VR = 1673527, EI_YUV_SHIFT = 20, EI_YUV_HALF = 1 << 19 };

// The scalar steps, for the ends of rows that a vector does not fill: pixels, columns or elements from..count-1.
void ei_nv12_from(const uint8_t *luma, const uint8_t *chroma, int from, int count, uint8_t *bgrx);
void ei_yuyv_from(const uint8_t *row, int from, int count, uint8_t *bgrx);
void ei_columns_from(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int from, int count,
                     int16_t *lines, size_t pitch);
void ei_blend_float_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float *output);
void ei_blend_half_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, uint16_t *output);

// BGR or BGRx to gray.
void ei_gray_row(const uint8_t *row, int pixel, int width, uint8_t *gray);

// binary16 of level / 255.
uint16_t ei_half_of_level(int level);

#endif
