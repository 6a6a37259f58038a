// Compares abi.h with the installed headers when it is compiled; layout_test.go does so.
#define EI_GST_HEADERS
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/gst.h>
#include <gst/video/video.h>

#include "../abi.h"

// Every function must be assignable to a pointer of the declared type; the test makes the warning an error.
#define SIGNATURE(result, name, parameters) result(*check_##name) parameters = name;
EI_GST_FUNCTIONS(SIGNATURE)

#define FIELD(ours, our_field, theirs, their_field)                                                \
    _Static_assert(offsetof(ours, our_field) == offsetof(theirs, their_field) &&                   \
                       sizeof(((ours *)NULL)->our_field) == sizeof(((theirs *)NULL)->their_field), \
                   #theirs "." #their_field)
#define SIZE(ours, theirs) _Static_assert(sizeof(ours) == sizeof(theirs), "size of " #theirs)
#define VALUE(ours, theirs) _Static_assert((int)(ours) == (int)(theirs), #theirs)

SIZE(ei_gst_mini_object, GstMiniObject);
FIELD(ei_gst_mini_object, refcount, GstMiniObject, refcount);
FIELD(ei_gst_message, mini_object, GstMessage, mini_object);
FIELD(ei_gst_message, type, GstMessage, type);
FIELD(ei_gst_message, src, GstMessage, src);
FIELD(ei_gst_buffer, mini_object, GstBuffer, mini_object);
FIELD(ei_gst_buffer, pts, GstBuffer, pts);
FIELD(ei_gst_video_meta, buffer, GstVideoMeta, buffer);
FIELD(ei_gst_video_meta, width, GstVideoMeta, width);
FIELD(ei_gst_video_meta, height, GstVideoMeta, height);
FIELD(ei_gst_video_meta, n_planes, GstVideoMeta, n_planes);
FIELD(ei_gst_video_meta, offset, GstVideoMeta, offset);
FIELD(ei_gst_video_meta, stride, GstVideoMeta, stride);
FIELD(ei_gst_reference_meta, reference, GstReferenceTimestampMeta, reference);
FIELD(ei_gst_reference_meta, timestamp, GstReferenceTimestampMeta, timestamp);
SIZE(ei_gst_map, GstMapInfo);
FIELD(ei_gst_map, data, GstMapInfo, data);
FIELD(ei_gst_map, size, GstMapInfo, size);
SIZE(ei_gst_sink_callbacks, GstAppSinkCallbacks);
FIELD(ei_gst_sink_callbacks, eos, GstAppSinkCallbacks, eos);
FIELD(ei_gst_sink_callbacks, new_sample, GstAppSinkCallbacks, new_sample);
SIZE(ei_gst_source_callbacks, GstAppSrcCallbacks);
FIELD(ei_gst_source_callbacks, need_data, GstAppSrcCallbacks, need_data);
SIZE(ei_g_value, GValue);
SIZE(ei_g_error, GError);
FIELD(ei_g_error, domain, GError, domain);
FIELD(ei_g_error, code, GError, code);
FIELD(ei_g_error, message, GError, message);
SIZE(GstState, int);
SIZE(GstMapFlags, int);
SIZE(GstFormat, int);
SIZE(GstFlowReturn, int);
SIZE(GstStateChangeReturn, int);
SIZE(GstIteratorResult, int);
SIZE(GstBusSyncReply, int);
SIZE(GLogLevelFlags, int);
SIZE(GLogWriterOutput, int);

VALUE(EI_GST_STATE_NULL, GST_STATE_NULL);
VALUE(EI_GST_STATE_PLAYING, GST_STATE_PLAYING);
VALUE(EI_GST_STATE_FAILURE, GST_STATE_CHANGE_FAILURE);
VALUE(EI_GST_FLOW_OK, GST_FLOW_OK);
VALUE(EI_GST_BUS_DROP, GST_BUS_DROP);
VALUE(EI_GST_MAP_READ, GST_MAP_READ);
VALUE(EI_GST_FORMAT_TIME, GST_FORMAT_TIME);
VALUE(EI_GST_MESSAGE_EOS, GST_MESSAGE_EOS);
VALUE(EI_GST_MESSAGE_ERROR, GST_MESSAGE_ERROR);
VALUE(EI_GST_ITERATOR_OK, GST_ITERATOR_OK);
VALUE(EI_GST_ITERATOR_RESYNC, GST_ITERATOR_RESYNC);
VALUE(EI_GST_LOG_HANDLED, G_LOG_WRITER_HANDLED);
