// The bilinear image of bilinear.c on the GPU, with the same integer arithmetic: one launch reads an image of any format and writes one
// batch position of the network's input. A warp writes 32 neighbouring elements at a time and each thread COLUMNS of them 32 apart, so
// that stores are whole lines and loads of neighbouring threads share theirs. A block is 32 by 8 threads.
#include "image.h"

namespace {

enum {
    COLUMNS = EI_LETTERBOX_COLUMNS / 32,  // of one thread
    ONE = 2048,                           // weights have 11 bits
};

// position is where an output position's centre lies in the source: the sample before it, the one after it, and their weights.
struct position {
    int first, second;
    int a0, a1;
};

// place computes the centre, ((2 i + 1) source - inner) / (2 inner), in integers but for the quotient's first guess. The samples may lie
// outside the image by one.
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
// the image is one pixel wide.
EI_DEVICE position place_column(int i, int source, int inner) {
    position p = place(i, source, inner);
    const int last = source > 1 ? source - 2 : 0;
    const bool before = p.first < 0, after = p.first >= source - 1;
    p.a1 = before ? 0 : after ? (source > 1 ? ONE : 0) : p.a1;
    p.a0 = before || after ? ONE - p.a1 : p.a0;
    p.first = before ? 0 : after ? last : p.first;
    return p;
}

EI_DEVICE int across(int first, int second, const position &x) { return (first * x.a0 + second * x.a1) >> 4; }

EI_DEVICE int down(int upper, int lower, const position &y) { return (((y.a0 * upper) >> 16) + ((y.a1 * lower) >> 16) + 2) >> 2; }

// sample has no branch, so that all loads of a thread can start before the first is needed.
template <int FORMAT>
EI_DEVICE ei_pixel sample(const ei_letterbox_arguments &a, const position &px, const position &py) {
    ei_pixel upper[2], lower[2];
    ei_neighbours<FORMAT>(a, (uint32_t)px.first, (uint32_t)py.first, &upper[0], &upper[1]);
    ei_neighbours<FORMAT>(a, (uint32_t)px.first, (uint32_t)py.second, &lower[0], &lower[1]);
    return {down(across(upper[0].b, upper[1].b, px), across(lower[0].b, lower[1].b, px), py),
            down(across(upper[0].g, upper[1].g, px), across(lower[0].g, lower[1].g, px), py),
            down(across(upper[0].r, upper[1].r, px), across(lower[0].r, lower[1].r, px), py)};
}

template <int FORMAT>
EI_DEVICE void letterbox_thread(const ei_letterbox_arguments &a) {
    const ei_letterbox &b = a.box;
    const int y = (int)(ei_block_y() * 8 + ei_thread_y()), start = (int)(ei_block_x() * 32 * COLUMNS + ei_thread_x());
    if (y >= b.height) return;
    ei_pixel p[COLUMNS];
    if (ei_shows_row(b, y)) {
        const position py = place_row(y - b.top, b.source_height, b.inner_height);
        // Columns outside the image read its nearest one.
        position px[COLUMNS];
        EI_UNROLL
        for (int i = 0; i < COLUMNS; i++) {
            px[i] = place_column(clamp(start + 32 * i - b.left, b.inner_width), b.source_width, b.inner_width);
        }
        EI_UNROLL
        for (int i = 0; i < COLUMNS; i++) p[i] = sample<FORMAT>(a, px[i], py);
    }
    EI_UNROLL
    for (int i = 0; i < COLUMNS; i++) {
        const int x = start + 32 * i;
        if (x >= b.width) return;
        ei_write(a, x, y, ei_shows(b, x, y) ? p[i] : ei_border(b));
    }
}

}  // namespace

EI_KERNEL(letterbox, ei_letterbox_arguments) {
    switch (a.box.format) {
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
