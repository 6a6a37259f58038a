// The C interface of package nvdec. Every function that can fail returns 0, or a code and fills the caller's ei_nvdec_error. One thread at
// a time uses a decoder; nothing calls back into Go.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../../engine/cuda/ei_cuda.h"

typedef struct ei_nvdec_error {
    int code;  // one of ei_nvdec_code
    char message[256];
} ei_nvdec_error;

enum ei_nvdec_code {
    EI_NVDEC_OK = 0,
    EI_NVDEC_LIBRARY = 1,      // no library, or not this one
    EI_NVDEC_UNSUPPORTED = 2,  // the GPU does not decode this video
    EI_NVDEC_DRIVER = 3,       // the driver returned an error
    EI_NVDEC_DAMAGED = 4,      // this image is damaged
};

// ei_nvdec_open_library opens libnvcuvid, once per process. Any thread.
int ei_nvdec_open_library(const char *path, ei_nvdec_error *error);

// ei_nvdec_supports reports whether the current device decodes 8-bit video of a codec (4 H.264, 8 H.265).
int ei_nvdec_supports(ei_cuda_context context, int codec, ei_nvdec_error *error);

typedef struct ei_nvdec ei_nvdec;

// ei_nvdec_open creates a decoder. max_pixels bounds the size of images.
int ei_nvdec_open(ei_cuda_context context, int codec, int64_t max_pixels, ei_nvdec **decoder, ei_nvdec_error *error);

// ei_nvdec_submit starts decoding an access unit, which is copied. timestamp comes back with its image.
int ei_nvdec_submit(ei_nvdec *decoder, const void *data, size_t size, int64_t timestamp, ei_nvdec_error *error);

// ei_nvdec_flush ends the stream: images that waited for later ones come out. Another stream may follow.
int ei_nvdec_flush(ei_nvdec *decoder, ei_nvdec_error *error);

// ei_nvdec_image is a decoded image in display order.
typedef struct ei_nvdec_image {
    int width, height;
    int64_t timestamp;
} ei_nvdec_image;

// ei_nvdec_peek describes the next image. It returns 0 if there is none.
int ei_nvdec_peek(ei_nvdec *decoder, ei_nvdec_image *image);

// ei_nvdec_take copies the next image as NV12 to device memory with rows of pitch bytes and records ready behind the copy. It waits until
// the image is decoded, but not for the copy. The image is gone whatever it returns.
int ei_nvdec_take(ei_nvdec *decoder, ei_cuda_pointer to, size_t pitch, ei_cuda_event ready, ei_nvdec_error *error);

// ei_nvdec_skip drops the next image.
void ei_nvdec_skip(ei_nvdec *decoder);

void ei_nvdec_close(ei_nvdec *decoder);

// ei_nvdec_buffer is device memory for one image with its event.
int ei_nvdec_allocate(ei_cuda_context context, size_t size, ei_cuda_pointer *memory, ei_cuda_event *ready, ei_nvdec_error *error);
void ei_nvdec_free(ei_cuda_context context, ei_cuda_pointer memory, ei_cuda_event ready);

// ei_nvdec_copy waits for ready and copies rows that begin pitch bytes apart to host memory without padding.
int ei_nvdec_copy(ei_cuda_context context, void *to, ei_cuda_pointer from, size_t pitch, size_t length, size_t rows, ei_cuda_event ready,
                  ei_nvdec_error *error);
