#include "letterbox.h"

#include "steps.h"

static const ei_method *method(const ei_letterbox *box) { return box->interpolation == EI_BILINEAR ? &ei_bilinear : &ei_antialias; }

static int within(int low, int high, int v) { return v < low ? low : v > high ? high : v; }

ei_window ei_window_of(const ei_letterbox *box) {
    ei_window w;
    w.x = within(0, box->width, box->left);
    w.y = within(0, box->height, box->top);
    w.columns = within(0, box->width, box->left + box->inner_width) - w.x;
    w.rows = within(0, box->height, box->top + box->inner_height) - w.y;
    w.inner_x = w.x - box->left;
    w.inner_y = w.y - box->top;
    return w;
}

size_t ei_letterbox_table_size(const ei_letterbox *box) {
    ei_window window = ei_window_of(box);
    return EI_HEAD_SIZE + EI_ELEMENTS + method(box)->table_size(box, &window);
}

size_t ei_letterbox_scratch_size(const ei_letterbox *box) {
    ei_window window = ei_window_of(box);
    return 64 + method(box)->scratch_size(box, &window);
}

void ei_letterbox_prepare(const ei_letterbox *box, int32_t *tables) {
    ei_window window = ei_window_of(box);
    ei_table_head *head = (ei_table_head *)tables;
    ei_elements_prepare(box, tables + EI_HEAD_SIZE);
    method(box)->prepare(box, &window, head, tables + EI_HEAD_SIZE + EI_ELEMENTS);
    head->from &= ~1;
    head->to += head->to & 1 && head->to < box->source_width;
}

void ei_letterbox_run_with(const ei_kernels *k, const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source,
                           size_t stride, int border, void *output) {
    ei_window window = ei_window_of(box);
    const int32_t *elements = tables + EI_HEAD_SIZE;
    uint8_t *memory = (uint8_t *)(((uintptr_t)scratch + 63) & ~(uintptr_t)63);
    if (border) {
        ei_border(box, &window, elements, output);
    }
    method(box)->run(k, box, &window, (const ei_table_head *)tables, elements, elements + EI_ELEMENTS, memory, source, stride, output);
}

void ei_letterbox_run(const ei_letterbox *box, const int32_t *tables, void *scratch, const uint8_t *source, size_t stride, int border,
                      void *output) {
    ei_letterbox_run_with(ei_kernels_of_this_machine(), box, tables, scratch, source, stride, border, output);
}

const char *ei_letterbox_isa(void) { return ei_kernels_of_this_machine()->name; }
