// The CPU letterbox: bilinear resize (half-pixel centres, the 11-bit fixed-point arithmetic of OpenCV's INTER_LINEAR), border, colour
// conversion, scaling to 0..1 and split into planes.
#ifndef EDGE_INFER_PREPROCESS_LETTERBOX_H_
#define EDGE_INFER_PREPROCESS_LETTERBOX_H_

#include <stddef.h>
#include <stdint.h>

// Same numbers as engine.PixelFormat.
enum { EI_BGR, EI_BGRX, EI_NV12, EI_YUYV, EI_GRAY8 };

// One source size and network input. It holds no pointers, so that Go may own it.
typedef struct {
    int32_t format;
    int32_t channels;  // planes of the output: 3 (R, G, B) or 1 (gray)
    int32_t half;      // output elements are IEEE binary16 instead of binary32
    int32_t source_width, source_height;
    int32_t width, height, left, top, inner_width, inner_height;
    int32_t wide_columns;  // leading columns whose 8-byte loads stay inside a row
} ei_letterbox;

// Number of int32 in the tables and of bytes in the scratch memory that ei_letterbox_run needs.
size_t ei_letterbox_table_size(const ei_letterbox *box);
size_t ei_letterbox_scratch_size(const ei_letterbox *box);

// Fills the tables and box->wide_columns.
void ei_letterbox_prepare(ei_letterbox *box, int32_t *tables);

// Writes one picture. Reads nothing outside the picture's rows. border is 0 when the output already holds the border of this geometry.
void ei_letterbox_run(const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source, size_t stride, int border,
                      void *output);

// Name of the instruction set that ei_letterbox_run uses on this machine.
const char *ei_letterbox_isa(void);

#endif
