// Images in the memory of a Jetson's video engine (NVMM), as nvmm.c reads them: declarations of our own of libnvbufsurface (L4T 35 to 39)
// and of CUDA's interoperability with EGL, which egl_test.go compares with FFmpeg's. No Jetson was at hand: the layout of NvBufSurface is
// that of its public header.
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../../engine/cuda/ei_cuda.h"

enum { EI_NV_PLANES = 4, EI_NV_PADDING = 4 };

typedef struct ei_nv_params {
    uint32_t width, height, pitch;
    int color_format, layout;
    uint64_t descriptor;
    uint32_t size;
    void *data;
    struct {
        uint32_t count, width[EI_NV_PLANES], height[EI_NV_PLANES], pitch[EI_NV_PLANES], offset[EI_NV_PLANES], size[EI_NV_PLANES],
            pixel_bytes[EI_NV_PLANES];
        void *reserved[EI_NV_PADDING * EI_NV_PLANES];
    } planes;
    struct {
        void *address[EI_NV_PLANES], *egl_image, *reserved[EI_NV_PADDING];
    } mapped;
    void *reserved[EI_NV_PADDING];
} ei_nv_params;

// An NvBufSurface. It has further members, which are not read.
typedef struct ei_nv_surface {
    uint32_t gpu, batch_size, filled;
    bool contiguous;
    int memory_type;
    ei_nv_params *list;
} ei_nv_surface;

_Static_assert(offsetof(ei_nv_surface, list) == 24, "NvBufSurface.surfaceList");
_Static_assert(offsetof(ei_nv_params, data) == 40, "NvBufSurfaceParams.dataPtr");
_Static_assert(offsetof(ei_nv_params, mapped) == 280, "NvBufSurfaceParams.mappedAddr");
_Static_assert(offsetof(ei_nv_params, mapped.egl_image) == 312, "NvBufSurfaceMappedAddr.eglImage");

enum { EI_EGL_ARRAY = 0, EI_EGL_PITCH = 1, EI_EGL_BYTES = 1 };

// A CUeglFrame.
typedef struct ei_egl_frame {
    void *planes[3];  // addresses, or arrays
    unsigned width, height, depth, pitch, plane_count, channels;
    int type, color_format, element;
} ei_egl_frame;

typedef struct ei_nv_library {
    int (*NvBufSurfaceMapEglImage)(ei_nv_surface *surface, int index);
    int (*NvBufSurfaceUnMapEglImage)(ei_nv_surface *surface, int index);
    int (*cuGraphicsEGLRegisterImage)(void **resource, void *image, unsigned flags);
    int (*cuGraphicsResourceGetMappedEglFrame)(ei_egl_frame *frame, void *resource, unsigned index, unsigned level);
    int (*cuGraphicsUnregisterResource)(void *resource);
} ei_nv_library;
