// Lists the boxes over a threshold, each with its best class, so that only they cross to the host; the arguments say where in the outputs
// boxes and scores are. It keeps what postprocess keeps: scores up to 1 + 1/64, finite boxes of positive size; the threshold must be over
// 0. A thread looks at one box, a block at 128; the list is in no particular order.
#include "arguments.h"
#include "kernel.h"

namespace {

enum { AHEAD = 16 };
constexpr float MAX_COORDINATE = 1e6f, SCORE_TOLERANCE = 1.0f / 64;

EI_DEVICE float read(uint64_t from, int64_t element, bool half) {
    return half ? ei_from_half(ei_load_short(from + 2 * (uint64_t)element)) : ei_load_float(from + 4 * (uint64_t)element);
}

// Best is the best class of a box so far.
struct Best {
    float score;
    int id;
    bool impossible;  // a score was invalid
};

// consider keeps the best score, the first of equal ones. Invalid scores, NaN included, are skipped and recorded.
EI_DEVICE void consider(float score, int c, Best *best) {
    const bool possible = score >= -SCORE_TOLERANCE && score <= 1 + SCORE_TOLERANCE;
    const bool better = possible && score > best->score;
    best->score = better ? score : best->score;
    best->id = better ? c : best->id;
    best->impossible |= !possible;
}

EI_DEVICE uint32_t count(uint64_t counts, int64_t number) { return __atomic_fetch_add((uint32_t *)counts + number, 1, __ATOMIC_RELAXED); }

// place writes the corners of a box in input pixels; it returns false for an invalid box.
EI_DEVICE bool place(const ei_filter_arguments &a, int64_t at, float *corner) {
    const bool half = a.half_boxes != 0;
    const float x = a.scale_x * read(a.boxes, at, half), y = a.scale_y * read(a.boxes, at + a.box_next, half);
    const float right = a.scale_x * read(a.boxes, at + 2 * a.box_next, half), bottom = a.scale_y * read(a.boxes, at + 3 * a.box_next, half);
    if (a.corners) {
        corner[0] = x;
        corner[1] = y;
        corner[2] = right;
        corner[3] = bottom;
        return x < right && y < bottom && x > -MAX_COORDINATE && y > -MAX_COORDINATE && right < MAX_COORDINATE && bottom < MAX_COORDINATE;
    }
    corner[0] = x - right / 2;
    corner[1] = y - bottom / 2;
    corner[2] = x + right / 2;
    corner[3] = y + bottom / 2;
    return right > 0 && bottom > 0 && right < MAX_COORDINATE && bottom < MAX_COORDINATE && x > -MAX_COORDINATE && x < MAX_COORDINATE &&
           y > -MAX_COORDINATE && y < MAX_COORDINATE;
}

template <bool HALF>
EI_DEVICE void filter_thread(const ei_filter_arguments &a) {
    const int box = (int)(ei_block_x() * 128 + ei_thread_x()), image = (int)ei_block_y();
    if (box >= a.count) return;
    int64_t scores = image * a.score_image + box * a.score_step;
    float objectness = 1;
    Best best = {0, 0, false};
    if (a.objectness) {
        objectness = read(a.scores, scores - a.score_next, HALF);
        if (!(objectness >= -SCORE_TOLERANCE && objectness <= 1 + SCORE_TOLERANCE)) {
            count(a.counts, a.images + image);
            return;
        }
        if (objectness < a.threshold) return;
    }
    int c = 0;
    // All loads before the first use: a thread waits once for several classes.
    for (; c + AHEAD <= a.classes; c += AHEAD) {
        float raw[AHEAD];
        EI_UNROLL
        for (int i = 0; i < AHEAD; i++, scores += a.score_next) raw[i] = read(a.scores, scores, HALF);
        EI_UNROLL
        for (int i = 0; i < AHEAD; i++) consider(objectness * raw[i], c + i, &best);
    }
    for (; c < a.classes; c++, scores += a.score_next) consider(objectness * read(a.scores, scores, HALF), c, &best);
    if (best.impossible) count(a.counts, a.images + image);
    if (!(best.score >= a.threshold)) return;
    float corner[4];
    if (!place(a, image * a.box_image + box * a.box_step, corner)) return;
    const uint32_t row = count(a.counts, image);
    if (row >= (uint32_t)a.capacity) return;
    EI_GLOBAL float *out = (EI_GLOBAL float *)a.rows + ((int64_t)image * a.capacity + row) * 6;
    for (int i = 0; i < 4; i++) out[i] = corner[i];
    out[4] = best.score;
    out[5] = (float)best.id;
}

}  // namespace

EI_KERNEL(filter, ei_filter_arguments) {
    if (a.half_scores) {
        filter_thread<true>(a);
    } else {
        filter_thread<false>(a);
    }
}
