// Arguments of the CUDA kernels: addresses are device addresses, nothing is a pointer of the host. LetterboxArguments and
// FilterArguments of the Go package have the same layout.
#ifndef EDGE_INFER_PREPROCESS_ARGUMENTS_H_
#define EDGE_INFER_PREPROCESS_ARGUMENTS_H_

#include <stdint.h>

typedef struct {
    // The first byte of the picture and the one after its last. The kernel loads the aligned words of four bytes that hold them, so memory
    // that is no multiple of four is read up to three bytes beyond; every allocator of the driver rounds up to more.
    uint64_t source, end;
    uint64_t output;   // first element of this picture's planes
    int32_t format;    // engine.PixelFormat
    int32_t stride;    // bytes from row to row
    int32_t channels;  // 3 (R, G, B) or 1 (gray)
    int32_t half;      // elements are binary16 instead of binary32
    int32_t source_width, source_height;
    int32_t width, height;              // of the input
    int32_t left, top;                  // where the resized picture starts in it
    int32_t inner_width, inner_height;  // of the resized picture
} ei_letterbox_arguments;

typedef struct {
    uint64_t output;  // the network's output for the first picture
    uint64_t rows;    // binary32 [pictures][capacity][6]: x1, y1, x2, y2, score, class
    // uint32 [pictures], 0 before the launch; more than capacity when rows were left out. In device memory: counting in mapped host memory
    // crosses the bus for each row, 155 us instead of 8 for 200 rows on an H200. Rows may be mapped.
    uint64_t counts;
    int64_t picture_stride, anchor_stride, field_stride;  // elements of the output
    int32_t anchors, classes, capacity;
    int32_t objectness;  // fields are centre, size, objectness, classes; 0: centre, size, classes
    int32_t half;        // the output is binary16 instead of binary32
    float confidence;    // the lowest score that is listed, over 0
} ei_filter_arguments;

#endif
