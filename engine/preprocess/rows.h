// Row kernels of the letterbox, one set per instruction set. All sets give the same numbers.
#ifndef EDGE_INFER_PREPROCESS_ROWS_H_
#define EDGE_INFER_PREPROCESS_ROWS_H_

#include <stddef.h>
#include <stdint.h>

#include "letterbox.h"

#ifdef __clang__  // gcc follows ISO C by default
#pragma STDC FP_CONTRACT OFF
#endif

// The weights of one output pixel are padded with zeros to a multiple of this.
enum { EI_WEIGHT_GROUP = 8 };

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
    // Vertical step: the levels of two lines, as elements of the input.
    void (*blend[3])(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias, void *output);
    // The antialiased steps: taps weighted pixels of a row, or taps weighted lines, make one level. weights has padded numbers for each
    // column; the first wide columns may be loaded as far as those reach.
    void (*weigh_columns[3])(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                             int wide, uint8_t *lines, size_t pitch);
    void (*weigh_lines)(const uint8_t *const *lines, const int32_t *weights, int taps, int count, uint8_t *levels);
    // Levels as elements of the input.
    void (*store[3])(const uint8_t *levels, int count, float scale, float bias, void *output);
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
void ei_blend_float_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float scale, float bias,
                         float *output);
void ei_blend_half_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, float scale, float bias,
                        uint16_t *output);
void ei_blend_bytes_from(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int from, int count, uint8_t *output);
void ei_weigh_columns_from(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int from,
                           int count, uint8_t *lines, size_t pitch);
void ei_weigh_lines_from(const uint8_t *const *lines, const int32_t *weights, int taps, int from, int count, uint8_t *levels);
void ei_store_float_from(const uint8_t *levels, int from, int count, float scale, float bias, float *output);
void ei_store_half_from(const uint8_t *levels, int from, int count, float scale, float bias, uint16_t *output);
void ei_store_bytes(const uint8_t *levels, int count, float scale, float bias, void *output);

// BGR or BGRx to gray.
void ei_gray_row(const uint8_t *row, int pixel, int width, uint8_t *gray);

#endif
