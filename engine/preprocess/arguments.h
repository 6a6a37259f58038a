// Arguments of the CUDA kernels: addresses are device addresses, nothing is a pointer of the host.
// FilterArguments of the Go package has the same layout.
#ifndef EDGE_INFER_PREPROCESS_ARGUMENTS_H_
#define EDGE_INFER_PREPROCESS_ARGUMENTS_H_

#include <stdint.h>

#include "letterbox.h"

// Columns of the input that a block of 32 by 8 threads of the letterbox writes, and of the antialiased one.
enum { EI_LETTERBOX_COLUMNS = 64, EI_ANTIALIAS_COLUMNS = 32 };

typedef struct {
    // The first byte of the image and the one after its last. The kernel loads the aligned words of four bytes that hold them, so memory
    // that is no multiple of four is read up to three bytes beyond; every allocator of the driver rounds up to more.
    uint64_t source, end;
    uint64_t chroma;     // the first byte of NV12's second plane, which lies behind the first
    uint64_t output[3];  // the first element of R (or gray), G and B of this image's part of the input
    ei_letterbox box;
    int32_t stride;       // bytes from row to row of the image
    int32_t pixel_bytes;  // from pixel to pixel of the input
    int32_t unused;
} ei_letterbox_arguments;

typedef struct {
    uint64_t boxes, scores;  // the first coordinate of the first image's first box, and that box's first score
    uint64_t rows;           // binary32 [images][capacity][6]: x1, y1, x2, y2, score, class
    // uint32 [2][images], 0 before the launch: the rows of each image, more than capacity if some were dropped, then its boxes with an
    // invalid score. In device memory: counting in mapped host memory crosses the bus for each row, 155 us instead of 8 for 200 rows on an
    // H200. Rows may be mapped.
    uint64_t counts;
    // Elements from image to image, from box to box and from number to number.
    int64_t box_image, box_step, box_next;
    int64_t score_image, score_step, score_next;
    int32_t images, count, classes, capacity;
    int32_t objectness;               // the number before a box's first score multiplies them
    int32_t corners;                  // coordinates are x1, y1, x2, y2; 0: centre, size
    int32_t half_boxes, half_scores;  // binary16 instead of binary32
    float scale_x, scale_y;           // from coordinates to input pixels
    float threshold;                  // the lowest score that is listed, over 0
} ei_filter_arguments;

#endif
