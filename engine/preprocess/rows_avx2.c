#include "rows.h"

#if defined(__x86_64__)

#include <cpuid.h>
#include <immintrin.h>
#include <string.h>

#include "taps.h"

#define AVX2 __attribute__((target("avx2,f16c")))

// channel adds the colour part of eight pixel pairs to the luma of sixteen pixels.
AVX2 static inline __m128i channel(__m256i luma_low, __m256i luma_high, __m256i colour) {
    const __m256i first = _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3), last = _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7);
    __m256i low = _mm256_srai_epi32(_mm256_add_epi32(luma_low, _mm256_permutevar8x32_epi32(colour, first)), EI_YUV_SHIFT);
    __m256i high = _mm256_srai_epi32(_mm256_add_epi32(luma_high, _mm256_permutevar8x32_epi32(colour, last)), EI_YUV_SHIFT);
    __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(low, high), 0xd8);
    return _mm_packus_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
}

// sixteen converts sixteen luma samples with eight pairs of U and V.
AVX2 static inline void sixteen(__m128i luma, __m128i uv, uint8_t *bgrx) {
    luma = _mm_subs_epu8(luma, _mm_set1_epi8(16));
    __m256i y_low = _mm256_mullo_epi32(_mm256_cvtepu8_epi32(luma), _mm256_set1_epi32(EI_Y));
    __m256i y_high = _mm256_mullo_epi32(_mm256_cvtepu8_epi32(_mm_srli_si128(luma, 8)), _mm256_set1_epi32(EI_Y));
    __m256i u = _mm256_sub_epi32(_mm256_cvtepu16_epi32(_mm_and_si128(uv, _mm_set1_epi16(0xff))), _mm256_set1_epi32(128));
    __m256i v = _mm256_sub_epi32(_mm256_cvtepu16_epi32(_mm_srli_epi16(uv, 8)), _mm256_set1_epi32(128));
    const __m256i half = _mm256_set1_epi32(EI_YUV_HALF);
    __m256i blue = _mm256_add_epi32(half, _mm256_mullo_epi32(u, _mm256_set1_epi32(EI_UB)));
    __m256i green = _mm256_add_epi32(_mm256_mullo_epi32(v, _mm256_set1_epi32(EI_VG)), _mm256_mullo_epi32(u, _mm256_set1_epi32(EI_UG)));
    __m256i red = _mm256_add_epi32(half, _mm256_mullo_epi32(v, _mm256_set1_epi32(EI_VR)));
    __m128i b = channel(y_low, y_high, blue), g = channel(y_low, y_high, _mm256_add_epi32(half, green)), r = channel(y_low, y_high, red);
    __m128i bg_low = _mm_unpacklo_epi8(b, g), bg_high = _mm_unpackhi_epi8(b, g);
    __m128i rx_low = _mm_unpacklo_epi8(r, _mm_setzero_si128()), rx_high = _mm_unpackhi_epi8(r, _mm_setzero_si128());
    __m128i *out = (__m128i *)bgrx;
    _mm_storeu_si128(out, _mm_unpacklo_epi16(bg_low, rx_low));
    _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(bg_low, rx_low));
    _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(bg_high, rx_high));
    _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(bg_high, rx_high));
}

AVX2 static void nv12_row(const uint8_t *luma, const uint8_t *chroma, int width, uint8_t *bgrx) {
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        sixteen(_mm_loadu_si128((const __m128i *)(luma + i)), _mm_loadu_si128((const __m128i *)(chroma + i)), bgrx + 4 * i);
    }
    ei_nv12_from(luma, chroma, i, width, bgrx);
}

AVX2 static void yuyv_row(const uint8_t *row, int width, uint8_t *bgrx) {
    const __m128i low_bytes = _mm_set1_epi16(0xff);
    int i = 0;
    for (; i + 16 <= width; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *)(row + 2 * i)), b = _mm_loadu_si128((const __m128i *)(row + 2 * i + 16));
        __m128i luma = _mm_packus_epi16(_mm_and_si128(a, low_bytes), _mm_and_si128(b, low_bytes));
        sixteen(luma, _mm_packus_epi16(_mm_srli_epi16(a, 8), _mm_srli_epi16(b, 8)), bgrx + 4 * i);
    }
    ei_yuyv_from(row, i, width, bgrx);
}

// pixels loads the samples of four columns: first and second in the low half, third and fourth in the high one.
AVX2 static inline __m256i pixels(const uint8_t *row, int32_t o0, int32_t o1, int32_t o2, int32_t o3) {
    int64_t p0, p1, p2, p3;
    memcpy(&p0, row + o0, 8);
    memcpy(&p1, row + o1, 8);
    memcpy(&p2, row + o2, 8);
    memcpy(&p3, row + o3, 8);
    __m128i low = _mm_insert_epi64(_mm_cvtsi64_si128(p0), p1, 1);
    __m128i high = _mm_insert_epi64(_mm_cvtsi64_si128(p2), p3, 1);
    return _mm256_inserti128_si256(_mm256_castsi128_si256(low), high, 1);
}

// colour_columns does eight columns at a time. pixel, 3 or 4, is a constant in every copy.
AVX2 static inline __attribute__((always_inline)) void colour_columns(const uint8_t *row, const int pixel, int step, const int32_t *offsets,
                                                                      const int32_t *weights, int count, int wide, int16_t *lines,
                                                                      size_t pitch) {
    const char n = (char)pixel;
    // Samples of one channel as 16-bit pairs: blue in the low eight bytes and green in the high ones, and red alone.
    const __m256i blue_green = _mm256_setr_epi8(0, -1, n, -1, 8, -1, 8 + n, -1, 1, -1, 1 + n, -1, 9, -1, 9 + n, -1, 0, -1, n, -1, 8, -1,
                                                8 + n, -1, 1, -1, 1 + n, -1, 9, -1, 9 + n, -1);
    const __m256i red = _mm256_setr_epi8(2, -1, 2 + n, -1, 10, -1, 10 + n, -1, -1, -1, -1, -1, -1, -1, -1, -1, 2, -1, 2 + n, -1, 10, -1,
                                         10 + n, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    int i = 0;
    for (; i + 8 <= wide; i += 8) {
        const int32_t *o = offsets + i;
        __m256i a = pixels(row, o[0], o[1], o[4], o[5]);
        __m256i b = pixels(row, o[2], o[3], o[6], o[7]);
        __m256i w = _mm256_loadu_si256((const __m256i *)(weights + i));
        __m256i a_bg = _mm256_shuffle_epi8(a, blue_green), b_bg = _mm256_shuffle_epi8(b, blue_green);
        __m256i blues = _mm256_srai_epi32(_mm256_madd_epi16(_mm256_unpacklo_epi64(a_bg, b_bg), w), 4);
        __m256i greens = _mm256_srai_epi32(_mm256_madd_epi16(_mm256_unpackhi_epi64(a_bg, b_bg), w), 4);
        __m256i r = _mm256_unpacklo_epi64(_mm256_shuffle_epi8(a, red), _mm256_shuffle_epi8(b, red));
        __m256i reds = _mm256_srai_epi32(_mm256_madd_epi16(r, w), 4);
        __m256i bg = _mm256_permute4x64_epi64(_mm256_packs_epi32(blues, greens), 0xd8);
        __m256i rr = _mm256_permute4x64_epi64(_mm256_packs_epi32(reds, reds), 0xd8);
        _mm_storeu_si128((__m128i *)(lines + i), _mm256_castsi256_si128(bg));
        _mm_storeu_si128((__m128i *)(lines + pitch + i), _mm256_extracti128_si256(bg, 1));
        _mm_storeu_si128((__m128i *)(lines + 2 * pitch + i), _mm256_castsi256_si128(rr));
    }
    ei_columns_from(row, pixel, step, offsets, weights, i, count, lines, pitch);
}

AVX2 static void bgr_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                             int16_t *lines, size_t pitch) {
    (void)pixel;
    colour_columns(row, 3, step, offsets, weights, count, wide, lines, pitch);
}

AVX2 static void bgrx_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                              int16_t *lines, size_t pitch) {
    (void)pixel;
    colour_columns(row, 4, step, offsets, weights, count, wide, lines, pitch);
}

static inline int two(const uint8_t *samples) {
    uint16_t both;
    memcpy(&both, samples, 2);
    return both;
}

AVX2 static void gray_columns(const uint8_t *row, int pixel, int step, const int32_t *offsets, const int32_t *weights, int count, int wide,
                              int16_t *lines, size_t pitch) {
    int i = 0;
    for (; i + 8 <= wide; i += 8) {
        const int32_t *o = offsets + i;
        __m128i samples = _mm_cvtsi32_si128(two(row + o[0]));
        samples = _mm_insert_epi16(samples, two(row + o[1]), 1);
        samples = _mm_insert_epi16(samples, two(row + o[2]), 2);
        samples = _mm_insert_epi16(samples, two(row + o[3]), 3);
        samples = _mm_insert_epi16(samples, two(row + o[4]), 4);
        samples = _mm_insert_epi16(samples, two(row + o[5]), 5);
        samples = _mm_insert_epi16(samples, two(row + o[6]), 6);
        samples = _mm_insert_epi16(samples, two(row + o[7]), 7);
        __m256i w = _mm256_loadu_si256((const __m256i *)(weights + i));
        __m256i sum = _mm256_srai_epi32(_mm256_madd_epi16(_mm256_cvtepu8_epi16(samples), w), 4);
        sum = _mm256_permute4x64_epi64(_mm256_packs_epi32(sum, sum), 0xd8);
        _mm_storeu_si128((__m128i *)(lines + i), _mm256_castsi256_si128(sum));
    }
    ei_columns_from(row, pixel, step, offsets, weights, i, count, lines, pitch);
}

AVX2 static inline __m256i levels(const int16_t *upper, const int16_t *lower, __m256i b0, __m256i b1) {
    __m256i u = _mm256_mulhi_epi16(_mm256_loadu_si256((const __m256i *)upper), b0);
    __m256i l = _mm256_mulhi_epi16(_mm256_loadu_si256((const __m256i *)lower), b1);
    return _mm256_srai_epi16(_mm256_add_epi16(_mm256_add_epi16(u, l), _mm256_set1_epi16(2)), 2);
}

// to_output makes elements of eight levels: scaled, and not in one step with the addition, which would round once only.
AVX2 static inline __m256 to_output(__m256i levels, __m256 scale, __m256 bias) {
    return _mm256_add_ps(_mm256_mul_ps(_mm256_cvtepi32_ps(levels), scale), bias);
}

// scaled is to_output without a bias, the usual case.
AVX2 static inline __m256 scaled(__m256i levels, __m256 scale) { return _mm256_mul_ps(_mm256_cvtepi32_ps(levels), scale); }

// biased is a constant in every copy.
AVX2 static inline __attribute__((always_inline)) void blend_floats(const int biased, const int16_t *upper, const int16_t *lower,
                                                                    int16_t b0, int16_t b1, int count, float scale, float bias,
                                                                    float *out) {
    const __m256i w0 = _mm256_set1_epi16(b0), w1 = _mm256_set1_epi16(b1);
    const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i v = levels(upper + i, lower + i, w0, w1);
        __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(v)), high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(v, 1));
        _mm256_storeu_ps(out + i, biased ? to_output(low, s, b) : scaled(low, s));
        _mm256_storeu_ps(out + i + 8, biased ? to_output(high, s, b) : scaled(high, s));
    }
    ei_blend_float_from(upper, lower, b0, b1, i, count, scale, bias, out);
}

AVX2 static void blend_float(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                             void *output) {
    if (bias == 0) {
        blend_floats(0, upper, lower, b0, b1, count, scale, 0, output);
    } else {
        blend_floats(1, upper, lower, b0, b1, count, scale, bias, output);
    }
}

AVX2 static inline __attribute__((always_inline)) void blend_halves(const int biased, const int16_t *upper, const int16_t *lower,
                                                                    int16_t b0, int16_t b1, int count, float scale, float bias,
                                                                    uint16_t *out) {
    const __m256i w0 = _mm256_set1_epi16(b0), w1 = _mm256_set1_epi16(b1);
    const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i v = levels(upper + i, lower + i, w0, w1);
        __m256i low = _mm256_cvtepi16_epi32(_mm256_castsi256_si128(v)), high = _mm256_cvtepi16_epi32(_mm256_extracti128_si256(v, 1));
        __m256 first = biased ? to_output(low, s, b) : scaled(low, s), last = biased ? to_output(high, s, b) : scaled(high, s);
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(first, _MM_FROUND_TO_NEAREST_INT));
        _mm_storeu_si128((__m128i *)(out + i + 8), _mm256_cvtps_ph(last, _MM_FROUND_TO_NEAREST_INT));
    }
    ei_blend_half_from(upper, lower, b0, b1, i, count, scale, bias, out);
}

AVX2 static void blend_half(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                            void *output) {
    if (bias == 0) {
        blend_halves(0, upper, lower, b0, b1, count, scale, 0, output);
    } else {
        blend_halves(1, upper, lower, b0, b1, count, scale, bias, output);
    }
}

AVX2 static void blend_bytes(const int16_t *upper, const int16_t *lower, int16_t b0, int16_t b1, int count, float scale, float bias,
                             void *output) {
    (void)scale;
    (void)bias;
    const __m256i w0 = _mm256_set1_epi16(b0), w1 = _mm256_set1_epi16(b1);
    uint8_t *out = output;
    int i = 0;
    for (; i + 16 <= count; i += 16) {
        __m256i v = levels(upper + i, lower + i, w0, w1);
        _mm_storeu_si128((__m128i *)(out + i), _mm_packus_epi16(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1)));
    }
    ei_blend_bytes_from(upper, lower, b0, b1, i, count, out);
}

// rounded is ei_rounded of four sums of four channels each, as bytes.
AVX2 static inline __m128i rounded(__m128i a, __m128i b, __m128i c, __m128i d) {
    const __m128i half = _mm_set1_epi32(EI_WEIGHT_HALF);
    a = _mm_srai_epi32(_mm_add_epi32(a, half), EI_WEIGHT_BITS);
    b = _mm_srai_epi32(_mm_add_epi32(b, half), EI_WEIGHT_BITS);
    c = _mm_srai_epi32(_mm_add_epi32(c, half), EI_WEIGHT_BITS);
    d = _mm_srai_epi32(_mm_add_epi32(d, half), EI_WEIGHT_BITS);
    return _mm_packus_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, d));
}

// weighed adds up the pixels of one column, two at a time; an odd one more has the weight 0. pixel is a constant in every copy.
AVX2 static inline __attribute__((always_inline)) __m128i weighed(const uint8_t *p, const int pixel, const int32_t *weights, int taps) {
    const __m256i spread = _mm256_setr_epi32(0, 0, 0, 0, 1, 1, 1, 1);
    const __m128i four = pixel == 3 ? _mm_setr_epi8(0, 1, 2, -1, 3, 4, 5, -1, -1, -1, -1, -1, -1, -1, -1, -1)
                                    : _mm_setr_epi8(0, 1, 2, -1, 4, 5, 6, -1, -1, -1, -1, -1, -1, -1, -1, -1);
    __m256i sum = _mm256_setzero_si256();
    for (int k = 0; k < taps; k += 2) {
        __m128i two = _mm_shuffle_epi8(_mm_loadl_epi64((const __m128i *)(p + k * pixel)), four);
        __m128i w = _mm_loadl_epi64((const __m128i *)(weights + k));
        sum = _mm256_add_epi32(
            sum, _mm256_mullo_epi32(_mm256_cvtepu8_epi32(two), _mm256_permutevar8x32_epi32(_mm256_castsi128_si256(w), spread)));
    }
    return _mm_add_epi32(_mm256_castsi256_si128(sum), _mm256_extracti128_si256(sum, 1));
}

AVX2 static inline __attribute__((always_inline)) void weigh_colour(const uint8_t *row, const int pixel, const int32_t *offsets,
                                                                    const int32_t *weights, int taps, int padded, int count, int wide,
                                                                    uint8_t *lines, size_t pitch) {
    const __m128i planes = _mm_setr_epi8(0, 4, 8, 12, 1, 5, 9, 13, 2, 6, 10, 14, 3, 7, 11, 15);
    int i = 0;
    for (; i + 4 <= wide; i += 4) {
        __m128i column[4];
        for (int k = 0; k < 4; k++) {
            column[k] = weighed(row + offsets[i + k], pixel, weights + (size_t)(i + k) * (size_t)padded, taps);
        }
        __m128i bytes = _mm_shuffle_epi8(rounded(column[0], column[1], column[2], column[3]), planes);
        for (int c = 0; c < 3; c++, bytes = _mm_srli_si128(bytes, 4)) {
            int32_t four = _mm_cvtsi128_si32(bytes);
            memcpy(lines + (size_t)c * pitch + i, &four, 4);
        }
    }
    ei_weigh_columns_from(row, pixel, offsets, weights, taps, padded, i, count, lines, pitch);
}

AVX2 static void weigh_bgr(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                           int wide, uint8_t *lines, size_t pitch) {
    (void)pixel;
    weigh_colour(row, 3, offsets, weights, taps, padded, count, wide, lines, pitch);
}

AVX2 static void weigh_bgrx(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                            int wide, uint8_t *lines, size_t pitch) {
    (void)pixel;
    weigh_colour(row, 4, offsets, weights, taps, padded, count, wide, lines, pitch);
}

AVX2 static void weigh_gray(const uint8_t *row, int pixel, const int32_t *offsets, const int32_t *weights, int taps, int padded, int count,
                            int wide, uint8_t *lines, size_t pitch) {
    int i = 0;
    for (; i < wide; i++) {
        const int32_t *w = weights + (size_t)i * (size_t)padded;
        __m256i sums = _mm256_setzero_si256();
        for (int k = 0; k < taps; k += 8) {
            __m256i samples = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(row + offsets[i] + k)));
            sums = _mm256_add_epi32(sums, _mm256_mullo_epi32(samples, _mm256_loadu_si256((const __m256i *)(w + k))));
        }
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256(sums, 1));
        __m128i two = _mm_add_epi32(four, _mm_unpackhi_epi64(four, four));
        lines[i] = (uint8_t)ei_rounded(_mm_cvtsi128_si32(two) + _mm_extract_epi32(two, 1));
    }
    ei_weigh_columns_from(row, pixel, offsets, weights, taps, padded, i, count, lines, pitch);
}

AVX2 static void weigh_lines(const uint8_t *const *lines, const int32_t *weights, int taps, int count, uint8_t *out) {
    int i = 0;
    for (; i + 32 <= count; i += 32) {
        __m256i sums[4] = {_mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256(), _mm256_setzero_si256()};
        for (int k = 0; k < taps; k++) {
            const __m256i w = _mm256_set1_epi32(weights[k]);
            for (int j = 0; j < 4; j++) {
                __m256i samples = _mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(lines[k] + i + 8 * j)));
                sums[j] = _mm256_add_epi32(sums[j], _mm256_mullo_epi32(samples, w));
            }
        }
        for (int j = 0; j < 4; j += 2) {
            __m128i bytes = rounded(_mm256_castsi256_si128(sums[j]), _mm256_extracti128_si256(sums[j], 1),
                                    _mm256_castsi256_si128(sums[j + 1]), _mm256_extracti128_si256(sums[j + 1], 1));
            _mm_storeu_si128((__m128i *)(out + i + 8 * j), bytes);
        }
    }
    ei_weigh_lines_from(lines, weights, taps, i, count, out);
}

AVX2 static void store_float(const uint8_t *levels, int count, float scale, float bias, void *output) {
    const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
    float *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        _mm256_storeu_ps(out + i, to_output(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(levels + i))), s, b));
    }
    ei_store_float_from(levels, i, count, scale, bias, out);
}

AVX2 static void store_half(const uint8_t *levels, int count, float scale, float bias, void *output) {
    const __m256 s = _mm256_set1_ps(scale), b = _mm256_set1_ps(bias);
    uint16_t *out = output;
    int i = 0;
    for (; i + 8 <= count; i += 8) {
        __m256 elements = to_output(_mm256_cvtepu8_epi32(_mm_loadl_epi64((const __m128i *)(levels + i))), s, b);
        _mm_storeu_si128((__m128i *)(out + i), _mm256_cvtps_ph(elements, _MM_FROUND_TO_NEAREST_INT));
    }
    ei_store_half_from(levels, i, count, scale, bias, out);
}

static const ei_kernels kernels = {
    .name = "avx2",
    .nv12_row = nv12_row,
    .yuyv_row = yuyv_row,
    .columns = {gray_columns, bgr_columns, bgrx_columns},
    .blend = {blend_float, blend_half, blend_bytes},
    .weigh_columns = {weigh_gray, weigh_bgr, weigh_bgrx},
    .weigh_lines = weigh_lines,
    .store = {store_float, store_half, ei_store_bytes},
};

// Only some compilers' __builtin_cpu_supports supports F16C.
static int has_f16c(void) {
    unsigned a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & bit_F16C);
}

const ei_kernels *ei_kernels_avx2(void) { return __builtin_cpu_supports("avx2") && has_f16c() ? &kernels : NULL; }

#else

const ei_kernels *ei_kernels_avx2(void) { return NULL; }

#endif
