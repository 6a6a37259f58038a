// Lists the boxes over a threshold of a YOLO head (v5 rows with objectness; v8, v9 and 11 columns), each with its best class, so that only
// they cross to the host. It keeps what postprocess keeps: scores up to 1 + 1/64, finite boxes of positive size; the threshold must be over
// 0. A thread looks at one box, a block at 128; the list is in no particular order.
#include "arguments.h"
#include "kernel.h"

namespace {

enum { AHEAD = 16 };
constexpr float MAX_COORDINATE = 1e6f, MAX_SCORE = 1.0f + 1.0f / 64;

template <bool HALF>
EI_DEVICE float read(const ei_filter_arguments &a, int64_t element) {
    return HALF ? ei_from_half(ei_load_short(a.output + 2 * (uint64_t)element)) : ei_load_float(a.output + 4 * (uint64_t)element);
}

// consider keeps the best score, of equal ones the first. What is no score, NaN included, is passed over.
EI_DEVICE void consider(float score, int c, float *best, int *best_class) {
    const bool better = score <= MAX_SCORE && score > *best;
    *best = better ? score : *best;
    *best_class = better ? c : *best_class;
}

template <bool HALF>
EI_DEVICE void filter_thread(const ei_filter_arguments &a) {
    const int anchor = (int)(ei_block_x() * 128 + ei_thread_x()), picture = (int)ei_block_y();
    if (anchor >= a.anchors) return;
    const int64_t box = picture * a.picture_stride + anchor * a.anchor_stride;
    float objectness = 1;
    int64_t scores = box + 4 * a.field_stride;
    if (a.objectness) {
        objectness = read<HALF>(a, scores);
        if (!(objectness >= a.confidence && objectness <= MAX_SCORE)) return;
        scores += a.field_stride;
    }
    float best = 0;
    int best_class = 0, c = 0;
    // All loads before the first use: a thread waits once for several classes.
    for (; c + AHEAD <= a.classes; c += AHEAD) {
        float raw[AHEAD];
        EI_UNROLL
        for (int i = 0; i < AHEAD; i++, scores += a.field_stride) raw[i] = read<HALF>(a, scores);
        EI_UNROLL
        for (int i = 0; i < AHEAD; i++) consider(objectness * raw[i], c + i, &best, &best_class);
    }
    for (; c < a.classes; c++, scores += a.field_stride) consider(objectness * read<HALF>(a, scores), c, &best, &best_class);
    if (!(best >= a.confidence)) return;
    const float x = read<HALF>(a, box), y = read<HALF>(a, box + a.field_stride);
    const float width = read<HALF>(a, box + 2 * a.field_stride), height = read<HALF>(a, box + 3 * a.field_stride);
    if (!(width > 0 && height > 0 && width < MAX_COORDINATE && height < MAX_COORDINATE && x > -MAX_COORDINATE && x < MAX_COORDINATE &&
          y > -MAX_COORDINATE && y < MAX_COORDINATE)) {
        return;
    }
    const uint32_t row = __atomic_fetch_add((uint32_t *)a.counts + picture, 1, __ATOMIC_RELAXED);
    if (row >= (uint32_t)a.capacity) return;
    EI_GLOBAL float *out = (EI_GLOBAL float *)a.rows + ((int64_t)picture * a.capacity + row) * 6;
    out[0] = x - width / 2;
    out[1] = y - height / 2;
    out[2] = x + width / 2;
    out[3] = y + height / 2;
    out[4] = best;
    out[5] = (float)best_class;
}

}  // namespace

EI_KERNEL(filter, ei_filter_arguments) {
    if (a.half) {
        filter_thread<true>(a);
    } else {
        filter_thread<false>(a);
    }
}
