// Conversion of binary32 to binary16 in software.
#ifndef EDGE_INFER_PREPROCESS_HALF_H_
#define EDGE_INFER_PREPROCESS_HALF_H_

#include <stdint.h>
#include <string.h>

static inline uint32_t ei_bits(float v) {
    uint32_t bits;
    memcpy(&bits, &v, sizeof bits);
    return bits;
}

// Rounds to nearest, ties to even.
static inline uint16_t ei_half(float v) {
    const uint32_t sign = ei_bits(v) >> 16 & 0x8000, infinite = 0x7f800000, over = (uint32_t)(127 + 16) << 23,
                   normal = (uint32_t)(127 - 14) << 23;
    uint32_t bits = ei_bits(v) & 0x7fffffff;
    if (bits >= over) {
        return (uint16_t)(sign | (bits > infinite ? 0x7e00 : 0x7c00));
    }
    if (bits < normal) {  // the last bit of numbers from 0.5 to 1 is the smallest binary16
        float magnitude;
        memcpy(&magnitude, &bits, sizeof bits);
        return (uint16_t)(sign | (ei_bits(magnitude + 0.5f) - ei_bits(0.5f)));
    }
    bits -= (uint32_t)(127 - 15) << 23;
    return (uint16_t)(sign | (bits + 0xfff + (bits >> 13 & 1)) >> 13);
}

#endif
