// Bilinear interpolation in the arithmetic of OpenCV's INTER_LINEAR.
#include <math.h>

#include "steps.h"

enum { COEFFICIENT_BITS = 11, COEFFICIENT_ONE = 1 << COEFFICIENT_BITS };

static size_t line_bytes(const ei_window *window) { return ei_padded((size_t)window->columns * sizeof(int16_t)); }

static size_t levels_pitch(const ei_window *window) { return ei_padded((size_t)window->columns); }

static size_t table_size(const ei_letterbox *box, const ei_window *window) {
    (void)box;
    return 2 * ((size_t)window->columns + (size_t)window->rows);
}

// Two lines of three planes, a row of levels for interleaved inputs, and a converted row.
static size_t scratch_size(const ei_letterbox *box, const ei_window *window) {
    return 6 * line_bytes(window) + 3 * levels_pitch(window) + ei_packed_row_size(box);
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

static void prepare(const ei_letterbox *box, const ei_window *window, ei_table_head *head, int32_t *tables) {
    int32_t *columns = tables, *column_weights = columns + window->columns;
    int32_t *rows = column_weights + window->columns, *row_weights = rows + window->rows;
    for (int y = 0; y < window->rows; y++) {
        rows[y] = position(window->inner_y + y, box->source_height, box->inner_height, &row_weights[y]);
    }
    int pixel = ei_packed_pixel(box);
    long long row_bytes = (long long)pixel * box->source_width;
    head->wide = 0;
    for (int i = 0; i < window->columns; i++) {
        int32_t s = position(window->inner_x + i, box->source_width, box->inner_width, &column_weights[i]);
        // Beyond the outermost centres the outermost sample counts alone. At the right end it is taken as the second one of its pair, so
        // that both samples exist unless the image is one pixel wide.
        if (s < 0) {
            s = 0;
            column_weights[i] = COEFFICIENT_ONE;
        } else if (s >= box->source_width - 1) {
            s = box->source_width > 1 ? box->source_width - 2 : 0;
            column_weights[i] = box->source_width > 1 ? COEFFICIENT_ONE << 16 : COEFFICIENT_ONE;
        }
        columns[i] = s * pixel;
        if (box->source_width > 1 && columns[i] + 8 <= row_bytes) {
            head->wide = i + 1;
        }
        if (i == 0) {
            head->from = s;
        }
        head->to = s + 2 < box->source_width ? s + 2 : box->source_width;
    }
}

static void run(const ei_kernels *k, const ei_letterbox *box, const ei_window *window, const ei_table_head *head, const int32_t *elements,
                const int32_t *tables, uint8_t *scratch, const uint8_t *source, size_t stride, void *output) {
    const int32_t *columns = tables, *column_weights = columns + window->columns;
    const int32_t *rows = column_weights + window->columns, *row_weights = rows + window->rows;
    const size_t line = line_bytes(window), pitch = levels_pitch(window), plane = line / sizeof(int16_t);
    int16_t *lines[2] = {(int16_t *)scratch, (int16_t *)(scratch + 3 * line)};
    uint8_t *levels = scratch + 6 * line, *converted = levels + 3 * pitch;
    int held[2] = {-1, -1};  // source row of each set of lines
    const int pixel = ei_packed_pixel(box), planes = pixel == 1 ? 1 : 3, bottom = box->source_height - 1;
    for (int y = 0; y < window->rows; y++) {
        const int above = rows[y] < 0 ? 0 : rows[y] < bottom ? rows[y] : bottom;
        const int need[2] = {above, rows[y] < 0 ? 0 : above < bottom ? above + 1 : bottom};
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
            const uint8_t *packed = ei_packed_row(k, box, head, source, stride, need[i], converted);
            k->columns[pixel == 1 ? 0 : pixel - 2](packed, pixel, box->source_width > 1 ? pixel : 0, columns, column_weights,
                                                   window->columns, head->wide, lines[i], plane);
            held[i] = need[i];
        }
        const int16_t b0 = (int16_t)(row_weights[y] & 0xffff), b1 = (int16_t)(row_weights[y] >> 16);
        if (box->interleaved) {
            for (int p = 0; p < planes; p++) {
                k->blend[EI_UINT8](lines[0] + (size_t)p * plane, lines[1] + (size_t)p * plane, b0, b1, window->columns, 1, 0,
                                   levels + (size_t)p * pitch);
            }
            ei_put_levels(k, box, window, elements, levels, pitch, planes, y, output);
            continue;
        }
        for (int c = 0; c < box->channels; c++) {
            const size_t from = ei_plane(planes, c) * plane;
            k->blend[box->element](lines[0] + from, lines[1] + from, b0, b1, window->columns, box->scale[c], box->bias[c],
                                   ei_output_at(box, window, y, c, output));
        }
    }
}

const ei_method ei_bilinear = {table_size, scratch_size, prepare, run};
