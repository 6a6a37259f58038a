// Colour conversion of one row, written so that the compiler vectorizes it; each instruction set compiles its own copy.
#ifndef EDGE_INFER_PREPROCESS_COLOUR_H_
#define EDGE_INFER_PREPROCESS_COLOUR_H_

#include <stdint.h>

// BT.601 limited range in 20-bit fixed point.
enum { EI_Y = 1220542, EI_UB = 2116026, EI_UG = -409993, EI_VG = -852492, EI_VR = 1673527, EI_YUV_SHIFT = 20 };

static inline __attribute__((always_inline)) uint8_t ei_level(int32_t fixed) {
    int32_t v = fixed >> EI_YUV_SHIFT;
    return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v);
}

static inline __attribute__((always_inline)) void ei_pixel(int32_t luma, int32_t r, int32_t g, int32_t b, uint8_t *bgr) {
    int32_t y = (luma < 16 ? 0 : luma - 16) * EI_Y;
    bgr[0] = ei_level(y + b);
    bgr[1] = ei_level(y + g);
    bgr[2] = ei_level(y + r);
}

// ei_yuv_row converts pairs of pixels: luma samples luma_step bytes apart, one U and V every chroma_step bytes.
static inline __attribute__((always_inline)) void ei_yuv_row(const uint8_t *luma, int luma_step, const uint8_t *u_samples,
                                                             const uint8_t *v_samples, int chroma_step, int width, uint8_t *bgr) {
    const int32_t half = 1 << (EI_YUV_SHIFT - 1);
    for (int i = 0; i < width / 2; i++) {
        int32_t u = u_samples[i * chroma_step] - 128, v = v_samples[i * chroma_step] - 128;
        int32_t r = half + EI_VR * v, g = half + EI_VG * v + EI_UG * u, b = half + EI_UB * u;
        ei_pixel(luma[2 * i * luma_step], r, g, b, bgr + 6 * i);
        ei_pixel(luma[(2 * i + 1) * luma_step], r, g, b, bgr + 6 * i + 3);
    }
}

static inline __attribute__((always_inline)) void ei_gray_row(const uint8_t *row, int pixel, int width, uint8_t *gray) {
    for (int i = 0; i < width; i++) {
        const uint8_t *p = row + i * pixel;
        gray[i] = (uint8_t)((p[0] * 3735 + p[1] * 19235 + p[2] * 9798 + (1 << 14)) >> 15);
    }
}

#endif
