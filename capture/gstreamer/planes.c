#include "planes.h"

#include <pthread.h>
#include <string.h>

static ei_levels limited;

static void make_limited(void) {
    for (int i = 0; i < 256; i++) {
        limited.luma[i] = (unsigned char)(16 + (i * 219 + 127) / 255);
        limited.chroma[i] = (unsigned char)(128 + ((i - 128) * 224 + (i < 128 ? -127 : 127)) / 255);
    }
}

const ei_levels *ei_limited_levels(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, make_limited);
    return &limited;
}

static size_t align(size_t n, size_t to) { return (n + to - 1) / to * to; }

int ei_default_planes(const ei_gst_image *image, ei_planes *p) {
    if (image->format == EI_GST_OTHER || image->width <= 0 || image->height <= 0) return -1;
    size_t width = image->width, height = image->height, even = align(height, 2);
    static const size_t pixel_bytes[] = {
        [EI_GST_BGR] = 3, [EI_GST_BGRX] = 4, [EI_GST_NV12] = 1, [EI_GST_I420] = 1, [EI_GST_YUY2] = 2, [EI_GST_GRAY8] = 1,
    };
    *p = (ei_planes){.count = 1, .row = {width * pixel_bytes[image->format]}, .rows = {height}};
    p->stride[0] = align(p->row[0], 4);
    if (image->format == EI_GST_NV12) {
        p->count = 2;
        p->row[1] = width;
        p->rows[1] = height / 2;
        p->stride[1] = p->stride[0];
        p->offset[1] = p->stride[0] * even;
    } else if (image->format == EI_GST_I420) {
        p->count = 3;
        p->row[1] = p->row[2] = width / 2;
        p->rows[1] = p->rows[2] = height / 2;
        p->stride[1] = p->stride[2] = align(align(width, 2) / 2, 4);
        p->offset[1] = p->stride[0] * even;
        p->offset[2] = p->offset[1] + p->stride[1] * even / 2;
    }
    return 0;
}

int ei_own_planes(GstBuffer *buffer, const ei_gst_image *image, ei_planes *p) {
    const ei_gst_video_meta *meta = (const ei_gst_video_meta *)ei_gst.gst_buffer_get_meta(buffer, ei_gst.gst_video_meta_api_get_type());
    if (!meta) return 0;
    if (meta->n_planes != p->count || (int)meta->width < image->width || (int)meta->height < image->height) return -1;
    for (size_t i = 0; i < p->count; i++) {
        if (meta->stride[i] < 0) return -1;  // bottom-up
        p->offset[i] = meta->offset[i];
        p->stride[i] = meta->stride[i];
    }
    return 0;
}

// fits reports whether rows that begin stride bytes apart lie in memory of the given size.
static int fits(size_t offset, size_t row, size_t rows, size_t stride, size_t size) {
    return rows == 0 || (stride >= row && offset <= size && stride * (rows - 1) + row <= size - offset);
}

static void replace(unsigned char *row, size_t length, const unsigned char *levels) {
    for (size_t i = 0; i < length; i++) row[i] = levels[row[i]];
}

static void interleave(unsigned char *to, const unsigned char *u, const unsigned char *v, size_t count) {
    for (size_t i = 0; i < count; i++) {
        to[2 * i] = u[i];
        to[2 * i + 1] = v[i];
    }
}

int ei_copy_planes(const ei_planes *p, const ei_gst_map *from, const ei_levels *levels, unsigned char *to, size_t size, size_t stride) {
    const int planar = p->count == 3;  // two planes of colours become one
    const size_t chroma = planar ? 2 * p->row[1] : p->row[1], at = stride * p->rows[0];
    for (size_t i = 0; i < p->count; i++) {
        if (!fits(p->offset[i], p->row[i], p->rows[i], p->stride[i], from->size)) return -1;
    }
    if (!fits(0, p->row[0], p->rows[0], stride, size) || !fits(at, chroma, p->rows[1], stride, size)) return -1;
    for (size_t y = 0; y < p->rows[0]; y++) {
        memcpy(to + y * stride, from->data + p->offset[0] + y * p->stride[0], p->row[0]);
        if (levels) replace(to + y * stride, p->row[0], levels->luma);
    }
    for (size_t y = 0; y < p->rows[1]; y++) {
        unsigned char *row = to + at + y * stride;
        const unsigned char *first = from->data + p->offset[1] + y * p->stride[1];
        if (planar) {
            interleave(row, first, from->data + p->offset[2] + y * p->stride[2], p->row[1]);
        } else {
            memcpy(row, first, chroma);
        }
        if (levels) replace(row, chroma, levels->chroma);
    }
    return 0;
}
