// The parts of ei_letterbox_run: the tables of an image and the destination of its rows.
#ifndef EDGE_INFER_PREPROCESS_STEPS_H_
#define EDGE_INFER_PREPROCESS_STEPS_H_

#include "rows.h"

// The part of the input that shows the image: its corner and size, and its corner in the resized image.
typedef struct {
    int x, y, columns, rows;
    int inner_x, inner_y;
} ei_window;

ei_window ei_window_of(const ei_letterbox *box);

// What the tables begin with. from and to bound the columns of the source that are looked at, in whole pairs.
typedef struct {
    int32_t wide;  // leading columns of the window whose wide loads stay inside a row
    int32_t from, to;
    int32_t taps_x, padded_x, taps_y;  // antialiased only
} ei_table_head;

enum { EI_HEAD_SIZE = sizeof(ei_table_head) / sizeof(int32_t) };

// Samples of a packed row: 1 (gray), 3 (BGR) or 4 (BGRx) a pixel.
int ei_packed_pixel(const ei_letterbox *box);

// Rows of the scratch memory start at multiples of a cache line and end with room for one whole vector.
static inline size_t ei_padded(size_t bytes) { return (bytes + 127) / 64 * 64; }

// ei_packed_row returns a source row as samples side by side, converted into the scratch memory where it is not: a row of BGRx and one of
// gray. Only the columns that the table head bounds are there.
const uint8_t *ei_packed_row(const ei_kernels *k, const ei_letterbox *box, const ei_table_head *head, const uint8_t *source, size_t stride,
                             int y, uint8_t *rows);
size_t ei_packed_row_size(const ei_letterbox *box);

// Colours are R (or gray), G, B, as in ei_letterbox. ei_plane is where one is among planes of B, G and R, or the only plane.
static inline size_t ei_plane(int planes, int colour) { return planes == 1 ? 0 : (size_t)(2 - colour); }

// Size of an element, and the address of the colour's first one in a row of the window.
static inline size_t ei_element_size(const ei_letterbox *box) {
    return box->element == EI_FLOAT32 ? 4 : box->element == EI_FLOAT16 ? 2 : 1;
}
void *ei_output_at(const ei_letterbox *box, const ei_window *window, int row, int colour, void *output);

// ei_put_levels writes a row of levels in planes, pitch apart. elements is of ei_elements_prepare, for interleaved inputs.
void ei_put_levels(const ei_kernels *k, const ei_letterbox *box, const ei_window *window, const int32_t *elements, const uint8_t *levels,
                   size_t pitch, int planes, int row, void *output);

// Every level as an element of each colour.
enum { EI_ELEMENTS = 3 * 256 };
void ei_elements_prepare(const ei_letterbox *box, int32_t *elements);

void ei_border(const ei_letterbox *box, const ei_window *window, const int32_t *elements, void *output);

// One method of interpolation: its tables behind the head and the elements, its scratch memory, and the image without its border.
typedef struct {
    size_t (*table_size)(const ei_letterbox *box, const ei_window *window);
    size_t (*scratch_size)(const ei_letterbox *box, const ei_window *window);
    void (*prepare)(const ei_letterbox *box, const ei_window *window, ei_table_head *head, int32_t *tables);
    void (*run)(const ei_kernels *k, const ei_letterbox *box, const ei_window *window, const ei_table_head *head, const int32_t *elements,
                const int32_t *tables, uint8_t *scratch, const uint8_t *source, size_t stride, void *output);
} ei_method;

extern const ei_method ei_bilinear, ei_antialias;

#endif
