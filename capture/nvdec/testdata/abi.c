// Compared with FFmpeg's declarations of the same library: sizes, offsets and numbers. Compiling it is the test.
#include <ffnvcodec/dynlink_cuda.h>
#include <ffnvcodec/dynlink_nvcuvid.h>
#include <stddef.h>

#include "../cuvid.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME(ours, field, theirs, its) _Static_assert(offsetof(ours, field) == offsetof(theirs, its), #theirs "." #its)
#define NUMBER(ours, theirs) _Static_assert((int)ours == (int)theirs, #theirs)

NUMBER(CUVID_H264, cudaVideoCodec_H264);
NUMBER(CUVID_H265, cudaVideoCodec_HEVC);
NUMBER(CUVID_CHROMA_420, cudaVideoChromaFormat_420);
NUMBER(CUVID_NV12, cudaVideoSurfaceFormat_NV12);
NUMBER(CUVID_WEAVE, cudaVideoDeinterlaceMode_Weave);
NUMBER(CUVID_ADAPTIVE, cudaVideoDeinterlaceMode_Adaptive);
NUMBER(CUVID_DEDICATED_ENGINE, cudaVideoCreate_PreferCUVID);
NUMBER(CUVID_END_OF_STREAM, CUVID_PKT_ENDOFSTREAM);
NUMBER(CUVID_TIMESTAMP, CUVID_PKT_TIMESTAMP);
NUMBER(CUVID_END_OF_PICTURE, CUVID_PKT_ENDOFPICTURE);
NUMBER(CUVID_STATUS_ERROR, cuvidDecodeStatus_Error);
NUMBER(CUVID_STATUS_CONCEALED, cuvidDecodeStatus_Error_Concealed);

SIZE(cuvid_caps, CUVIDDECODECAPS);
SAME(cuvid_caps, depth_minus_8, CUVIDDECODECAPS, nBitDepthMinus8);
SAME(cuvid_caps, supported, CUVIDDECODECAPS, bIsSupported);
SAME(cuvid_caps, output_formats, CUVIDDECODECAPS, nOutputFormatMask);
SAME(cuvid_caps, max_width, CUVIDDECODECAPS, nMaxWidth);
SAME(cuvid_caps, max_macroblocks, CUVIDDECODECAPS, nMaxMBCount);
SAME(cuvid_caps, min_height, CUVIDDECODECAPS, nMinHeight);

SIZE(cuvid_format, CUVIDEOFORMAT);
SAME(cuvid_format, progressive, CUVIDEOFORMAT, progressive_sequence);
SAME(cuvid_format, luma_depth_minus_8, CUVIDEOFORMAT, bit_depth_luma_minus8);
SAME(cuvid_format, surfaces, CUVIDEOFORMAT, min_num_decode_surfaces);
SAME(cuvid_format, coded_width, CUVIDEOFORMAT, coded_width);
SAME(cuvid_format, display, CUVIDEOFORMAT, display_area);
SAME(cuvid_format, chroma, CUVIDEOFORMAT, chroma_format);
SAME(cuvid_format, matrix, CUVIDEOFORMAT, video_signal_description.matrix_coefficients);

SIZE(cuvid_picture, CUVIDPICPARAMS);
SAME(cuvid_picture, index, CUVIDPICPARAMS, CurrPicIdx);
SAME(cuvid_picture, second_field, CUVIDPICPARAMS, second_field);
SAME(cuvid_picture, data, CUVIDPICPARAMS, pBitstreamData);
SAME(cuvid_picture, codec_specific, CUVIDPICPARAMS, CodecSpecific);

SIZE(cuvid_display, CUVIDPARSERDISPINFO);
SAME(cuvid_display, progressive, CUVIDPARSERDISPINFO, progressive_frame);
SAME(cuvid_display, repeat_first_field, CUVIDPARSERDISPINFO, repeat_first_field);
SAME(cuvid_display, timestamp, CUVIDPARSERDISPINFO, timestamp);

SIZE(cuvid_packet, CUVIDSOURCEDATAPACKET);
SAME(cuvid_packet, data, CUVIDSOURCEDATAPACKET, payload);
SAME(cuvid_packet, timestamp, CUVIDSOURCEDATAPACKET, timestamp);

SIZE(cuvid_parser_options, CUVIDPARSERPARAMS);
SAME(cuvid_parser_options, surfaces, CUVIDPARSERPARAMS, ulMaxNumDecodeSurfaces);
SAME(cuvid_parser_options, clock_rate, CUVIDPARSERPARAMS, ulClockRate);
SAME(cuvid_parser_options, max_display_delay, CUVIDPARSERPARAMS, ulMaxDisplayDelay);
SAME(cuvid_parser_options, user, CUVIDPARSERPARAMS, pUserData);
SAME(cuvid_parser_options, display, CUVIDPARSERPARAMS, pfnDisplayPicture);

SIZE(cuvid_decoder_options, CUVIDDECODECREATEINFO);
SAME(cuvid_decoder_options, surfaces, CUVIDDECODECREATEINFO, ulNumDecodeSurfaces);
SAME(cuvid_decoder_options, flags, CUVIDDECODECREATEINFO, ulCreationFlags);
SAME(cuvid_decoder_options, depth_minus_8, CUVIDDECODECREATEINFO, bitDepthMinus8);
SAME(cuvid_decoder_options, max_width, CUVIDDECODECREATEINFO, ulMaxWidth);
SAME(cuvid_decoder_options, display, CUVIDDECODECREATEINFO, display_area);
SAME(cuvid_decoder_options, output_format, CUVIDDECODECREATEINFO, OutputFormat);
SAME(cuvid_decoder_options, target_width, CUVIDDECODECREATEINFO, ulTargetWidth);
SAME(cuvid_decoder_options, output_surfaces, CUVIDDECODECREATEINFO, ulNumOutputSurfaces);
SAME(cuvid_decoder_options, target, CUVIDDECODECREATEINFO, target_rect);

SIZE(cuvid_processing, CUVIDPROCPARAMS);
SAME(cuvid_processing, unpaired_field, CUVIDPROCPARAMS, unpaired_field);
SAME(cuvid_processing, stream, CUVIDPROCPARAMS, output_stream);

SIZE(cuvid_status, CUVIDGETDECODESTATUS);
SAME(cuvid_status, status, CUVIDGETDECODESTATUS, decodeStatus);
