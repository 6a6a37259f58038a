// A stand-in for libnvbufsurface: images are host memory, which the fake CUDA driver reads. FAKE_NVBUFSURFACE is a comma-separated list:
// tiles (images are arrays), fail (there is no EGL display). FAKE_CUDA_LOG is a file that gets one line per call.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../nvbufsurface.h"

#define API __attribute__((visibility("default")))

// The driver's view of an EGLImage.
typedef struct egl_image {
    int tiles;
    unsigned width, height, pitch;
    char *planes[2];
} egl_image;

static int setting(const char *name) {
    const char *all = getenv("FAKE_NVBUFSURFACE");
    return all && strstr(all, name);
}

static void record(const char *call) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    fprintf(log, "%s\n", call);
    fclose(log);
}

API int NvBufSurfaceMapEglImage(ei_nv_surface *surface, int index) {
    record(__func__);
    if (setting("fail") || index != 0) return -1;
    ei_nv_params *p = &surface->list[0];
    if (p->mapped.egl_image) abort();  // mapped twice
    egl_image *image = malloc(sizeof(*image));
    *image = (egl_image){setting("tiles"), p->width, p->height, p->pitch, {p->data, (char *)p->data + p->planes.offset[1]}};
    p->mapped.egl_image = image;
    return 0;
}

API int NvBufSurfaceUnMapEglImage(ei_nv_surface *surface, int index) {
    record(__func__);
    if (index != 0 || !surface->list[0].mapped.egl_image) abort();
    free(surface->list[0].mapped.egl_image);
    surface->list[0].mapped.egl_image = NULL;
    return 0;
}
