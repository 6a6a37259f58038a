// What softmaxes cost: eight exponents at once.
#ifndef EDGE_INFER_EXPONENT_H
#define EDGE_INFER_EXPONENT_H

#include <stdint.h>

typedef float ei_eight __attribute__((vector_size(32), aligned(4), may_alias));
typedef int32_t ei_eight_numbers __attribute__((vector_size(32), aligned(4), may_alias));

// EI_EXPONENT sets power to e to the power of each number of v, which is 0 at most, or NaN: 2 to the power of n times that of r, which is
// at most half of ln 2 and has a polynomial; ln 2 is in two parts, the first of which times n is exact. Adding 1.5 * 2^23 and taking it
// away again rounds. What is under -87 is taken for -87. A macro, because a function is compiled for one kind of processor alone.
#define EI_EXPONENT(power, v)                                                                                                           \
    do {                                                                                                                                \
        const ei_eight least = {-87, -87, -87, -87, -87, -87, -87, -87};                                                                \
        const ei_eight_numbers low = (v) < -87.0f;                                                                                      \
        const ei_eight limited = (ei_eight)(((ei_eight_numbers)(v) & ~low) | ((ei_eight_numbers)least & low));                          \
        const ei_eight n = (limited * 1.44269504f + 12582912.0f) - 12582912.0f;                                                         \
        const ei_eight r = limited - n * 0.693359375f + n * 2.12194440e-4f;                                                             \
        const ei_eight p = 1.0f + r * (1.0f + r * (1.0f / 2 + r * (1.0f / 6 + r * (1.0f / 24 + r * (1.0f / 120 + r * (1.0f / 720)))))); \
        const ei_eight_numbers scale = (__builtin_convertvector(n, ei_eight_numbers) + 127) << 23;                                      \
        (power) = p * (ei_eight)scale;                                                                                                  \
    } while (0)

#endif
