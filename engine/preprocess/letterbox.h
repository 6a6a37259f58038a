// From a camera's image to a network's input on the CPU: resize, border, colour conversion, scaling and layout in one pass over the
// image.
#ifndef EDGE_INFER_PREPROCESS_LETTERBOX_H_
#define EDGE_INFER_PREPROCESS_LETTERBOX_H_

#include <stddef.h>
#include <stdint.h>

// Same numbers as engine.PixelFormat.
enum { EI_BGR, EI_BGRX, EI_NV12, EI_YUYV, EI_GRAY8 };

// Elements of the input.
enum { EI_FLOAT32, EI_FLOAT16, EI_UINT8 };

// EI_BILINEAR has half-pixel centres and the 11-bit fixed-point arithmetic of OpenCV's INTER_LINEAR. The others have the arithmetic of
// Pillow: all pixels within the filter, weights of 22 bits, columns first, then rows, each rounded to 8 bits.
enum { EI_BILINEAR, EI_BILINEAR_ANTIALIAS, EI_BICUBIC_ANTIALIAS };

// Parameters for images of one size and format. It holds no pointers, so that Go may own it and GPU kernels take it by value.
typedef struct {
    int32_t format;
    int32_t source_width, source_height;
    int32_t interpolation;
    // The image becomes inner_width by inner_height and its corner lies at left, top of the input; what is outside of it is cut off.
    int32_t width, height, left, top, inner_width, inner_height;
    int32_t channels;     // 3 or 1 (gray)
    int32_t bgr;          // order of the 3 in the input
    int32_t interleaved;  // the 3 are side by side, not in planes
    int32_t element;
    int32_t pad;              // level of the border
    float scale[3], bias[3];  // of R (or gray), G and B: level * scale + bias; floating-point elements only
} ei_letterbox;

// Number of int32 in the tables and of bytes in the scratch memory that ei_letterbox_run needs.
size_t ei_letterbox_table_size(const ei_letterbox *box);
size_t ei_letterbox_scratch_size(const ei_letterbox *box);

// Fills the tables.
void ei_letterbox_prepare(const ei_letterbox *box, int32_t *tables);

// Writes one image. Reads nothing outside the image's rows. border is 0 when the output already holds the border of this geometry.
void ei_letterbox_run(const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source, size_t stride, int border,
                      void *output);

// Name of the instruction set that ei_letterbox_run uses on this machine.
const char *ei_letterbox_isa(void);

#endif
