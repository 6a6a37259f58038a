#include <string.h>

#include "half.h"
#include "steps.h"

void ei_elements_prepare(const ei_letterbox *box, int32_t *elements) {
    for (int c = 0; c < 3; c++) {
        for (int level = 0; level < 256; level++) {
            const float v = (float)level * box->scale[c] + box->bias[c];
            elements[256 * c + level] = box->element == EI_UINT8     ? level
                                        : box->element == EI_FLOAT16 ? (int32_t)ei_half(v)
                                                                     : (int32_t)ei_bits(v);
        }
    }
}

// The number of an element of the input.
static size_t element_at(const ei_letterbox *box, size_t pixel, int colour) {
    const size_t channel = (size_t)(box->bgr ? 2 - colour : colour);
    if (box->interleaved) {
        return pixel * (size_t)box->channels + channel;
    }
    return channel * (size_t)box->width * (size_t)box->height + pixel;
}

void *ei_output_at(const ei_letterbox *box, const ei_window *window, int row, int colour, void *output) {
    const size_t pixel = (size_t)(window->y + row) * (size_t)box->width + (size_t)window->x;
    return (uint8_t *)output + element_at(box, pixel, colour) * ei_element_size(box);
}

static inline void put(int element, void *output, size_t at, int32_t bits) {
    switch (element) {
        case EI_FLOAT32:
            ((uint32_t *)output)[at] = (uint32_t)bits;
            break;
        case EI_FLOAT16:
            ((uint16_t *)output)[at] = (uint16_t)bits;
            break;
        default:
            ((uint8_t *)output)[at] = (uint8_t)bits;
    }
}

// interleave writes R, G and B where at begins and at the two elements after it, or the other way round with order -1. element is a
// constant in every copy.
static inline __attribute__((always_inline)) void interleave(int element, const int32_t *elements, const uint8_t *const plane[3], int order,
                                                             int count, void *at) {
    const uint8_t *first = plane[1 - order], *third = plane[1 + order];
    const int32_t *firsts = elements + 256 * (1 - order), *thirds = elements + 256 * (1 + order);
    for (int i = 0; i < count; i++) {
        put(element, at, 3 * (size_t)i, firsts[first[i]]);
        put(element, at, 3 * (size_t)i + 1, elements[256 + plane[1][i]]);
        put(element, at, 3 * (size_t)i + 2, thirds[third[i]]);
    }
}

void ei_put_levels(const ei_kernels *k, const ei_letterbox *box, const ei_window *window, const int32_t *elements, const uint8_t *levels,
                   size_t pitch, int planes, int row, void *output) {
    const uint8_t *const plane[3] = {levels + ei_plane(planes, 0) * pitch, levels + ei_plane(planes, 1) * pitch,
                                     levels + ei_plane(planes, 2) * pitch};
    if (!box->interleaved) {
        for (int c = 0; c < box->channels; c++) {
            k->store[box->element](plane[c], window->columns, box->scale[c], box->bias[c], ei_output_at(box, window, row, c, output));
        }
        return;
    }
    const int order = box->bgr ? -1 : 1;
    void *at = ei_output_at(box, window, row, box->bgr ? 2 : 0, output);
    switch (box->element) {
        case EI_FLOAT32:
            interleave(EI_FLOAT32, elements, plane, order, window->columns, at);
            break;
        case EI_FLOAT16:
            interleave(EI_FLOAT16, elements, plane, order, window->columns, at);
            break;
        default:
            interleave(EI_UINT8, elements, plane, order, window->columns, at);
    }
}

// repeat writes one element count times, step apart. element and step are constants in every copy.
static inline __attribute__((always_inline)) void repeat(int element, size_t step, void *output, size_t at, size_t count, int32_t bits) {
    for (size_t i = 0; i < count; i++) {
        put(element, output, at + i * step, bits);
    }
}

// fill writes the border's level to count pixels.
static void fill(const ei_letterbox *box, const int32_t *elements, void *output, size_t pixel, size_t count) {
    for (int colour = 0; colour < box->channels; colour++) {
        const int32_t bits = elements[256 * colour + box->pad];
        const size_t at = element_at(box, pixel, colour);
        switch (2 * box->element + (box->interleaved != 0)) {
            case 2 * EI_FLOAT32:
                repeat(EI_FLOAT32, 1, output, at, count, bits);
                break;
            case 2 * EI_FLOAT32 + 1:
                repeat(EI_FLOAT32, 3, output, at, count, bits);
                break;
            case 2 * EI_FLOAT16:
                repeat(EI_FLOAT16, 1, output, at, count, bits);
                break;
            case 2 * EI_FLOAT16 + 1:
                repeat(EI_FLOAT16, 3, output, at, count, bits);
                break;
            case 2 * EI_UINT8:
                repeat(EI_UINT8, 1, output, at, count, bits);
                break;
            default:
                repeat(EI_UINT8, 3, output, at, count, bits);
        }
    }
}

void ei_border(const ei_letterbox *box, const ei_window *window, const int32_t *elements, void *output) {
    const size_t width = (size_t)box->width, bottom = (size_t)(window->y + window->rows), right = (size_t)(window->x + window->columns);
    fill(box, elements, output, 0, (size_t)window->y * width);
    if (window->columns < box->width) {
        for (size_t y = (size_t)window->y; y < bottom; y++) {
            fill(box, elements, output, y * width, (size_t)window->x);
            fill(box, elements, output, y * width + right, width - right);
        }
    }
    fill(box, elements, output, bottom * width, ((size_t)box->height - bottom) * width);
}
