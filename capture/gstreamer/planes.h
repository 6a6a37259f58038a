// The planes of an image in the memory of a GStreamer buffer.
#pragma once

#include <stddef.h>

#include "ei_gstreamer.h"
#include "library.h"

// ei_planes is where the planes of an image are. Offsets are from the start of the buffer.
typedef struct ei_planes {
    size_t count;
    size_t row[3], rows[3];  // bytes without padding, and their number
    size_t offset[3], stride[3];
} ei_planes;

// ei_levels replaces each level of the first plane, and of those with colours.
typedef struct ei_levels {
    unsigned char luma[256], chroma[256];
} ei_levels;

// ei_limited_levels converts the full range to the limited one. Any thread.
const ei_levels *ei_limited_levels(void);

// ei_default_planes is GStreamer's layout of a buffer that does not describe its own. It returns -1 for an image that cannot be copied.
int ei_default_planes(const ei_gst_image *image, ei_planes *planes);

// ei_own_planes replaces offsets and strides by those that the buffer describes, if it does. It returns -1 if they do not fit the image.
int ei_own_planes(GstBuffer *buffer, const ei_gst_image *image, ei_planes *planes);

// ei_copy_planes copies an image to rows that begin stride bytes apart, plane after plane: two planes of colours become NV12's. levels may
// be NULL. It returns -1 if the memory of either side is too small.
int ei_copy_planes(const ei_planes *planes, const ei_gst_map *from, const ei_levels *levels, unsigned char *to, size_t size, size_t stride);
