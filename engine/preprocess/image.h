// Code shared by the kernels that read images and write inputs: pixels of any format, elements of any type and layout.
#ifndef EDGE_INFER_PREPROCESS_IMAGE_H_
#define EDGE_INFER_PREPROCESS_IMAGE_H_

#include "arguments.h"
#include "kernel.h"
#include "letterbox.h"
#include "rows.h"

struct ei_bytes8 {
    uint32_t low, high;
};

// load8 reads 8 bytes at any address by aligned words, only 5 of them for certain with 2 WORDS. Bytes behind the image's last word come
// out as something else; nobody uses them.
template <int WORDS>
EI_DEVICE ei_bytes8 ei_load8(const ei_letterbox_arguments &a, uint64_t at) {
    const uint64_t last = (a.end - 1) & ~(uint64_t)3, word = at & ~(uint64_t)3;
    const uint64_t second = word + 4 < last ? word + 4 : last, third = word + 8 < last ? word + 8 : last;
    const uint32_t shift = 8 * ((uint32_t)at & 3), w0 = ei_load_word(word), w1 = ei_load_word(second);
    return {ei_funnel(w0, w1, shift), WORDS == 3 ? ei_funnel(w1, ei_load_word(third), shift) : 0};
}

EI_DEVICE int ei_byte_of(uint32_t word, int i) { return (int)(word >> 8 * i & 255); }

struct ei_pixel {
    int b, g, r;
};

EI_DEVICE int ei_clamped(int32_t fixed) {
    const int32_t v = fixed >> EI_YUV_SHIFT;
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

EI_DEVICE ei_pixel ei_from_yuv(int luma, int u, int v) {
    const int32_t y = (luma < 16 ? 0 : luma - 16) * EI_Y + EI_YUV_HALF;
    return {ei_clamped(y + EI_UB * u), ei_clamped(y + EI_VG * v + EI_UG * u), ei_clamped(y + EI_VR * v)};
}

EI_DEVICE int ei_gray_of(const ei_pixel &p) { return (p.b * 3735 + p.g * 19235 + p.r * 9798 + (1 << 14)) >> 15; }

// neighbours reads the pixels x and x + 1 of source row y. FORMAT is EI_BGR for BGRx too.
template <int FORMAT>
EI_DEVICE void ei_neighbours(const ei_letterbox_arguments &a, uint32_t x, uint32_t y, ei_pixel *first, ei_pixel *second) {
    const uint64_t row = a.source + (uint64_t)y * (uint32_t)a.stride;
    if (FORMAT == EI_GRAY8) {
        const uint32_t levels = ei_load8<2>(a, row + x).low;
        first->b = first->g = first->r = ei_byte_of(levels, 0);
        second->b = second->g = second->r = ei_byte_of(levels, 1);
        return;
    }
    if (FORMAT == EI_BGR) {
        const ei_bytes8 p = ei_load8<3>(a, row + (a.box.format == EI_BGRX ? 4 : 3) * x);
        const uint32_t third = ei_funnel(p.low, p.high, 24), next = a.box.format == EI_BGRX ? p.high : third;
        *first = {ei_byte_of(p.low, 0), ei_byte_of(p.low, 1), ei_byte_of(p.low, 2)};
        *second = {ei_byte_of(next, 0), ei_byte_of(next, 1), ei_byte_of(next, 2)};
    } else {
        uint32_t luma, chroma;  // Y Y of the two pixels; U V of the first one's pair and of the pair after it
        const bool odd = x & 1;
        if (FORMAT == EI_NV12) {
            luma = ei_load8<2>(a, row + x).low;
            chroma = ei_load8<2>(a, a.chroma + (uint64_t)(y >> 1) * (uint32_t)a.stride + 2 * (x >> 1)).low;
        } else {
            const ei_bytes8 p = ei_load8<3>(a, row + 4 * (x >> 1));  // Y U Y V Y U Y V
            luma = odd ? (p.low >> 16 & 255) | p.high << 8 : (p.low & 255) | (p.low >> 8 & 0xff00);
            chroma = (p.low >> 8 & 255) | (p.low >> 16 & 0xff00) | (p.high & 0xff00) << 8 | (p.high & 0xff000000);
        }
        const uint32_t next = odd ? chroma >> 16 : chroma;
        *first = ei_from_yuv(ei_byte_of(luma, 0), ei_byte_of(chroma, 0) - 128, ei_byte_of(chroma, 1) - 128);
        *second = ei_from_yuv(ei_byte_of(luma, 1), ei_byte_of(next, 0) - 128, ei_byte_of(next, 1) - 128);
    }
    first->b = a.box.channels == 1 ? ei_gray_of(*first) : first->b;
    second->b = a.box.channels == 1 ? ei_gray_of(*second) : second->b;
}

EI_DEVICE void ei_put(EI_GLOBAL float *at, int level, float scale, float bias) { *at = (float)level * scale + bias; }
EI_DEVICE void ei_put(EI_GLOBAL uint16_t *at, int level, float scale, float bias) { *at = ei_to_half((float)level * scale + bias); }
EI_DEVICE void ei_put(EI_GLOBAL uint8_t *at, int level, float, float) { *at = (uint8_t)level; }

template <typename ELEMENT>
EI_DEVICE void ei_put_colour(const ei_letterbox_arguments &a, int colour, uint64_t offset, int level) {
    ei_put((EI_GLOBAL ELEMENT *)(a.output[colour] + offset), level, a.box.scale[colour], a.box.bias[colour]);
}

template <typename ELEMENT>
EI_DEVICE void ei_write_elements(const ei_letterbox_arguments &a, uint64_t offset, const ei_pixel &p) {
    if (a.box.channels == 1) {
        ei_put_colour<ELEMENT>(a, 0, offset, p.b);
        return;
    }
    ei_put_colour<ELEMENT>(a, 0, offset, p.r);
    ei_put_colour<ELEMENT>(a, 1, offset, p.g);
    ei_put_colour<ELEMENT>(a, 2, offset, p.b);
}

// ei_write stores a pixel's channels.
EI_DEVICE void ei_write(const ei_letterbox_arguments &a, int x, int y, const ei_pixel &p) {
    const uint64_t offset = ((uint64_t)y * (uint32_t)a.box.width + (uint32_t)x) * (uint32_t)a.pixel_bytes;
    switch (a.box.element) {
        case EI_FLOAT32:
            ei_write_elements<float>(a, offset, p);
            break;
        case EI_FLOAT16:
            ei_write_elements<uint16_t>(a, offset, p);
            break;
        default:
            ei_write_elements<uint8_t>(a, offset, p);
    }
}

// ei_shows returns whether a pixel of the input is inside the image.
EI_DEVICE bool ei_shows_row(const ei_letterbox &b, int y) { return y >= b.top && y < b.top + b.inner_height; }
EI_DEVICE bool ei_shows(const ei_letterbox &b, int x, int y) { return ei_shows_row(b, y) && x >= b.left && x < b.left + b.inner_width; }

EI_DEVICE ei_pixel ei_border(const ei_letterbox &b) { return {b.pad, b.pad, b.pad}; }

#endif
