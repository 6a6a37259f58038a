// The letterbox of letterbox.c on the GPU, with the same integer arithmetic: one launch reads a picture of any format and writes one batch
// position of the network's input. A warp writes 32 neighbouring elements at a time and each thread COLUMNS of them 32 apart, so
// that stores are whole lines and loads of neighbouring threads share theirs. A block is 32 by 8 threads.
#include "arguments.h"
#include "kernel.h"
#include "letterbox.h"
#include "rows.h"

namespace {

enum {
    COLUMNS = 2,  // of one thread
    ONE = 2048,   // weights have 11 bits
};

// position is where an output position's centre lies in the source: the sample before it, the one after it, and their weights.
struct position {
    int first, second;
    int a0, a1;
};

// place computes the centre, ((2 i + 1) source - inner) / (2 inner), in integers but for the quotient's first guess. The samples may lie
// outside the picture by one.
EI_DEVICE position place(int i, int source, int inner) {
    const int whole = 2 * inner, distance = (2 * i + 1) * source - inner;
    const float inverse = ei_inverse((float)whole);
    int first = (int)((float)distance * inverse), rest = distance - first * whole;
    const int correction = (rest >= whole) - (rest < 0);
    first += correction;
    rest -= correction * whole;
    // The CPU has the centre as one binary32 number, whose fraction has fewer bits the further right it is.
    const float fraction = ((float)first + (float)rest * inverse) - (float)first;
    return {first, first + 1, ei_round((1.0f - fraction) * ONE), ei_round(fraction * ONE)};
}

EI_DEVICE int clamp(int i, int size) { return i < 0 ? 0 : i < size ? i : size - 1; }

// place_row keeps the weights beyond the outermost centres and repeats the row, as OpenCV does. A row without weight is not read: where the
// height is an odd multiple of the output's that halves the traffic.
EI_DEVICE position place_row(int i, int source, int inner) {
    position p = place(i, source, inner);
    p.first = clamp(p.first, source);
    p.second = p.a1 == 0 ? p.first : clamp(p.second, source);
    return p;
}

// place_column lets the outermost sample count alone there. At the right end it is the second of its pair, so that both are inside unless
// the picture is one pixel wide.
EI_DEVICE position place_column(int i, int source, int inner) {
    position p = place(i, source, inner);
    const int last = source > 1 ? source - 2 : 0;
    const bool before = p.first < 0, after = p.first >= source - 1;
    p.a1 = before ? 0 : after ? (source > 1 ? ONE : 0) : p.a1;
    p.a0 = before || after ? ONE - p.a1 : p.a0;
    p.first = before ? 0 : after ? last : p.first;
    return p;
}

struct bytes8 {
    uint32_t low, high;
};

// load8 reads 8 bytes at any address by aligned words, only 5 of them for certain with 2 WORDS. Bytes behind the picture's last word come
// out as something else; nobody uses them.
template <int WORDS>
EI_DEVICE bytes8 load8(const ei_letterbox_arguments &a, uint64_t at) {
    const uint64_t last = (a.end - 1) & ~(uint64_t)3, word = at & ~(uint64_t)3;
    const uint64_t second = word + 4 < last ? word + 4 : last, third = word + 8 < last ? word + 8 : last;
    const uint32_t shift = 8 * ((uint32_t)at & 3), w0 = ei_load_word(word), w1 = ei_load_word(second);
    return {ei_funnel(w0, w1, shift), WORDS == 3 ? ei_funnel(w1, ei_load_word(third), shift) : 0};
}

EI_DEVICE int byte_of(uint32_t word, int i) { return (int)(word >> 8 * i & 255); }

struct pixel {
    int b, g, r;
};

EI_DEVICE int clamped(int32_t fixed) {
    const int32_t v = fixed >> EI_YUV_SHIFT;
    return v < 0 ? 0 : v > 255 ? 255 : v;
}

EI_DEVICE pixel from_yuv(int luma, int u, int v) {
    const int32_t y = (luma < 16 ? 0 : luma - 16) * EI_Y + EI_YUV_HALF;
    return {clamped(y + EI_UB * u), clamped(y + EI_VG * v + EI_UG * u), clamped(y + EI_VR * v)};
}

EI_DEVICE int gray_of(const pixel &p) { return (p.b * 3735 + p.g * 19235 + p.r * 9798 + (1 << 14)) >> 15; }

// neighbours reads the pixels x and x + 1 of source row y. FORMAT is EI_BGR for BGRx too.
template <int FORMAT>
EI_DEVICE void neighbours(const ei_letterbox_arguments &a, uint32_t x, uint32_t y, pixel *first, pixel *second) {
    const uint64_t row = a.source + (uint64_t)y * (uint32_t)a.stride;
    if (FORMAT == EI_GRAY8) {
        const uint32_t levels = load8<2>(a, row + x).low;
        first->b = first->g = first->r = byte_of(levels, 0);
        second->b = second->g = second->r = byte_of(levels, 1);
        return;
    }
    if (FORMAT == EI_BGR) {
        const bytes8 p = load8<3>(a, row + (a.format == EI_BGRX ? 4 : 3) * x);
        const uint32_t third = ei_funnel(p.low, p.high, 24), next = a.format == EI_BGRX ? p.high : third;
        *first = {byte_of(p.low, 0), byte_of(p.low, 1), byte_of(p.low, 2)};
        *second = {byte_of(next, 0), byte_of(next, 1), byte_of(next, 2)};
    } else {
        uint32_t luma, chroma;  // Y Y of the two pixels; U V of the first one's pair and of the pair after it
        const bool odd = x & 1;
        if (FORMAT == EI_NV12) {
            luma = load8<2>(a, row + x).low;
            chroma = load8<2>(a, a.source + (uint64_t)((uint32_t)a.source_height + (y >> 1)) * (uint32_t)a.stride + 2 * (x >> 1)).low;
        } else {
            const bytes8 p = load8<3>(a, row + 4 * (x >> 1));  // Y U Y V Y U Y V
            luma = odd ? (p.low >> 16 & 255) | p.high << 8 : (p.low & 255) | (p.low >> 8 & 0xff00);
            chroma = (p.low >> 8 & 255) | (p.low >> 16 & 0xff00) | (p.high & 0xff00) << 8 | (p.high & 0xff000000);
        }
        const uint32_t next = odd ? chroma >> 16 : chroma;
        *first = from_yuv(byte_of(luma, 0), byte_of(chroma, 0) - 128, byte_of(chroma, 1) - 128);
        *second = from_yuv(byte_of(luma, 1), byte_of(next, 0) - 128, byte_of(next, 1) - 128);
    }
    first->b = a.channels == 1 ? gray_of(*first) : first->b;
    second->b = a.channels == 1 ? gray_of(*second) : second->b;
}

EI_DEVICE int across(int first, int second, const position &x) { return (first * x.a0 + second * x.a1) >> 4; }

EI_DEVICE int down(int upper, int lower, const position &y) { return (((y.a0 * upper) >> 16) + ((y.a1 * lower) >> 16) + 2) >> 2; }

EI_DEVICE void put(EI_GLOBAL float *at, int level) { *at = (float)level * EI_LEVEL; }
EI_DEVICE void put(EI_GLOBAL uint16_t *at, int level) { *at = ei_to_half((float)level * EI_LEVEL); }

// write stores a pixel's channels in their planes, R first.
template <typename ELEMENT>
EI_DEVICE void write(const ei_letterbox_arguments &a, int x, int y, const pixel &p) {
    const uint64_t plane = (uint64_t)(uint32_t)a.width * (uint32_t)a.height;
    EI_GLOBAL ELEMENT *at = (EI_GLOBAL ELEMENT *)a.output + (uint64_t)y * (uint32_t)a.width + (uint32_t)x;
    if (a.channels == 1) {
        put(at, p.b);
        return;
    }
    put(at, p.r);
    put(at + plane, p.g);
    put(at + 2 * plane, p.b);
}

// sample has no branch, so that all loads of a thread can start before the first is needed.
template <int FORMAT>
EI_DEVICE pixel sample(const ei_letterbox_arguments &a, const position &px, const position &py) {
    pixel upper[2], lower[2];
    neighbours<FORMAT>(a, (uint32_t)px.first, (uint32_t)py.first, &upper[0], &upper[1]);
    neighbours<FORMAT>(a, (uint32_t)px.first, (uint32_t)py.second, &lower[0], &lower[1]);
    return {down(across(upper[0].b, upper[1].b, px), across(lower[0].b, lower[1].b, px), py),
            down(across(upper[0].g, upper[1].g, px), across(lower[0].g, lower[1].g, px), py),
            down(across(upper[0].r, upper[1].r, px), across(lower[0].r, lower[1].r, px), py)};
}

template <int FORMAT>
EI_DEVICE void letterbox_thread(const ei_letterbox_arguments &a) {
    const int y = (int)(ei_block_y() * 8 + ei_thread_y()), start = (int)(ei_block_x() * 32 * COLUMNS + ei_thread_x());
    if (y >= a.height) return;
    pixel p[COLUMNS];
    if (y >= a.top && y < a.top + a.inner_height) {
        const position py = place_row(y - a.top, a.source_height, a.inner_height);
        // Columns outside the picture read its nearest one.
        position px[COLUMNS];
        EI_UNROLL
        for (int i = 0; i < COLUMNS; i++) {
            px[i] = place_column(clamp(start + 32 * i - a.left, a.inner_width), a.source_width, a.inner_width);
        }
        EI_UNROLL
        for (int i = 0; i < COLUMNS; i++) p[i] = sample<FORMAT>(a, px[i], py);
    }
    EI_UNROLL
    for (int i = 0; i < COLUMNS; i++) {
        const int x = start + 32 * i;
        if (x >= a.width) return;
        if (y < a.top || y >= a.top + a.inner_height || x < a.left || x >= a.left + a.inner_width) p[i] = {114, 114, 114};
        if (a.half) {
            write<uint16_t>(a, x, y, p[i]);
        } else {
            write<float>(a, x, y, p[i]);
        }
    }
}

}  // namespace

EI_KERNEL(letterbox, ei_letterbox_arguments) {
    switch (a.format) {
        case EI_NV12:
            letterbox_thread<EI_NV12>(a);
            break;
        case EI_YUYV:
            letterbox_thread<EI_YUYV>(a);
            break;
        case EI_GRAY8:
            letterbox_thread<EI_GRAY8>(a);
            break;
        default:
            letterbox_thread<EI_BGR>(a);
    }
}
