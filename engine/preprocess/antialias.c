// Antialiased interpolation in the arithmetic of Pillow: columns first, then rows, with 8-bit levels in between.
#include <string.h>

#include "steps.h"
#include "taps.h"

// most bounds how many pixels of an axis make one.
static int most(int source, int inner, int interpolation) {
    const int longer = source > inner ? source : inner, reach = 2 * longer * (interpolation == EI_BICUBIC_ANTIALIAS ? 2 : 1);
    const int count = (2 * reach + 2 * inner - 1) / (2 * inner);
    return count < source ? count : source;
}

static int taps_x(const ei_letterbox *box) { return most(box->source_width, box->inner_width, box->interpolation); }

static int taps_y(const ei_letterbox *box) { return most(box->source_height, box->inner_height, box->interpolation); }

static int padded(int taps) { return (taps + EI_WEIGHT_GROUP - 1) / EI_WEIGHT_GROUP * EI_WEIGHT_GROUP; }

static size_t pitch(const ei_window *window) { return ei_padded((size_t)window->columns); }

// First pixels and weights of the columns, then of the rows.
static size_t table_size(const ei_letterbox *box, const ei_window *window) {
    return (size_t)window->columns * (size_t)(1 + padded(taps_x(box))) + (size_t)window->rows * (size_t)(1 + taps_y(box));
}

// A ring of weighed rows and their addresses, a row of levels, and a converted row, each with three planes.
static size_t scratch_size(const ei_letterbox *box, const ei_window *window) {
    const size_t ring = (size_t)taps_y(box);
    return 3 * (ring + 1) * pitch(window) + ei_padded(ring * sizeof(uint8_t *)) + ei_packed_row_size(box);
}

// place stores the weights of output position i as those of taps pixels that all exist, and returns the first one.
static int32_t place(int i, int source, int inner, int interpolation, int taps, int32_t *weights) {
    const ei_taps t = ei_taps_of(i, source, inner, interpolation);
    const int32_t first = t.first < source - taps ? t.first : source - taps;
    for (int32_t k = 0; k < taps; k++) {
        const int32_t at = first + k - t.first;
        weights[k] = at >= 0 && at < t.count ? ei_weight(&t, at) : 0;
    }
    return first;
}

static void prepare(const ei_letterbox *box, const ei_window *window, ei_table_head *head, int32_t *tables) {
    head->taps_x = taps_x(box);
    head->padded_x = padded(head->taps_x);
    head->taps_y = taps_y(box);
    head->wide = 0;
    int32_t *columns = tables, *column_weights = columns + window->columns;
    int32_t *rows = column_weights + (size_t)window->columns * (size_t)head->padded_x, *row_weights = rows + window->rows;
    const int pixel = ei_packed_pixel(box);
    for (int i = 0; i < window->columns; i++) {
        int32_t *weights = column_weights + (size_t)i * (size_t)head->padded_x;
        memset(weights, 0, (size_t)head->padded_x * sizeof *weights);
        const int32_t first = place(window->inner_x + i, box->source_width, box->inner_width, box->interpolation, head->taps_x, weights);
        columns[i] = first * pixel;
        // Colour is loaded by 8 bytes that begin with a pair of pixels, gray by 8 pixels.
        if (columns[i] + (long long)head->padded_x * pixel + 2 <= (long long)box->source_width * pixel) {
            head->wide = i + 1;
        }
        if (i == 0) {
            head->from = first;
        }
        head->to = first + head->taps_x;
    }
    for (int y = 0; y < window->rows; y++) {
        rows[y] = place(window->inner_y + y, box->source_height, box->inner_height, box->interpolation, head->taps_y,
                        row_weights + (size_t)y * (size_t)head->taps_y);
    }
}

static void run(const ei_kernels *k, const ei_letterbox *box, const ei_window *window, const ei_table_head *head, const int32_t *elements,
                const int32_t *tables, uint8_t *scratch, const uint8_t *source, size_t stride, void *output) {
    const int32_t *columns = tables, *column_weights = columns + window->columns;
    const int32_t *rows = column_weights + (size_t)window->columns * (size_t)head->padded_x, *row_weights = rows + window->rows;
    const int pixel = ei_packed_pixel(box), planes = pixel == 1 ? 1 : 3, taps = head->taps_y;
    const size_t line = pitch(window), set = 3 * line;
    uint8_t *ring = scratch, *levels = ring + (size_t)taps * set, *converted = levels + set;
    const uint8_t **lines = (const uint8_t **)(converted + ei_packed_row_size(box));
    int next = 0;  // the first source row that was not weighed yet
    for (int y = 0; y < window->rows; y++) {
        next = next < rows[y] ? rows[y] : next;
        for (; next < rows[y] + taps; next++) {
            const uint8_t *packed = ei_packed_row(k, box, head, source, stride, next, converted);
            k->weigh_columns[pixel == 1 ? 0 : pixel - 2](packed, pixel, columns, column_weights, head->taps_x, head->padded_x,
                                                         window->columns, head->wide, ring + (size_t)(next % taps) * set, line);
        }
        for (int p = 0; p < planes; p++) {
            for (int i = 0; i < taps; i++) {
                lines[i] = ring + (size_t)((rows[y] + i) % taps) * set + (size_t)p * line;
            }
            k->weigh_lines(lines, row_weights + (size_t)y * (size_t)taps, taps, window->columns, levels + (size_t)p * line);
        }
        ei_put_levels(k, box, window, elements, levels, line, planes, y, output);
    }
}

const ei_method ei_antialias = {table_size, scratch_size, prepare, run};
