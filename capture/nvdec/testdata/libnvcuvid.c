// A video decoder library for tests: device memory is host memory, as in the fake driver beside which it runs. Video with start codes is
// decoded by FFmpeg's library (unless WITHOUT_FFMPEG is defined). As in NVIDIA's library, surfaces are assigned in the order of the access
// units and displayed in that of the images, but timestamps of displayed images are in the order of the access units. Other video is a toy:
// a unit is a sequence of records that begin with a letter:
//   S width height depth chroma surfaces   one byte each, the sides in units of two pixels
//   P value                                an image of that luma, which is displayed at once
//   B value                                an image that is displayed behind the next P
//   D value                                an image that is damaged
//   X                                      the parser fails
// FAKE_NVCUVID is a comma-separated list: unsupported, large (video of more than 400x400 pixels), fail=FUNCTION:CODE.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef WITHOUT_FFMPEG
#include <libavcodec/avcodec.h>
#include <libavutil/pixdesc.h>
#endif

#include "../cuvid.h"

#define API __attribute__((visibility("default")))

enum { INVALID_VALUE = 1, INVALID_HANDLE = 400, SURFACES = 32 };

int cuMemAlloc_v2(ei_cuda_pointer *memory, size_t size);
int cuMemFree_v2(ei_cuda_pointer memory);

typedef struct parser {
    cuvid_parser_options options;
    int surfaces, next, waiting;  // number of surfaces, the next one, and the one of a B or -1
    long long waiting_time;
    struct AVCodecContext *ffmpeg;
    long long units, shown;              // access units submitted, images displayed
    int surface_of[SURFACES];            // by unit, of the newest ones
    struct AVFrame *pictures[SURFACES];  // on each surface; NULL before it is decoded
} parser;

typedef struct decoder {
    cuvid_decoder_options options;
    unsigned char value[SURFACES], damaged[SURFACES];
    struct AVFrame **pictures[SURFACES];  // those of the parser, of video that FFmpeg decodes
    ei_cuda_pointer mapped;
} decoder;

// failure returns the code that FAKE_NVCUVID gives a function.
static int failure(const char *function) {
    const char *settings = getenv("FAKE_NVCUVID");
    const char *at = settings ? strstr(settings, "fail=") : NULL;
    const size_t length = strlen(function);
    if (at == NULL || strncmp(at + 5, function, length) != 0 || at[5 + length] != ':') return 0;
    return atoi(at + 6 + length);
}

#define ENTER()                              \
    do {                                     \
        const int code_ = failure(__func__); \
        if (code_ != 0) return code_;        \
    } while (0)

API int cuvidGetDecoderCaps(cuvid_caps *caps) {
    ENTER();
    const char *settings = getenv("FAKE_NVCUVID");
    caps->supported = !(settings && strstr(settings, "unsupported"));
    caps->output_formats = caps->chroma == CUVID_CHROMA_420 ? 1 : 4;
    const int large = settings && strstr(settings, "large");
    caps->max_width = caps->max_height = large ? 4096 : 400;
    caps->min_width = caps->min_height = 8;
    caps->max_macroblocks = large ? 65536 : 600;
    return 0;
}

API int cuvidCreateVideoParser(void **made, cuvid_parser_options *options) {
    ENTER();
    parser *p = calloc(1, sizeof(*p));
    p->options = *options;
    p->waiting = -1;
    *made = p;
    return 0;
}

static void display(parser *p, int index, long long timestamp) {
    cuvid_display d = {.index = index, .progressive = 1, .timestamp = timestamp};
    p->options.display(p->options.user, &d);
}

#ifndef WITHOUT_FFMPEG

// begin assigns a surface to an access unit.
static int begin(parser *p) {
    const AVPixFmtDescriptor *pixel = av_pix_fmt_desc_get(p->ffmpeg->pix_fmt);
    if (pixel == NULL) return 0;  // no parameter sets yet
    cuvid_format format = {
        .codec = p->options.codec,
        .progressive = p->ffmpeg->field_order <= AV_FIELD_PROGRESSIVE,
        .luma_depth_minus_8 = (unsigned char)(pixel->comp[0].depth - 8),
        .chroma = pixel->log2_chroma_h == 1 ? CUVID_CHROMA_420 : 2,
        .surfaces = 18,
        .coded_width = (unsigned)(p->ffmpeg->width + 15) / 16 * 16,
        .coded_height = (unsigned)(p->ffmpeg->height + 15) / 16 * 16,
        .display = {0, 0, p->ffmpeg->width, p->ffmpeg->height},
    };
    const int surfaces = p->options.sequence(p->options.user, &format);
    if (surfaces == 0) return INVALID_VALUE;
    if (surfaces > SURFACES) abort();
    if (surfaces != p->surfaces) p->next = 0;
    p->surfaces = surfaces;
    av_frame_free(&p->pictures[p->next]);
    cuvid_picture picture = {.index = p->next, .data = (const unsigned char *)&p->pictures[p->next]};
    if (!p->options.decode(p->options.user, &picture)) return INVALID_VALUE;
    p->surface_of[p->units % SURFACES] = p->next;
    p->next = (p->next + 1) % p->surfaces;
    return 0;
}

// show displays an image that leaves FFmpeg.
static void show(parser *p, AVFrame *frame) {
    const int surface = p->surface_of[frame->pts % SURFACES];
    av_frame_free(&p->pictures[surface]);
    p->pictures[surface] = av_frame_clone(frame);
    display(p, surface, p->shown++);
}

// is_refresh reports whether an access unit ends what comes before it: an IDR image.
static int is_refresh(const parser *p, const cuvid_packet *packet) {
    for (size_t i = 0; i + 3 < packet->size; i++) {
        if (memcmp(packet->data + i, "\0\0\1", 3) != 0) continue;
        const unsigned char head = packet->data[i + 3];
        const int hevc = head >> 1 & 63;
        if (p->options.codec == CUVID_H264 ? (head & 31) == 5 : hevc == 19 || hevc == 20) return 1;
    }
    return 0;
}

// drain displays the images that FFmpeg holds.
static void drain(parser *p, AVFrame *frame) {
    avcodec_send_packet(p->ffmpeg, NULL);
    while (avcodec_receive_frame(p->ffmpeg, frame) == 0) show(p, frame);
    avcodec_flush_buffers(p->ffmpeg);
}

static int parse(parser *p, cuvid_packet *packet) {
    if (p->ffmpeg == NULL) {
        const AVCodec *codec = avcodec_find_decoder(p->options.codec == CUVID_H264 ? AV_CODEC_ID_H264 : AV_CODEC_ID_HEVC);
        av_log_set_level(AV_LOG_QUIET);
        p->ffmpeg = avcodec_alloc_context3(codec);
        p->ffmpeg->thread_count = 1;
        if (avcodec_open2(p->ffmpeg, codec, NULL) != 0) abort();
    }
    AVPacket *input = av_packet_alloc();
    AVFrame *frame = av_frame_alloc();
    int code = 0;
    if (packet->flags & CUVID_END_OF_STREAM) {
        drain(p, frame);
    } else {
        if (p->units > 0 && is_refresh(p, packet)) drain(p, frame);
        if (av_new_packet(input, (int)packet->size) != 0) abort();
        memcpy(input->data, packet->data, packet->size);
        input->pts = p->units;
        // FFmpeg refuses damaged video.
        if (avcodec_send_packet(p->ffmpeg, input) == 0) code = begin(p);
        while (code == 0 && avcodec_receive_frame(p->ffmpeg, frame) == 0) show(p, frame);
        p->units++;
    }
    av_packet_free(&input);
    av_frame_free(&frame);
    return code;
}

static int is_damaged(struct AVFrame **picture) { return *picture != NULL && ((*picture)->flags & AV_FRAME_FLAG_CORRUPT) != 0; }

// sample returns a level of 8 bits.
static unsigned char sample(const AVFrame *frame, int depth, int plane, size_t x, size_t y) {
    const uint8_t *row = frame->data[plane] + y * (size_t)frame->linesize[plane];
    if (depth == 8) return row[x];
    const int level = (((const uint16_t *)row)[x] + (1 << (depth - 9))) >> (depth - 8);
    return (unsigned char)(level > 255 ? 255 : level);
}

static void copy_frame(const decoder *d, const AVFrame *frame, unsigned char *to, size_t pitch) {
    if (frame == NULL) return;
    const size_t width = d->options.target_width, height = d->options.target_height;
    const int depth = av_pix_fmt_desc_get(frame->format)->comp[0].depth;
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) to[y * pitch + x] = sample(frame, depth, 0, x, y);
    }
    for (size_t y = 0; y < height / 2; y++) {
        unsigned char *row = to + (height + y) * pitch;
        for (size_t x = 0; x < width; x++) row[x] = sample(frame, depth, 1 + (int)(x % 2), x / 2, y);
    }
}

static void close_parser(parser *p) {
    avcodec_free_context(&p->ffmpeg);
    for (int i = 0; i < SURFACES; i++) av_frame_free(&p->pictures[i]);
}

#else

static int parse(parser *p, cuvid_packet *packet) { return (void)p, (void)packet, INVALID_VALUE; }
static int is_damaged(struct AVFrame **picture) { return (void)picture, 0; }
static void copy_frame(const decoder *d, const struct AVFrame *frame, unsigned char *to, size_t pitch) {
    (void)d, (void)frame, (void)to, (void)pitch;
}
static void close_parser(parser *p) { (void)p; }

#endif

API int cuvidDestroyVideoParser(void *p) {
    close_parser(p);
    free(p);
    return 0;
}

API int cuvidParseVideoData(void *handle, cuvid_packet *packet) {
    ENTER();
    parser *p = handle;
    const unsigned char *at = packet->data, *end = at + packet->size;
    if (p->ffmpeg != NULL || (packet->size > 3 && memcmp(at, "\0\0", 2) == 0)) return parse(p, packet);
    while (at < end) {
        if (*at == 'S' && end - at >= 6) {
            cuvid_format format = {
                .codec = p->options.codec,
                .progressive = 1,
                .luma_depth_minus_8 = at[3],
                .chroma = at[4],
                .surfaces = at[5],
                .coded_width = at[1] * 2,
                .coded_height = at[2] * 2,
                .display = {0, 0, at[1] * 2, at[2] * 2},
            };
            p->surfaces = p->options.sequence(p->options.user, &format);
            if (p->surfaces == 0) return INVALID_VALUE;
            if (p->surfaces > SURFACES) abort();
            p->next = 0;
            at += 6;
        } else if ((*at == 'P' || *at == 'B' || *at == 'D') && end - at >= 2 && p->surfaces > 0) {
            cuvid_picture picture = {.index = p->next, .reference = at[1], .intra = *at == 'D'};
            if (!p->options.decode(p->options.user, &picture)) return INVALID_VALUE;
            if (*at == 'B') {
                p->waiting = p->next;
                p->waiting_time = packet->timestamp;
            } else {
                display(p, p->next, packet->timestamp);
            }
            if (*at != 'B' && p->waiting >= 0) {
                display(p, p->waiting, p->waiting_time);
                p->waiting = -1;
            }
            p->next = (p->next + 1) % p->surfaces;
            at += 2;
        } else {
            return INVALID_VALUE;
        }
    }
    if (packet->flags & CUVID_END_OF_STREAM && p->waiting >= 0) {
        display(p, p->waiting, p->waiting_time);
        p->waiting = -1;
    }
    return 0;
}

API int cuvidCreateDecoder(void **made, cuvid_decoder_options *options) {
    ENTER();
    decoder *d = calloc(1, sizeof(*d));
    d->options = *options;
    *made = d;
    return 0;
}

API int cuvidDestroyDecoder(void *handle) {
    decoder *d = handle;
    if (d->mapped != 0) abort();  // still mapped
    free(d);
    return 0;
}

API int cuvidDecodePicture(void *handle, cuvid_picture *picture) {
    ENTER();
    decoder *d = handle;
    d->pictures[picture->index] = (struct AVFrame **)picture->data;
    d->value[picture->index] = (unsigned char)picture->reference;
    d->damaged[picture->index] = (unsigned char)picture->intra;
    return 0;
}

API int cuvidGetDecodeStatus(void *handle, int index, cuvid_status *status) {
    ENTER();
    decoder *d = handle;
    const int damaged = d->damaged[index] || (d->pictures[index] && is_damaged(d->pictures[index]));
    status->status = damaged ? CUVID_STATUS_ERROR : 2;
    return 0;
}

API int cuvidMapVideoFrame64(void *handle, int index, unsigned long long *address, unsigned *pitch, cuvid_processing *processing) {
    ENTER();
    decoder *d = handle;
    if (processing->stream == NULL || d->mapped != 0) return INVALID_HANDLE;
    *pitch = (unsigned)d->options.target_width + 32;
    const size_t luma = *pitch * d->options.target_height;
    const int code = cuMemAlloc_v2(&d->mapped, luma * 3 / 2);
    if (code != 0) return code;
    memset((void *)d->mapped, d->value[index], luma);
    memset((char *)d->mapped + luma, 128, luma / 2);
    if (d->pictures[index]) copy_frame(d, *d->pictures[index], (void *)d->mapped, *pitch);
    *address = d->mapped;
    return 0;
}

API int cuvidUnmapVideoFrame64(void *handle, unsigned long long address) {
    ENTER();
    decoder *d = handle;
    if (address != d->mapped) return INVALID_VALUE;
    d->mapped = 0;
    return cuMemFree_v2(address);
}
