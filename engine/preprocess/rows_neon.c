#include "rows.h"

#if defined(__aarch64__)

#include <arm_neon.h>

// channel adds the colour part of eight pixels to their luma.
static inline uint8x8_t channel(int32x4_t luma_low, int32x4_t luma_high, int32x4_t low, int32x4_t high) {
    uint16x4_t l = vqmovun_s32(vshrq_n_s32(vaddq_s32(luma_low, low), EI_YUV_SHIFT));
    uint16x4_t h = vqmovun_s32(vshrq_n_s32(vaddq_s32(luma_high, high), EI_YUV_SHIFT));
    return vqmovn_u16(vcombine_u16(l, h));
}

static inline int32x4_t low_words(int16x8_t v) { return vmovl_s16(vget_low_s16(v)); }

static inline int32x4_t high_words(int16x8_t v) { return vmovl_s16(vget_high_s16(v)); }

// sixteen converts eight pairs of pixels: luma of the even and the odd ones, and the U and V of every pair.
static inline void sixteen(uint8x8_t even, uint8x8_t odd, uint8x8_t u_samples, uint8x8_t v_samples, uint8_t *bgrx) {
    const int32x4_t half = vdupq_n_s32(EI_YUV_HALF);
    int16x8_t u = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(u_samples)), vdupq_n_s16(128));
    int16x8_t v = vsubq_s16(vreinterpretq_s16_u16(vmovl_u8(v_samples)), vdupq_n_s16(128));
    int32x4_t ul = low_words(u), uh = high_words(u), vl = low_words(v), vh = high_words(v);
    int32x4_t bl = vmlaq_n_s32(half, ul, EI_UB), bh = vmlaq_n_s32(half, uh, EI_UB);
    int32x4_t gl = vmlaq_n_s32(vmlaq_n_s32(half, vl, EI_VG), ul, EI_UG), gh = vmlaq_n_s32(vmlaq_n_s32(half, vh, EI_VG), uh, EI_UG);
    int32x4_t rl = vmlaq_n_s32(half, vl, EI_VR), rh = vmlaq_n_s32(half, vh, EI_VR);
    uint8x8_t b[2], g[2], r[2], luma[2] = {even, odd};
    for (int i = 0; i < 2; i++) {
        int16x8_t y = vreinterpretq_s16_u16(vmovl_u8(vqsub_u8(luma[i], vdup_n_u8(16))));
        int32x4_t yl = vmulq_n_s32(low_words(y), EI_Y), yh = vmulq_n_s32(high_words(y), EI_Y);
        b[i] = channel(yl, yh, bl, bh);
        g[i] = channel(yl, yh, gl, gh);
        r[i] = channel(yl, yh, rl, rh);
    }
    uint8x16x4_t out;
    out.val[0] = vcombine_u8(vzip1_u8(b[0], b[1]), vzip2_u8(b[0], b[1]));
    out.val[1] = vcombine_u8(vzip1_u8(g[0], g[1]), vzip2_u8(g[0], g[1]));
    out.val[2] = vcombine_u8(vzip1_u8(r[0], r[1]), vzip2_u8(r[0], r[1]));
    out.val[3] = vdupq_n_u8(0);
    vst4q_u8(bgrx, out);
}

static void nv12_row(const uint8_t *luma, const uint8_t *chroma, int width, uint8_t *bgrx) {
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        uint8x8x2_t y = vld2_u8(luma + i), uv = vld2_u8(chroma + i);
        sixteen(y.val[0], y.val[1], uv.val[0], uv.val[1], bgrx + 4 * i);
    }
    ei_nv12_from(luma, chroma, i, width, bgrx);
}

static void yuyv_row(const uint8_t *row, int width, uint8_t *bgrx) {
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        uint8x8x4_t p = vld4_u8(row + 2 * i);
        sixteen(p.val[0], p.val[2], p.val[1], p.val[3], bgrx + 4 * i);
    }
    ei_yuyv_from(row, i, width, bgrx);
}

// columns does eight at a time: 8 bytes of each column side by side in a 64-byte table, from which one lookup per channel takes the
// first samples of all eight columns and then the second ones. pixel is a constant in every copy.
static inline __attribute__((always_inline)) void columns(const uint8_t *row, const int pixel, int step, const int32_t *offsets,
                                                          const int32_t *weights, int count, int wide, int16_t *lines, size_t pitch) {
    static const uint8_t places[16] = {0, 8, 16, 24, 32, 40, 48, 56, 0, 8, 16, 24, 32, 40, 48, 56};
    const int channels = pixel == 1 ? 1 : 3;
    const uint8x16_t second = vcombine_u8(vdup_n_u8(0), vdup_n_u8((uint8_t)pixel));
    const uint8x16_t base = vaddq_u8(vld1q_u8(places), second);
    int i = 0;
    for (; i + 8 <= wide; i += 8) {
        const int32_t *o = offsets + i;
        uint8x16x4_t table;
        table.val[0] = vcombine_u8(vld1_u8(row + o[0]), vld1_u8(row + o[1]));
        table.val[1] = vcombine_u8(vld1_u8(row + o[2]), vld1_u8(row + o[3]));
        table.val[2] = vcombine_u8(vld1_u8(row + o[4]), vld1_u8(row + o[5]));
        table.val[3] = vcombine_u8(vld1_u8(row + o[6]), vld1_u8(row + o[7]));
        int16x8x2_t w = vld2q_s16((const int16_t *)(weights + i));
        for (int c = 0; c < channels; c++) {
            uint8x16_t samples = vqtbl4q_u8(table, vaddq_u8(base, vdupq_n_u8((uint8_t)c)));
            int16x8_t s0 = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(samples)));
            int16x8_t s1 = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(samples)));
            int32x4_t low = vmlal_s16(vmull_s16(vget_low_s16(s0), vget_low_s16(w.val[0])), vget_low_s16(s1), vget_low_s16(w.val[1]));
            int32x4_t high = vmlal_s16(vmull_s16(vget_high_s16(s0), vget_high_s16(w.val[0])), vget_high_s16(s1), vget_high_s16(w.val[1]));
            vst1q_s16(lines + (size_t)c * pitch + i, vcombine_s16(vshrn_n_s32(low, 4), vshrn_n_s32(high, 4)));
        }
    }
    ei_columns_from(row, pixel, step, offsets, weights, i, count, lines, pitch);
}

static void gray_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                         int16_t *lines, size_t pitch) {
    (void)pixel;
    columns(row, 1, step, offsets, weights, count, wide, lines, pitch);
}

static void bgr_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                        int16_t *lines, size_t pitch) {
    (void)pixel;
    columns(row, 3, step, offsets, weights, count, wide, lines, pitch);
}

static void bgrx_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                         int16_t *lines, size_t pitch) {
    (void)pixel;
    columns(row, 4, step, offsets, weights, count, wide, lines, pitch);
}

static inline int16x8_t levels(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1) {
    int16x8_t u = vld1q_s16(upper), l = vld1q_s16(lower);
    int16x8_t mu = vcombine_s16(vshrn_n_s32(vmull_n_s16(vget_low_s16(u), b0), 16), vshrn_n_s32(vmull_n_s16(vget_high_s16(u), b0), 16));
    int16x8_t ml = vcombine_s16(vshrn_n_s32(vmull_n_s16(vget_low_s16(l), b1), 16), vshrn_n_s32(vmull_n_s16(vget_high_s16(l), b1), 16));
    return vshrq_n_s16(vaddq_s16(vaddq_s16(mu, ml), vdupq_n_s16(2)), 2);
}

static void blend_float(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, void *output) {
    float *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = levels(upper + i, lower + i, b0, b1);
        vst1q_f32(out + i, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), EI_LEVEL));
        vst1q_f32(out + i + 4, vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(v))), EI_LEVEL));
    }
    ei_blend_float_from(upper, lower, b0, b1, i, count, out);
}

static void blend_half(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, void *output) {
    uint16_t *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = levels(upper + i, lower + i, b0, b1);
        float32x4_t low = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_low_s16(v))), EI_LEVEL);
        float32x4_t high = vmulq_n_f32(vcvtq_f32_s32(vmovl_s16(vget_high_s16(v))), EI_LEVEL);
        vst1q_u16(out + i, vreinterpretq_u16_f16(vcombine_f16(vcvt_f16_f32(low), vcvt_f16_f32(high))));
    }
    ei_blend_half_from(upper, lower, b0, b1, i, count, out);
}

static const ei_kernels kernels = {"neon", nv12_row, yuyv_row, {gray_columns, bgr_columns, bgrx_columns}, {blend_float, blend_half}};

const ei_kernels *ei_kernels_neon(void) { return &kernels; }

#else

const ei_kernels *ei_kernels_neon(void) { return NULL; }

#endif
