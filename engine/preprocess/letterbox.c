#include "letterbox.h"

#include <math.h>
#include <string.h>

#include "rows.h"

enum { COEFFICIENT_BITS = 11, COEFFICIENT_ONE = 1 << COEFFICIENT_BITS };

// Rows of the scratch memory start at multiples of a cache line and end with room for one whole vector.
static size_t padded(size_t bytes) { return (bytes + 127) / 64 * 64; }

static size_t lines_bytes(const ei_letterbox *box) { return padded((size_t)box->inner_width * sizeof(int16_t)); }

static int packed_pixel(const ei_letterbox *box) {
    if (box->channels == 1 || box->format == EI_GRAY8) {
        return 1;
    }
    return box->format == EI_BGR ? 3 : 4;
}

size_t ei_letterbox_table_size(const ei_letterbox *box) { return 2 * ((size_t)box->inner_width + (size_t)box->inner_height); }

// Two lines of three planes, one converted row of BGRx and one of gray.
size_t ei_letterbox_scratch_size(const ei_letterbox *box) {
    return 64 + 6 * lines_bytes(box) + padded(4 * (size_t)box->source_width) + padded((size_t)box->source_width);
}

// position returns the source position left of (above) the centre of output position i, and the weights of it and its successor in the
// low and high half of an int32.
static int32_t position(int i, int source, int inner, int32_t *weights) {
    double scale = 1.0 / ((double)inner / (double)source);
    float f = (float)((i + 0.5) * scale - 0.5);
    int32_t s = (int32_t)floorf(f);
    f -= (float)s;
    uint32_t a0 = (uint32_t)lrintf((1.0f - f) * COEFFICIENT_ONE), a1 = (uint32_t)lrintf(f * COEFFICIENT_ONE);
    *weights = (int32_t)(a0 | a1 << 16);
    return s;
}

void ei_letterbox_prepare(ei_letterbox *box, int32_t *tables) {
    int32_t *columns = tables, *column_weights = columns + box->inner_width;
    int32_t *rows = column_weights + box->inner_width, *row_weights = rows + box->inner_height;
    for (int y = 0; y < box->inner_height; y++) {
        rows[y] = position(y, box->source_height, box->inner_height, &row_weights[y]);
    }
    int pixel = packed_pixel(box);
    long long row_bytes = (long long)pixel * box->source_width;
    box->wide_columns = 0;
    for (int i = 0; i < box->inner_width; i++) {
        int32_t s = position(i, box->source_width, box->inner_width, &column_weights[i]);
        // Beyond the outermost centres the outermost sample counts alone. At the right end it is taken as the second one of its pair, so
        // that both samples exist unless the picture is one pixel wide.
        if (s < 0) {
            s = 0;
            column_weights[i] = COEFFICIENT_ONE;
        } else if (s >= box->source_width - 1) {
            s = box->source_width > 1 ? box->source_width - 2 : 0;
            column_weights[i] = box->source_width > 1 ? COEFFICIENT_ONE << 16 : COEFFICIENT_ONE;
        }
        columns[i] = s * pixel;
        if (box->source_width > 1 && columns[i] + 8 <= row_bytes) {
            box->wide_columns = i + 1;
        }
    }
}

// packed_row returns a source row as BGR, BGRx or gray samples side by side, converted into the scratch memory where it is not.
static const uint8_t *packed_row(const ei_kernels *k, const ei_letterbox *box, const uint8_t *source, size_t stride, int y, uint8_t *bgrx,
                                 uint8_t *gray) {
    const uint8_t *row = source + (size_t)y * stride;
    const uint8_t *packed = row;
    int width = box->source_width;
    if (box->format == EI_GRAY8) {
        return row;
    }
    if (box->format == EI_NV12) {
        k->nv12_row(row, source + (size_t)(box->source_height + y / 2) * stride, width, bgrx);
        packed = bgrx;
    } else if (box->format == EI_YUYV) {
        k->yuyv_row(row, width, bgrx);
        packed = bgrx;
    }
    if (box->channels == 1) {
        ei_gray_row(packed, box->format == EI_BGR ? 3 : 4, width, gray);
        return gray;
    }
    return packed;
}

// fill writes count elements of the border.
static void fill(const ei_letterbox *box, void *output, size_t at, size_t count) {
    if (box->half) {
        uint16_t value = ei_half_of_level(114), *out = (uint16_t *)output + at;
        for (size_t i = 0; i < count; i++) {
            out[i] = value;
        }
        return;
    }
    float value = 114 * EI_LEVEL, *out = (float *)output + at;
    for (size_t i = 0; i < count; i++) {
        out[i] = value;
    }
}

static void draw_border(const ei_letterbox *box, void *output) {
    size_t width = (size_t)box->width, plane = width * (size_t)box->height;
    size_t bottom = (size_t)box->top + (size_t)box->inner_height, right = (size_t)box->left + (size_t)box->inner_width;
    for (int c = 0; c < box->channels; c++) {
        size_t start = (size_t)c * plane;
        fill(box, output, start, (size_t)box->top * width);
        if (box->inner_width < box->width) {
            for (size_t y = (size_t)box->top; y < bottom; y++) {
                fill(box, output, start + y * width, (size_t)box->left);
                fill(box, output, start + y * width + right, width - right);
            }
        }
        fill(box, output, start + bottom * width, plane - bottom * width);
    }
}

void ei_letterbox_run_with(const ei_kernels *k, const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source,
                           size_t stride, int border, void *output) {
    const int32_t *columns = tables, *column_weights = columns + box->inner_width;
    const int32_t *rows = column_weights + box->inner_width, *row_weights = rows + box->inner_height;
    uint8_t *memory = (uint8_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    size_t line = lines_bytes(box), element = box->half ? 2 : 4;
    int16_t *lines[2] = {(int16_t *)memory, (int16_t *)(memory + 3 * line)};
    uint8_t *bgrx = memory + 6 * line, *gray = bgrx + padded(4 * (size_t)box->source_width);
    int held[2] = {-1, -1};  // source row of each set of lines
    int pixel = packed_pixel(box), planes = pixel == 1 ? 1 : 3;
    int bottom = box->source_height - 1;
    size_t plane = (size_t)box->width * (size_t)box->height;

    if (border) {
        draw_border(box, output);
    }
    for (int y = 0; y < box->inner_height; y++) {
        int need[2] = {rows[y] < 0 ? 0 : rows[y], rows[y] < bottom ? rows[y] + 1 : bottom};
        if (held[0] != need[0] && held[1] == need[0]) {
            int16_t *swap = lines[0];
            lines[0] = lines[1];
            lines[1] = swap;
            held[1] = held[0];
            held[0] = need[0];
        }
        for (int i = 0; i < 2; i++) {
            if (held[i] == need[i]) {
                continue;
            }
            const uint8_t *packed = packed_row(k, box, source, stride, need[i], bgrx, gray);
            k->columns[pixel == 1 ? 0 : pixel - 2](packed, pixel, box->source_width > 1 ? pixel : 0, columns, column_weights,
                                                   box->inner_width, box->wide_columns, lines[i], line / sizeof(int16_t));
            held[i] = need[i];
        }
        int16_t b0 = (int16_t)(row_weights[y] & 0xffff), b1 = (int16_t)(row_weights[y] >> 16);
        size_t at = (size_t)(box->top + y) * (size_t)box->width + (size_t)box->left;
        for (int c = 0; c < box->channels; c++) {
            // Lines are B, G, R; planes are R, G, B.
            size_t from = planes == 1 ? 0 : (size_t)(2 - c) * line / sizeof(int16_t);
            k->blend[box->half](lines[0] + from, lines[1] + from, b0, b1, box->inner_width,
                                (uint8_t *)output + ((size_t)c * plane + at) * element);
        }
    }
}

void ei_letterbox_run(const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source, size_t stride, int border,
                      void *output) {
    ei_letterbox_run_with(ei_kernels_of_this_machine(), box, tables, scratch, source, stride, border, output);
}

const char *ei_letterbox_isa(void) { return ei_kernels_of_this_machine()->name; }
