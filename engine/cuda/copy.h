// Copies of rows that begin a pitch apart. The library's calls beside those of ei_cuda.h.
#pragma once

#include "ei_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum { EI_CUDA_ON_HOST = 1, EI_CUDA_ON_DEVICE = 2, EI_CUDA_IN_ARRAY = 3 };

// The parameters of a two-dimensional copy in the driver's layout. Lengths and pitches are in bytes.
typedef struct ei_cuda_copy2d {
    size_t source_x, source_y;
    unsigned source_kind;
    const void *source_host;
    ei_cuda_pointer source;
    void *source_array;
    size_t source_pitch;
    size_t to_x, to_y;
    unsigned to_kind;
    void *to_host;
    ei_cuda_pointer to;
    void *to_array;
    size_t to_pitch;
    size_t length, rows;
} ei_cuda_copy2d;

int cuMemcpy2DAsync_v2(const ei_cuda_copy2d *copy, ei_cuda_stream stream);
int cuMemcpy2D_v2(const ei_cuda_copy2d *copy);

// ei_cuda_copy_to_host copies rows that begin pitch bytes apart to host memory without padding.
static inline int ei_cuda_copy_to_host(void *to, ei_cuda_pointer from, size_t pitch, size_t length, size_t rows) {
    const ei_cuda_copy2d copy = {
        .source_kind = EI_CUDA_ON_DEVICE,
        .source = from,
        .source_pitch = pitch,
        .to_kind = EI_CUDA_ON_HOST,
        .to_host = to,
        .to_pitch = length,
        .length = length,
        .rows = rows,
    };
    return cuMemcpy2D_v2(&copy);
}

#ifdef __cplusplus
}
#endif
