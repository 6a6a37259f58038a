// Images in the memory of a Jetson's video engine, which CUDA reads in place.
#pragma once

#include "../../engine/cuda/ei_cuda.h"
#include "ei_gstreamer.h"

typedef struct ei_nvmm_error {
    char message[256];
} ei_nvmm_error;

// ei_nvmm_load opens libnvbufsurface by name or path and finds what it and the CUDA driver, which must be open, have for EGL images. Once
// per process; later calls try again after a failure. It returns 0, or -1 with a message.
int ei_nvmm_load(const char *path, ei_nvmm_error *error);

// An NV12 image in the memory of a GPU. Rows of both planes begin pitch bytes apart.
typedef struct ei_nvmm_image {
    ei_cuda_pointer luma, chroma;
    size_t pitch;
} ei_nvmm_image;

// ei_nvmm_take makes the image that a pipeline holds readable in a context and returns what keeps it so, until ei_nvmm_release; NULL with a
// message if that fails. The pipeline holds no image any more.
void *ei_nvmm_take(ei_gst_pipeline *pipeline, ei_cuda_context context, ei_nvmm_image *image, ei_nvmm_error *error);

// ei_nvmm_release gives an image back to the pipeline's elements, also after the pipeline has been closed. The context must still be valid.
void ei_nvmm_release(void *held);

// ei_nvmm_copy copies rows that begin pitch bytes apart to host memory without padding.
int ei_nvmm_copy(ei_cuda_context context, void *to, ei_cuda_pointer from, size_t pitch, size_t length, size_t rows, ei_nvmm_error *error);
