// Compared with FFmpeg's declarations of CUDA's interoperability with EGL. Compiling it is the test.
#include <ffnvcodec/dynlink_cuda.h>
#include <stddef.h>

#include "../nvbufsurface.h"

#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), #theirs)
#define SAME(ours, field, theirs, its) _Static_assert(offsetof(ours, field) == offsetof(theirs, its), #theirs "." #its)
#define NUMBER(ours, theirs) _Static_assert((int)ours == (int)theirs, #theirs)

SIZE(ei_egl_frame, CUeglFrame);
SAME(ei_egl_frame, planes, CUeglFrame, frame);
SAME(ei_egl_frame, width, CUeglFrame, width);
SAME(ei_egl_frame, pitch, CUeglFrame, pitch);
SAME(ei_egl_frame, plane_count, CUeglFrame, planeCount);
SAME(ei_egl_frame, type, CUeglFrame, frameType);
SAME(ei_egl_frame, element, CUeglFrame, cuFormat);
NUMBER(EI_EGL_ARRAY, CU_EGL_FRAME_TYPE_ARRAY);
NUMBER(EI_EGL_PITCH, CU_EGL_FRAME_TYPE_PITCH);
NUMBER(EI_EGL_BYTES, CU_AD_FORMAT_UNSIGNED_INT8);
