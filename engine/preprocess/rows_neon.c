#include "rows.h"

#if defined(__aarch64__)

#include <arm_neon.h>

#include "taps.h"

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

// to_output makes elements of four levels: scaled, and not in one step with the addition, which would round once only.
static inline float32x4_t to_output(int32x4_t levels, float scale, float32x4_t bias) {
    return vaddq_f32(vmulq_n_f32(vcvtq_f32_s32(levels), scale), bias);
}

// scaled is to_output without a bias, the usual case.
static inline float32x4_t scaled(int32x4_t levels, float scale) { return vmulq_n_f32(vcvtq_f32_s32(levels), scale); }

static inline uint16x8_t halves(float32x4_t low, float32x4_t high) {
    return vreinterpretq_u16_f16(vcombine_f16(vcvt_f16_f32(low), vcvt_f16_f32(high)));
}

// biased is a constant in every copy.
static inline __attribute__((always_inline)) void blend_floats(const int biased, const int16_t *upper, const int16_t *lower, int16_t b0,
                                                               int16_t b1, int count, float scale, float bias, float *out) {
    const float32x4_t b = vdupq_n_f32(bias);
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = levels(upper + i, lower + i, b0, b1);
        int32x4_t low = low_words(v), high = high_words(v);
        vst1q_f32(out + i, biased ? to_output(low, scale, b) : scaled(low, scale));
        vst1q_f32(out + i + 4, biased ? to_output(high, scale, b) : scaled(high, scale));
    }
    ei_blend_float_from(upper, lower, b0, b1, i, count, scale, bias, out);
}

static void blend_float(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                        void *output) {
    if (bias == 0) {
        blend_floats(0, upper, lower, b0, b1, count, scale, 0, output);
    } else {
        blend_floats(1, upper, lower, b0, b1, count, scale, bias, output);
    }
}

static inline __attribute__((always_inline)) void blend_halves(const int biased, const int16_t *upper, const int16_t *lower, int16_t b0,
                                                               int16_t b1, int count, float scale, float bias, uint16_t *out) {
    const float32x4_t b = vdupq_n_f32(bias);
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = levels(upper + i, lower + i, b0, b1);
        int32x4_t low = low_words(v), high = high_words(v);
        vst1q_u16(out + i,
                  biased ? halves(to_output(low, scale, b), to_output(high, scale, b)) : halves(scaled(low, scale), scaled(high, scale)));
    }
    ei_blend_half_from(upper, lower, b0, b1, i, count, scale, bias, out);
}

static void blend_half(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                       void *output) {
    if (bias == 0) {
        blend_halves(0, upper, lower, b0, b1, count, scale, 0, output);
    } else {
        blend_halves(1, upper, lower, b0, b1, count, scale, bias, output);
    }
}

static void blend_bytes(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                        void *output) {
    (void)scale;
    (void)bias;
    uint8_t *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        vst1_u8(out + i, vqmovun_s16(levels(upper + i, lower + i, b0, b1)));
    }
    ei_blend_bytes_from(upper, lower, b0, b1, i, count, out);
}

// rounded is ei_rounded of eight sums, as bytes.
static inline uint8x8_t rounded(int32x4_t low, int32x4_t high) {
    return vqmovn_u16(vcombine_u16(vqmovun_s32(vrshrq_n_s32(low, EI_WEIGHT_BITS)), vqmovun_s32(vrshrq_n_s32(high, EI_WEIGHT_BITS))));
}

// weighed adds up the pixels of one column, two at a time; an odd one more has the weight 0. pixel is a constant in every copy.
static inline __attribute__((always_inline)) int32x4_t weighed(const uint8_t *p, const int pixel, const int32_t *weights, int taps) {
    static const uint8_t threes[8] = {0, 1, 2, 2, 3, 4, 5, 5};
    const uint8x8_t four = vld1_u8(threes);
    int32x4_t sum = vdupq_n_s32(0);
    for (int k = 0; k < taps; k += 2) {
        uint8x8_t two = vld1_u8(p + k * pixel);
        if (pixel == 3) {
            two = vtbl1_u8(two, four);
        }
        int16x8_t samples = vreinterpretq_s16_u16(vmovl_u8(two));
        sum = vmlaq_n_s32(sum, low_words(samples), weights[k]);
        sum = vmlaq_n_s32(sum, high_words(samples), weights[k + 1]);
    }
    return sum;
}

static inline __attribute__((always_inline)) void weigh_colour(const uint8_t *row, const int pixel, const int32_t *offsets,
                                                               const int32_t *weights, int taps, int padded, int count, int wide,
                                                               uint8_t *lines, size_t pitch) {
    int i = 0;
    for (; i + 2 <= wide; i += 2) {
        int32x4_t first = weighed(row + offsets[i], pixel, weights + (size_t)i * (size_t)padded, taps);
        int32x4_t second = weighed(row + offsets[i + 1], pixel, weights + (size_t)(i + 1) * (size_t)padded, taps);
        uint8x8_t both = rounded(first, second);
        uint8_t *at = lines + i;
        at[0] = vget_lane_u8(both, 0);
        at[1] = vget_lane_u8(both, 4);
        at[pitch] = vget_lane_u8(both, 1);
        at[pitch + 1] = vget_lane_u8(both, 5);
        at[2 * pitch] = vget_lane_u8(both, 2);
        at[2 * pitch + 1] = vget_lane_u8(both, 6);
    }
    ei_weigh_columns_from(row, pixel, offsets, weights, taps, padded, i, count, lines, pitch);
}

static void weigh_bgr(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                      int wide, uint8_t *lines, size_t pitch) {
    (void)pixel;
    weigh_colour(row, 3, offsets, weights, taps, padded, count, wide, lines, pitch);
}

static void weigh_bgrx(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                       int wide, uint8_t *lines, size_t pitch) {
    (void)pixel;
    weigh_colour(row, 4, offsets, weights, taps, padded, count, wide, lines, pitch);
}

static void weigh_gray(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                       int wide, uint8_t *lines, size_t pitch) {
    int i = 0;
    for (; i < wide; i++) {
        const int32_t *w = weights + (size_t)i * (size_t)padded;
        int32x4_t sum = vdupq_n_s32(0);
        for (int k = 0; k < taps; k += 8) {
            int16x8_t samples = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(row + offsets[i] + k)));
            sum = vmlaq_s32(sum, low_words(samples), vld1q_s32(w + k));
            sum = vmlaq_s32(sum, high_words(samples), vld1q_s32(w + k + 4));
        }
        lines[i] = (uint8_t)ei_rounded(vaddvq_s32(sum));
    }
    ei_weigh_columns_from(row, pixel, offsets, weights, taps, padded, i, count, lines, pitch);
}

static void weigh_lines(const uint8_t *const *lines, const int32_t *weights, int taps, int count, uint8_t *out) {
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        int32x4_t sums[4] = {vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0), vdupq_n_s32(0)};
        for (int k = 0; k < taps; k++) {
            uint8x16_t samples = vld1q_u8(lines[k] + i);
            int16x8_t low = vreinterpretq_s16_u16(vmovl_u8(vget_low_u8(samples)));
            int16x8_t high = vreinterpretq_s16_u16(vmovl_u8(vget_high_u8(samples)));
            sums[0] = vmlaq_n_s32(sums[0], low_words(low), weights[k]);
            sums[1] = vmlaq_n_s32(sums[1], high_words(low), weights[k]);
            sums[2] = vmlaq_n_s32(sums[2], low_words(high), weights[k]);
            sums[3] = vmlaq_n_s32(sums[3], high_words(high), weights[k]);
        }
        vst1q_u8(out + i, vcombine_u8(rounded(sums[0], sums[1]), rounded(sums[2], sums[3])));
    }
    ei_weigh_lines_from(lines, weights, taps, i, count, out);
}

static void store_float(const uint8_t *from, int count, float scale, float bias, void *output) {
    const float32x4_t b = vdupq_n_f32(bias);
    float *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + i)));
        vst1q_f32(out + i, to_output(low_words(v), scale, b));
        vst1q_f32(out + i + 4, to_output(high_words(v), scale, b));
    }
    ei_store_float_from(from, i, count, scale, bias, out);
}

static void store_half(const uint8_t *from, int count, float scale, float bias, void *output) {
    const float32x4_t b = vdupq_n_f32(bias);
    uint16_t *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        int16x8_t v = vreinterpretq_s16_u16(vmovl_u8(vld1_u8(from + i)));
        vst1q_u16(out + i, halves(to_output(low_words(v), scale, b), to_output(high_words(v), scale, b)));
    }
    ei_store_half_from(from, i, count, scale, bias, out);
}

static const ei_kernels kernels = {
    .name = "neon",
    .nv12_row = nv12_row,
    .yuyv_row = yuyv_row,
    .columns = {gray_columns, bgr_columns, bgrx_columns},
    .blend = {blend_float, blend_half, blend_bytes},
    .weigh_columns = {weigh_gray, weigh_bgr, weigh_bgrx},
    .weigh_lines = weigh_lines,
    .store = {store_float, store_half, ei_store_bytes},
};

const ei_kernels *ei_kernels_neon(void) { return &kernels; }

#else

const ei_kernels *ei_kernels_neon(void) { return NULL; }

#endif
