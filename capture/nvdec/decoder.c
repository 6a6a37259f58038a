#include "decoder.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../engine/cuda/copy.h"
#include "cuvid.h"

enum {
    QUEUE = 32,            // images that one access unit may yield
    MORE_SURFACES = 2,     // beyond what the stream needs, so that decoding goes on while an image is copied
    OUTPUT_SURFACES = 2,   // images that are mapped at once
    MAX_SURFACES = 64,     // that the library numbers
    ERROR_THRESHOLD = 30,  // percent of an image that may be damaged before it is not decoded at all
};

int cuStreamCreate(ei_cuda_stream *stream, unsigned flags);
int cuStreamDestroy_v2(ei_cuda_stream stream);
int cuEventCreate(ei_cuda_event *event, unsigned flags);
int cuEventDestroy_v2(ei_cuda_event event);
int cuMemAlloc_v2(ei_cuda_pointer *memory, size_t size);
int cuMemFree_v2(ei_cuda_pointer memory);

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static cuvid_library library;
static int opened;

static int fail(ei_nvdec_error *error, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    error->code = code;
    vsnprintf(error->message, sizeof(error->message), format, arguments);
    va_end(arguments);
    return code;
}

static int failed_call(ei_nvdec_error *error, int code, const char *call) {
    const char *text = NULL;
    if (cuGetErrorString(code, &text) != 0 || text == NULL) text = "unknown error";
    return fail(error, EI_NVDEC_DRIVER, "%s: %s (%d)", call, text, code);
}

#define TRY(call)                                                \
    do {                                                         \
        const int code_ = (call);                                \
        if (code_ != 0) return failed_call(error, code_, #call); \
    } while (0)

static int load(const char *path, ei_nvdec_error *error) {
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle == NULL) return fail(error, EI_NVDEC_LIBRARY, "%s", dlerror());
    cuvid_library found;
    const char *missing = NULL;
#define FIND(name) \
    if (!(*(void **)&found.name = dlsym(handle, #name))) missing = #name
    FIND(cuvidGetDecoderCaps);
    FIND(cuvidCreateVideoParser);
    FIND(cuvidParseVideoData);
    FIND(cuvidDestroyVideoParser);
    FIND(cuvidCreateDecoder);
    FIND(cuvidDestroyDecoder);
    FIND(cuvidDecodePicture);
    FIND(cuvidGetDecodeStatus);
    FIND(cuvidMapVideoFrame64);
    FIND(cuvidUnmapVideoFrame64);
#undef FIND
    if (missing != NULL) {
        dlclose(handle);
        return fail(error, EI_NVDEC_LIBRARY, "%s has no function %s", path, missing);
    }
    library = found;
    opened = 1;
    return 0;
}

int ei_nvdec_open_library(const char *path, ei_nvdec_error *error) {
    pthread_mutex_lock(&lock);
    const int code = opened ? 0 : load(path, error);
    pthread_mutex_unlock(&lock);
    return code;
}

int ei_nvdec_supports(ei_cuda_context context, int codec, ei_nvdec_error *error) {
    TRY(ei_cuda_use(context));
    cuvid_caps caps = {.codec = codec, .chroma = CUVID_CHROMA_420};
    const int code = library.cuvidGetDecoderCaps(&caps);
    if (code != 0) return failed_call(error, code, "ask for the decoder's abilities");
    if (!caps.supported) return fail(error, EI_NVDEC_UNSUPPORTED, "this GPU has no decoder for the codec");
    return 0;
}

// video is a decoder of the library for images of one size. Images that wait in the queue keep it.
typedef struct video {
    void *decoder;
    cuvid_format format;
    int width, height;  // of the images
    int surfaces;
    int users;                         // images in the queue, and one while it is the current one
    int64_t timestamps[MAX_SURFACES];  // of the access unit whose image is on the surface
} video;

typedef struct queued {
    video *from;
    cuvid_display display;
} queued;

struct ei_nvdec {
    ei_cuda_context context;
    ei_cuda_stream stream;
    int64_t max_pixels;
    void *parser;
    video *current;
    queued queue[QUEUE];
    int first, count;
    int64_t timestamp;      // of the newest access unit
    ei_nvdec_error *error;  // of the submit that runs the callbacks
};

static void drop(video *v) {
    if (v == NULL || --v->users > 0) return;
    library.cuvidDestroyDecoder(v->decoder);
    free(v);
}

void ei_nvdec_skip(ei_nvdec *d) {
    if (d->count == 0) return;
    drop(d->queue[d->first].from);
    d->first = (d->first + 1) % QUEUE;
    d->count--;
}

// lose removes the image of a surface that is about to be decoded into.
static void lose(ei_nvdec *d, const video *from, int index) {
    int kept = 0;
    for (int i = 0; i < d->count; i++) {
        queued *q = &d->queue[(d->first + i) % QUEUE];
        if (q->from == from && q->display.index == index) {
            drop(q->from);
        } else {
            d->queue[(d->first + kept++) % QUEUE] = *q;
        }
    }
    d->count = kept;
}

static int create(ei_nvdec *d, const cuvid_format *format, video **made) {
    ei_nvdec_error *error = d->error;
    const int width = format->display.right - format->display.left, height = format->display.bottom - format->display.top;
    if (width < 2 || height < 2 || width % 2 != 0 || height % 2 != 0 || width > 1 << 15 || height > 1 << 15) {
        return fail(error, EI_NVDEC_UNSUPPORTED, "video of %dx%d", width, height);
    }
    if ((int64_t)width * height > d->max_pixels) {
        return fail(error, EI_NVDEC_UNSUPPORTED, "video of %dx%d exceeds the limit of %lld pixels", width, height,
                    (long long)d->max_pixels);
    }
    cuvid_caps caps = {.codec = format->codec, .chroma = format->chroma, .depth_minus_8 = format->luma_depth_minus_8};
    int code = library.cuvidGetDecoderCaps(&caps);
    if (code != 0) return failed_call(error, code, "ask for the decoder's abilities");
    if (!caps.supported || !(caps.output_formats & 1 << CUVID_NV12) || format->chroma > CUVID_CHROMA_420) {
        return fail(error, EI_NVDEC_UNSUPPORTED, "this GPU does not decode the video's profile to NV12 (%d bits, chroma format %d)",
                    format->luma_depth_minus_8 + 8, format->chroma);
    }
    if (format->coded_width > caps.max_width || format->coded_height > caps.max_height || format->coded_width < caps.min_width ||
        format->coded_height < caps.min_height || format->coded_width / 16 * (format->coded_height / 16) > caps.max_macroblocks) {
        return fail(error, EI_NVDEC_UNSUPPORTED, "this GPU decodes %dx%d to %dx%d pixels, not %dx%d", caps.min_width, caps.min_height,
                    caps.max_width, caps.max_height, format->coded_width, format->coded_height);
    }
    video *v = calloc(1, sizeof(*v));
    if (v == NULL) return fail(error, EI_NVDEC_DRIVER, "out of memory");
    v->format = *format;
    v->width = width;
    v->height = height;
    v->surfaces = format->surfaces + MORE_SURFACES;
    v->users = 1;
    cuvid_decoder_options options = {
        .width = format->coded_width,
        .height = format->coded_height,
        .max_width = format->coded_width,
        .max_height = format->coded_height,
        .surfaces = (unsigned long)v->surfaces,
        .codec = format->codec,
        .chroma = format->chroma,
        .flags = CUVID_DEDICATED_ENGINE,
        .depth_minus_8 = format->luma_depth_minus_8,
        .display = {(short)format->display.left, (short)format->display.top, (short)format->display.right, (short)format->display.bottom},
        .output_format = CUVID_NV12,
        .deinterlace = format->progressive ? CUVID_WEAVE : CUVID_ADAPTIVE,
        .target_width = (unsigned long)width,
        .target_height = (unsigned long)height,
        .output_surfaces = OUTPUT_SURFACES,
    };
    code = library.cuvidCreateDecoder(&v->decoder, &options);
    if (code != 0) {
        free(v);
        return failed_call(error, code, "create a decoder");
    }
    *made = v;
    return 0;
}

// on_sequence is called before the first image and wherever the format may have changed. It returns the number of surfaces, 0 for a
// failure.
static int on_sequence(void *user, cuvid_format *format) {
    ei_nvdec *d = user;
    const cuvid_format *now = d->current ? &d->current->format : NULL;
    if (now && now->codec == format->codec && now->coded_width == format->coded_width && now->coded_height == format->coded_height &&
        memcmp(&now->display, &format->display, sizeof(now->display)) == 0 && now->chroma == format->chroma &&
        now->luma_depth_minus_8 == format->luma_depth_minus_8 && now->progressive == format->progressive &&
        now->surfaces >= format->surfaces) {
        return d->current->surfaces;
    }
    video *made = NULL;
    if (create(d, format, &made) != 0) return 0;
    drop(d->current);
    d->current = made;
    return made->surfaces;
}

static int on_decode(void *user, cuvid_picture *picture) {
    ei_nvdec *d = user;
    if (d->current == NULL) return 0;
    if (!picture->second_field) lose(d, d->current, picture->index);
    if (picture->index >= 0 && picture->index < MAX_SURFACES) d->current->timestamps[picture->index] = d->timestamp;
    const int code = library.cuvidDecodePicture(d->current->decoder, picture);
    if (code != 0) {
        failed_call(d->error, code, "decode an image");
        return 0;
    }
    return 1;
}

static int on_display(void *user, cuvid_display *display) {
    ei_nvdec *d = user;
    if (display == NULL || d->current == NULL) return 1;
    if (d->count == QUEUE) ei_nvdec_skip(d);
    queued *q = &d->queue[(d->first + d->count++) % QUEUE];
    *q = (queued){d->current, *display};
    // The library's own timestamps are in the order of the access units, not of the images, where there are B-frames.
    if (display->index >= 0 && display->index < MAX_SURFACES) q->display.timestamp = d->current->timestamps[display->index];
    d->current->users++;
    return 1;
}

int ei_nvdec_open(ei_cuda_context context, int codec, int64_t max_pixels, ei_nvdec **decoder, ei_nvdec_error *error) {
    TRY(ei_cuda_use(context));
    ei_nvdec *d = calloc(1, sizeof(*d));
    if (d == NULL) return fail(error, EI_NVDEC_DRIVER, "out of memory");
    d->context = context;
    d->max_pixels = max_pixels;
    cuvid_parser_options options = {
        .codec = codec,
        .surfaces = 1,  // on_sequence returns the number
        .clock_rate = 1000000000,
        .error_threshold = ERROR_THRESHOLD,
        .user = d,
        .sequence = on_sequence,
        .decode = on_decode,
        .display = on_display,
    };
    int code = cuStreamCreate(&d->stream, 1);  // does not wait for the default stream
    if (code == 0) code = library.cuvidCreateVideoParser(&d->parser, &options);
    if (code != 0) {
        ei_nvdec_close(d);
        return failed_call(error, code, "open a decoder");
    }
    *decoder = d;
    return 0;
}

static int parse(ei_nvdec *d, cuvid_packet *packet, ei_nvdec_error *error) {
    TRY(ei_cuda_use(d->context));
    d->error = error;
    error->code = 0;
    const int code = library.cuvidParseVideoData(d->parser, packet);
    d->error = NULL;
    if (error->code != 0) return error->code;  // of a callback, which says more
    if (code != 0) return failed_call(error, code, "read an access unit");
    return 0;
}

int ei_nvdec_submit(ei_nvdec *d, const void *data, size_t size, int64_t timestamp, ei_nvdec_error *error) {
    d->timestamp = timestamp;
    cuvid_packet packet = {
        .flags = CUVID_TIMESTAMP | CUVID_END_OF_PICTURE,
        .size = size,
        .data = data,
        .timestamp = timestamp,
    };
    return parse(d, &packet, error);
}

int ei_nvdec_flush(ei_nvdec *d, ei_nvdec_error *error) {
    cuvid_packet packet = {.flags = CUVID_END_OF_STREAM};
    return parse(d, &packet, error);
}

int ei_nvdec_peek(ei_nvdec *d, ei_nvdec_image *image) {
    if (d->count == 0) return 0;
    const queued *q = &d->queue[d->first];
    *image = (ei_nvdec_image){q->from->width, q->from->height, q->display.timestamp};
    return 1;
}

static int take(ei_nvdec *d, const queued *q, ei_cuda_pointer to, size_t pitch, ei_cuda_event ready, ei_nvdec_error *error) {
    TRY(ei_cuda_use(d->context));
    cuvid_processing processing = {
        .progressive = q->display.progressive,
        .top_field_first = q->display.top_field_first,
        .unpaired_field = q->display.repeat_first_field < 0,
        .stream = d->stream,
    };
    unsigned long long from = 0;
    unsigned from_pitch = 0;
    void *decoder = q->from->decoder;
    const int mapped = library.cuvidMapVideoFrame64(decoder, q->display.index, &from, &from_pitch, &processing);
    if (mapped != 0) return failed_call(error, mapped, "map an image");
    cuvid_status status = {0};
    const int asked = library.cuvidGetDecodeStatus(decoder, q->display.index, &status);
    if (asked == 0 && (status.status == CUVID_STATUS_ERROR || status.status == CUVID_STATUS_CONCEALED)) {
        library.cuvidUnmapVideoFrame64(decoder, from);
        return fail(error, EI_NVDEC_DAMAGED, "the image is damaged");
    }
    const ei_cuda_copy2d copy = {
        .source_kind = EI_CUDA_ON_DEVICE,
        .source = from,
        .source_pitch = from_pitch,
        .to_kind = EI_CUDA_ON_DEVICE,
        .to = to,
        .to_pitch = pitch,
        .length = (size_t)q->from->width,
        .rows = (size_t)q->from->height * 3 / 2,  // the colours follow in rows of the same length
    };
    int code = cuMemcpy2DAsync_v2(&copy, d->stream);
    if (code == 0) code = cuEventRecord(ready, d->stream);
    // The library writes its next image on the same stream, behind the copy.
    const int unmapped = library.cuvidUnmapVideoFrame64(decoder, from);
    if (code == 0) code = unmapped;
    return code != 0 ? failed_call(error, code, "copy an image") : 0;
}

int ei_nvdec_take(ei_nvdec *d, ei_cuda_pointer to, size_t pitch, ei_cuda_event ready, ei_nvdec_error *error) {
    if (d->count == 0) return fail(error, EI_NVDEC_DRIVER, "no image");
    const int code = take(d, &d->queue[d->first], to, pitch, ready, error);
    ei_nvdec_skip(d);
    return code;
}

void ei_nvdec_close(ei_nvdec *d) {
    if (d == NULL) return;
    ei_cuda_use(d->context);
    if (d->parser != NULL) library.cuvidDestroyVideoParser(d->parser);
    if (d->stream != NULL) cuStreamSynchronize(d->stream);
    while (d->count > 0) ei_nvdec_skip(d);
    drop(d->current);
    if (d->stream != NULL) cuStreamDestroy_v2(d->stream);
    free(d);
}

int ei_nvdec_allocate(ei_cuda_context context, size_t size, ei_cuda_pointer *memory, ei_cuda_event *ready, ei_nvdec_error *error) {
    TRY(ei_cuda_use(context));
    TRY(cuMemAlloc_v2(memory, size));
    const int code = cuEventCreate(ready, 1 | 2);  // blocks instead of spinning, and takes no time
    if (code != 0) {
        cuMemFree_v2(*memory);
        return failed_call(error, code, "create an event");
    }
    return 0;
}

void ei_nvdec_free(ei_cuda_context context, ei_cuda_pointer memory, ei_cuda_event ready) {
    ei_cuda_use(context);
    cuEventSynchronize(ready);
    cuEventDestroy_v2(ready);
    cuMemFree_v2(memory);
}

int ei_nvdec_copy(ei_cuda_context context, void *to, ei_cuda_pointer from, size_t pitch, size_t length, size_t rows, ei_cuda_event ready,
                  ei_nvdec_error *error) {
    TRY(ei_cuda_use(context));
    TRY(cuEventSynchronize(ready));
    TRY(ei_cuda_copy_to_host(to, from, pitch, length, rows));
    return 0;
}
