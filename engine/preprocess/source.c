#include "steps.h"

int ei_packed_pixel(const ei_letterbox *box) {
    if (box->channels == 1 || box->format == EI_GRAY8) {
        return 1;
    }
    return box->format == EI_BGR ? 3 : 4;
}

size_t ei_packed_row_size(const ei_letterbox *box) {
    return ei_padded(4 * (size_t)box->source_width) + ei_padded((size_t)box->source_width);
}

const uint8_t *ei_packed_row(const ei_kernels *k, const ei_letterbox *box, const ei_table_head *head, const uint8_t *source, size_t stride,
                             int y, uint8_t *rows) {
    const uint8_t *row = source + (size_t)y * stride, *packed = row;
    const int from = head->from, count = head->to - from;
    if (box->format == EI_NV12) {
        const uint8_t *chroma = source + (size_t)(box->source_height + y / 2) * stride;
        k->nv12_row(row + from, chroma + from, count, rows + 4 * from);
        packed = rows;
    } else if (box->format == EI_YUYV) {
        k->yuyv_row(row + 2 * from, count, rows + 4 * from);
        packed = rows;
    }
    if (box->channels == 1 && box->format != EI_GRAY8) {
        const int pixel = box->format == EI_BGR ? 3 : 4;
        uint8_t *gray = rows + ei_padded(4 * (size_t)box->source_width);
        ei_gray_row(packed + pixel * from, pixel, count, gray + from);
        return gray;
    }
    return packed;
}
