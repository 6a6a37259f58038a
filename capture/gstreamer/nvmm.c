#include "nvmm.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/cuda/copy.h"
#include "library.h"
#include "nvbufsurface.h"
#include "pipeline.h"

int cuMemAlloc_v2(ei_cuda_pointer *memory, size_t size);
int cuMemFree_v2(ei_cuda_pointer memory);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ei_nv_library library;
static int ready;
static uint32_t key;  // under which a GstMemory has its registration

static int fail(ei_nvmm_error *error, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return -1;
}

static int failed_call(ei_nvmm_error *error, int code, const char *call) {
    const char *text = NULL;
    if (cuGetErrorString(code, &text) != 0 || text == NULL) text = "unknown error";
    return fail(error, "%s: %s (%d)", call, text, code);
}

#define TRY(call)                                                \
    do {                                                         \
        const int code_ = (call);                                \
        if (code_ != 0) return failed_call(error, code_, #call); \
    } while (0)

// load is called with the lock held. The libraries stay open.
static int load(const char *path, ei_nvmm_error *error) {
    ei_cuda_driver driver;
    if (ei_cuda_open(path, &driver) != 0) return fail(error, "the CUDA driver is not open");
    void *surfaces = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!surfaces) return fail(error, "%s", dlerror());
    void *cuda = dlopen(driver.path, RTLD_NOW | RTLD_LOCAL | RTLD_NOLOAD);
    if (!cuda) return fail(error, "%s", dlerror());
    ei_nv_library found;
    const char *missing = NULL;
#define FIND(handle, name) \
    if (!(*(void **)&found.name = dlsym(handle, #name))) missing = #name
    FIND(surfaces, NvBufSurfaceMapEglImage);
    FIND(surfaces, NvBufSurfaceUnMapEglImage);
    FIND(cuda, cuGraphicsEGLRegisterImage);
    FIND(cuda, cuGraphicsResourceGetMappedEglFrame);
    FIND(cuda, cuGraphicsUnregisterResource);
#undef FIND
    if (missing) return fail(error, "there is no function %s", missing);
    library = found;
    key = ei_gst.g_quark_from_static_string("edge-infer-egl");
    return 0;
}

int ei_nvmm_load(const char *path, ei_nvmm_error *error) {
    pthread_mutex_lock(&lock);
    if (!ready) ready = load(path, error) == 0;
    const int result = ready ? 0 : -1;
    pthread_mutex_unlock(&lock);
    return result;
}

// registration makes a buffer of the decoder's pool readable. The buffer's GstMemory owns it: registering takes long and happens once for
// each buffer.
typedef struct registration {
    ei_cuda_context context;
    ei_nv_surface *surface;
    void *resource;
    ei_egl_frame frame;
    ei_cuda_pointer linear;  // copy of an image in tiles; 0 for one in rows
} registration;

static void unregister(void *data) {
    registration *r = data;
    ei_cuda_use(r->context);
    if (r->linear) cuMemFree_v2(r->linear);
    if (r->resource) library.cuGraphicsUnregisterResource(r->resource);
    library.NvBufSurfaceUnMapEglImage(r->surface, 0);
    free(r);
}

static size_t align(size_t n, size_t to) { return (n + to - 1) / to * to; }

// prepare completes a registration whose EGL image exists.
static int prepare(registration *r, const ei_gst_image *image, ei_nvmm_error *error) {
    void *egl = r->surface->list[0].mapped.egl_image;
    if (!egl) return fail(error, "NvBufSurfaceMapEglImage gave no image");
    TRY(library.cuGraphicsEGLRegisterImage(&r->resource, egl, 0));
    TRY(library.cuGraphicsResourceGetMappedEglFrame(&r->frame, r->resource, 0, 0));
    const ei_egl_frame *f = &r->frame;
    if (f->plane_count != 2 || f->element != EI_EGL_BYTES || f->width < (unsigned)image->width || f->height < (unsigned)image->height) {
        return fail(error, "the decoder's image has %u planes of format %d and %ux%u pixels", f->plane_count, f->element, f->width,
                    f->height);
    }
    if (f->type == EI_EGL_PITCH) return 0;
    r->frame.pitch = (unsigned)align((size_t)image->width, 256);
    TRY(cuMemAlloc_v2(&r->linear, (size_t)r->frame.pitch * (size_t)image->height * 3 / 2));
    return 0;
}

// new_registration registers a surface. The context is current.
static registration *new_registration(ei_nv_surface *surface, ei_cuda_context context, const ei_gst_image *image, ei_nvmm_error *error) {
    if (surface->batch_size < 1 || !surface->list) {
        fail(error, "the decoder's buffer has no image");
        return NULL;
    }
    if (library.NvBufSurfaceMapEglImage(surface, 0) != 0) {
        fail(error, "NvBufSurfaceMapEglImage failed: is there an EGL display?");
        return NULL;
    }
    registration *r = calloc(1, sizeof(*r));
    r->context = context;
    r->surface = surface;
    if (prepare(r, image, error) != 0) {
        unregister(r);
        return NULL;
    }
    return r;
}

// copy_tiles copies an image in tiles to rows.
static int copy_tiles(const registration *r, const ei_gst_image *image, ei_nvmm_error *error) {
    for (unsigned plane = 0; plane < 2; plane++) {
        const ei_cuda_copy2d copy = {
            .source_kind = EI_CUDA_IN_ARRAY,
            .source_array = r->frame.planes[plane],
            .to_kind = EI_CUDA_ON_DEVICE,
            .to = r->linear + (plane ? (size_t)r->frame.pitch * (size_t)image->height : 0),
            .to_pitch = r->frame.pitch,
            .length = (size_t)image->width,
            .rows = (size_t)image->height / (plane + 1),
        };
        TRY(cuMemcpy2D_v2(&copy));
    }
    TRY(cuStreamSynchronize(NULL));
    return 0;
}

// find_registration returns the registration of the sample's buffer.
static registration *find_registration(GstSample *sample, ei_cuda_context context, const ei_gst_image *image, ei_nvmm_error *error) {
    GstBuffer *buffer = ei_gst.gst_sample_get_buffer(sample);
    GstMiniObject *memory = buffer ? (GstMiniObject *)ei_gst.gst_buffer_peek_memory(buffer, 0) : NULL;
    if (!memory) {
        fail(error, "the decoder's buffer is empty");
        return NULL;
    }
    registration *r = ei_gst.gst_mini_object_get_qdata(memory, key);
    if (r) return r;
    ei_gst_map map;
    if (!ei_gst.gst_buffer_map(buffer, (GstMapInfo *)&map, EI_GST_MAP_READ)) {
        fail(error, "the decoder's buffer cannot be read");
        return NULL;
    }
    if (map.size < sizeof(ei_nv_surface)) {
        fail(error, "the decoder's buffer is no NvBufSurface");
    } else {
        r = new_registration((ei_nv_surface *)map.data, context, image, error);  // the surface lives as long as the memory
    }
    ei_gst.gst_buffer_unmap(buffer, (GstMapInfo *)&map);
    if (r) ei_gst.gst_mini_object_set_qdata(memory, key, r, unregister);
    return r;
}

static int read_image(GstSample *sample, ei_cuda_context context, const ei_gst_image *image, ei_nvmm_image *result, ei_nvmm_error *error) {
    TRY(ei_cuda_use(context));
    registration *r = find_registration(sample, context, image, error);
    if (!r) return -1;
    result->pitch = r->frame.pitch;
    if (!r->linear) {
        result->luma = (ei_cuda_pointer)(uintptr_t)r->frame.planes[0];
        result->chroma = (ei_cuda_pointer)(uintptr_t)r->frame.planes[1];
        return 0;
    }
    result->luma = r->linear;
    result->chroma = r->linear + result->pitch * (size_t)image->height;
    return copy_tiles(r, image, error);
}

void ei_nvmm_release(void *held) { ei_gst.gst_mini_object_unref(held); }

void *ei_nvmm_take(ei_gst_pipeline *p, ei_cuda_context context, ei_nvmm_image *result, ei_nvmm_error *error) {
    ei_gst_image image;
    GstSample *sample = ei_gst_take(p, &image);
    if (!sample) {
        fail(error, "there is no image");
        return NULL;
    }
    if (read_image(sample, context, &image, result, error) == 0) return sample;
    ei_nvmm_release(sample);
    return NULL;
}

int ei_nvmm_copy(ei_cuda_context context, void *to, ei_cuda_pointer from, size_t pitch, size_t length, size_t rows, ei_nvmm_error *error) {
    TRY(ei_cuda_use(context));
    TRY(ei_cuda_copy_to_host(to, from, pitch, length, rows));
    return 0;
}
