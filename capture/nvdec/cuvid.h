// NVIDIA's video decoder library, libnvcuvid, as decoder.c calls it: declarations of our own, which abi_test.go compares with the headers
// of FFmpeg. Every function returns the driver's code, 0 for success.
#pragma once

#include "../../engine/cuda/ei_cuda.h"

enum {
    CUVID_H264 = 4,
    CUVID_H265 = 8,
    CUVID_CHROMA_420 = 1,
    CUVID_NV12 = 0,
    CUVID_WEAVE = 0,
    CUVID_ADAPTIVE = 2,
    CUVID_DEDICATED_ENGINE = 4,
    CUVID_END_OF_STREAM = 1,
    CUVID_TIMESTAMP = 2,
    CUVID_END_OF_PICTURE = 8,
    CUVID_STATUS_ERROR = 8,
    CUVID_STATUS_CONCEALED = 9,
};

typedef struct cuvid_caps {
    int codec, chroma;
    unsigned depth_minus_8, unused[3];
    unsigned char supported, engines;
    unsigned short output_formats;  // bit per format
    unsigned max_width, max_height, max_macroblocks;
    unsigned short min_width, min_height;
    unsigned char histogram, histogram_depth;
    unsigned short histogram_bins;
    unsigned unused2[10];
} cuvid_caps;

typedef struct cuvid_format {
    int codec;
    unsigned rate_numerator, rate_denominator;
    unsigned char progressive, luma_depth_minus_8, chroma_depth_minus_8, surfaces;
    unsigned coded_width, coded_height;
    struct {
        int left, top, right, bottom;
    } display;
    int chroma;
    unsigned bitrate;
    int aspect_x, aspect_y;
    unsigned char signal, primaries, transfer, matrix;
    unsigned header_bytes;
} cuvid_format;

typedef struct cuvid_picture {
    int width_macroblocks, height_macroblocks, index;
    int field, bottom_field, second_field;
    unsigned bytes;
    const unsigned char *data;
    unsigned slices;
    const unsigned *slice_offsets;
    int reference, intra;
    unsigned unused[30];
    unsigned codec_specific[1024];
} cuvid_picture;

typedef struct cuvid_display {
    int index, progressive, top_field_first, repeat_first_field;
    long long timestamp;
} cuvid_display;

typedef struct cuvid_packet {
    unsigned long flags, size;
    const unsigned char *data;
    long long timestamp;
} cuvid_packet;

typedef struct cuvid_parser_options {
    int codec;
    unsigned surfaces, clock_rate, error_threshold, max_display_delay, av1, unused[4];
    void *user;
    int (*sequence)(void *user, cuvid_format *format);
    int (*decode)(void *user, cuvid_picture *picture);
    int (*display)(void *user, cuvid_display *display);
    int (*operating_point)(void *user, void *info);
    void *unused2[6];
    void *extended_format;
} cuvid_parser_options;

typedef struct cuvid_rectangle {
    short left, top, right, bottom;
} cuvid_rectangle;

typedef struct cuvid_decoder_options {
    unsigned long width, height, surfaces;
    int codec, chroma;
    unsigned long flags, depth_minus_8, intra_only, max_width, max_height, unused;
    cuvid_rectangle display;
    int output_format, deinterlace;
    unsigned long target_width, target_height, output_surfaces;
    void *lock;
    cuvid_rectangle target;
    unsigned long histogram, unused2[4];
} cuvid_decoder_options;

typedef struct cuvid_processing {
    int progressive, second_field, top_field_first, unpaired_field;
    unsigned flags, zero;
    unsigned long long raw_input;
    unsigned raw_input_pitch, raw_input_format;
    unsigned long long raw_output;
    unsigned raw_output_pitch, unused;
    ei_cuda_stream stream;
    unsigned unused2[46];
    unsigned long long *histogram;
    void *unused3[1];
} cuvid_processing;

typedef struct cuvid_status {
    int status;
    unsigned unused[31];
    void *unused2[8];
} cuvid_status;

// cuvid_library has the functions of the library.
typedef struct cuvid_library {
    int (*cuvidGetDecoderCaps)(cuvid_caps *caps);
    int (*cuvidCreateVideoParser)(void **parser, cuvid_parser_options *options);
    int (*cuvidParseVideoData)(void *parser, cuvid_packet *packet);
    int (*cuvidDestroyVideoParser)(void *parser);
    int (*cuvidCreateDecoder)(void **decoder, cuvid_decoder_options *options);
    int (*cuvidDestroyDecoder)(void *decoder);
    int (*cuvidDecodePicture)(void *decoder, cuvid_picture *picture);
    int (*cuvidGetDecodeStatus)(void *decoder, int index, cuvid_status *status);
    int (*cuvidMapVideoFrame64)(void *decoder, int index, unsigned long long *address, unsigned *pitch, cuvid_processing *processing);
    int (*cuvidUnmapVideoFrame64)(void *decoder, unsigned long long address);
} cuvid_library;
