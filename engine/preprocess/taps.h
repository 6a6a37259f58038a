// The weights of antialiased interpolation, alike on the CPU and the GPU: which pixels of an axis make one output pixel, and how much each
// counts. They are those of Pillow, the bicubic ones but for a last bit. Sides are at most 32768.
#ifndef EDGE_INFER_PREPROCESS_TAPS_H_
#define EDGE_INFER_PREPROCESS_TAPS_H_

#include <math.h>
#include <stdint.h>

#include "letterbox.h"

#ifdef EI_DEVICE
#define EI_TAPS EI_DEVICE
#else
#define EI_TAPS static inline
static inline int ei_round(float v) { return (int)lrintf(v); }
#endif

enum { EI_WEIGHT_BITS = 22, EI_WEIGHT_ONE = 1 << EI_WEIGHT_BITS, EI_WEIGHT_HALF = 1 << (EI_WEIGHT_BITS - 1) };

// Positions are in parts of a source pixel, 2 * inner of them, in which all centres are whole numbers.
typedef struct {
    int32_t first, count;  // the pixels
    int32_t distance;      // from the output pixel's centre to the first one's
    int32_t step;          // from pixel to pixel
    int32_t unit;          // where the filter's argument is 1
    int32_t bicubic;
    float inverse;  // 1 / unit
    uint32_t sum;   // of the bilinear weights before they are normalised, which are whole numbers
    float normal;   // what makes the sum of all weights EI_WEIGHT_ONE
} ei_taps;

EI_TAPS int32_t ei_distance(const ei_taps *t, int32_t k) {
    const int32_t distance = t->distance + k * t->step;
    return distance < 0 ? -distance : distance;
}

EI_TAPS float ei_bicubic(const ei_taps *t, int32_t k) {
    const float x = (float)ei_distance(t, k) * t->inverse;
    return x < 1 ? ((1.5f * x - 2.5f) * x) * x + 1.0f : -0.5f * (((x - 5.0f) * x + 8.0f) * x - 4.0f);
}

// ei_weight is the weight of pixel first + k as a fixed-point number. The bilinear one is exact: where a level is a tie, the last bit
// decides.
EI_TAPS int32_t ei_weight(const ei_taps *t, int32_t k) {
    if (t->bicubic) {
        return ei_round(ei_bicubic(t, k) * t->normal);
    }
    const int32_t share = t->unit - ei_distance(t, k), weight = ei_round((float)share * t->normal);
    const int64_t twice = 2 * (((int64_t)share << EI_WEIGHT_BITS) - (int64_t)weight * t->sum);
    return weight + (twice >= (int64_t)t->sum) - (twice < -(int64_t)t->sum);
}

EI_TAPS ei_taps ei_taps_of(int32_t i, int32_t source, int32_t inner, int32_t interpolation) {
    ei_taps t;
    t.bicubic = interpolation == EI_BICUBIC_ANTIALIAS;
    t.step = 2 * inner;
    t.unit = 2 * (source > inner ? source : inner);
    t.inverse = 1.0f / (float)t.unit;
    const int32_t centre = (2 * i + 1) * source, reach = (1 + t.bicubic) * t.unit;  // beyond reach the filter is 0
    const int32_t below = centre - reach - inner;
    const uint32_t above = (uint32_t)centre + (uint32_t)(reach - inner);
    t.first = below < 0 ? 0 : below / t.step + 1;
    const int32_t last = (int32_t)((above - 1) / (uint32_t)t.step);
    t.count = (last < source ? last + 1 : source) - t.first;
    t.distance = (2 * t.first + 1) * inner - centre;
    float sum = 0;
    t.sum = 0;
    for (int32_t k = 0; k < t.count; k++) {
        if (t.bicubic) {
            sum += ei_bicubic(&t, k);
        } else {
            t.sum += (uint32_t)(t.unit - ei_distance(&t, k));
        }
    }
    t.normal = (float)EI_WEIGHT_ONE / (t.bicubic ? sum : (float)t.sum);
    return t;
}

// ei_rounded converts a sum of weighted levels to a level.
EI_TAPS int32_t ei_rounded(int32_t sum) {
    const int32_t level = (sum + EI_WEIGHT_HALF) >> EI_WEIGHT_BITS;
    return level < 0 ? 0 : level > 255 ? 255 : level;
}

#endif
