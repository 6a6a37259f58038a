// What this package uses of GStreamer and GLib, as declarations of our own: the functions that library.c looks up at run time, and the
// beginnings of the structs that are read without a function. layout_test.go compares all of it with the installed headers.
#pragma once

#include <stddef.h>
#include <stdint.h>

#ifndef EI_GST_HEADERS  // set where the real headers declare these names
typedef struct _GError GError;
typedef struct _GValue GValue;
typedef struct _GObject GObject;
typedef struct _GObjectClass GObjectClass;
typedef struct _GParamSpec GParamSpec;
typedef struct _GTypeInstance GTypeInstance;
typedef struct _GstAllocationParams GstAllocationParams;
typedef struct _GstAllocator GstAllocator;
typedef struct _GstAppSink GstAppSink;
typedef struct _GstAppSrc GstAppSrc;
typedef struct _GstBin GstBin;
typedef struct _GstBuffer GstBuffer;
typedef struct _GstBus GstBus;
typedef struct _GstCaps GstCaps;
typedef struct _GstCapsFeatures GstCapsFeatures;
typedef struct _GstElement GstElement;
typedef struct _GstElementFactory GstElementFactory;
typedef struct _GstIterator GstIterator;
typedef struct _GstMemory GstMemory;
typedef struct _GstMessage GstMessage;
typedef struct _GstMeta GstMeta;
typedef struct _GstMiniObject GstMiniObject;
typedef struct _GstObject GstObject;
typedef struct _GstPad GstPad;
typedef struct _GstPlugin GstPlugin;
typedef struct _GstPluginFeature GstPluginFeature;
typedef struct _GstReferenceTimestampMeta GstReferenceTimestampMeta;
typedef struct _GstSample GstSample;
typedef struct _GstSegment GstSegment;
typedef struct _GstStructure GstStructure;
typedef struct ei_gst_map GstMapInfo;
typedef struct ei_gst_sink_callbacks GstAppSinkCallbacks;
typedef struct ei_gst_source_callbacks GstAppSrcCallbacks;
// Enumerations, which have the size of an int.
typedef int GstBusSyncReply;
typedef int GstFlowReturn;
typedef int GstFormat;
typedef int GstIteratorResult;
typedef int GstMapFlags;
typedef int GstState;
typedef int GstStateChangeReturn;
typedef int GLogLevelFlags;
typedef int GLogWriterOutput;
typedef struct _GLogField GLogField;
typedef GstBusSyncReply (*GstBusSyncHandler)(GstBus *, GstMessage *, void *);
typedef GLogWriterOutput (*GLogWriterFunc)(GLogLevelFlags, const GLogField *, size_t, void *);
typedef void (*GDestroyNotify)(void *);
#endif

enum {
    EI_GST_STATE_NULL = 1,
    EI_GST_STATE_PLAYING = 4,
    EI_GST_STATE_FAILURE = 0,
    EI_GST_FLOW_OK = 0,
    EI_GST_BUS_DROP = 0,
    EI_GST_MAP_READ = 1,
    EI_GST_FORMAT_TIME = 3,
    EI_GST_MESSAGE_EOS = 1,
    EI_GST_MESSAGE_ERROR = 2,
    EI_GST_ITERATOR_OK = 1,
    EI_GST_ITERATOR_RESYNC = 2,
    EI_GST_LOG_HANDLED = 1,
};

// The start of a GstMiniObject, GstMessage, GstBuffer, GstVideoMeta and GstReferenceTimestampMeta. The names of their fields are the
// headers'.
typedef struct ei_gst_mini_object {
    size_t type;
    int refcount, lockstate;
    unsigned flags;
    void *copy, *dispose, *free;
    unsigned priv_uint;
    void *priv_pointer;
} ei_gst_mini_object;

typedef struct ei_gst_message {
    ei_gst_mini_object mini_object;
    unsigned type;
    uint64_t timestamp;
    GstObject *src;
} ei_gst_message;

typedef struct ei_gst_buffer {
    ei_gst_mini_object mini_object;
    void *pool;
    uint64_t pts;
} ei_gst_buffer;

typedef struct ei_gst_video_meta {
    unsigned meta_flags;
    const void *meta_info;
    GstBuffer *buffer;
    unsigned flags, format;
    int id;
    unsigned width, height, n_planes;
    size_t offset[4];
    int stride[4];
} ei_gst_video_meta;

typedef struct ei_gst_reference_meta {
    unsigned meta_flags;
    const void *meta_info;
    GstCaps *reference;
    uint64_t timestamp, duration;
} ei_gst_reference_meta;

// Structs of the caller's, complete with the reserve of the library.
typedef struct ei_gst_map {
    void *memory;
    int flags;
    unsigned char *data;
    size_t size, maxsize;
    void *user_data[4], *reserved[4];
} ei_gst_map;

typedef struct ei_gst_sink_callbacks {
    void (*eos)(GstAppSink *, void *);
    GstFlowReturn (*new_preroll)(GstAppSink *, void *);
    GstFlowReturn (*new_sample)(GstAppSink *, void *);
    void *reserved[4];
} ei_gst_sink_callbacks;

typedef struct ei_gst_source_callbacks {
    void (*need_data)(GstAppSrc *, unsigned, void *);
    void (*enough_data)(GstAppSrc *, void *);
    int (*seek_data)(GstAppSrc *, uint64_t, void *);
    void *reserved[4];
} ei_gst_source_callbacks;

typedef struct ei_g_value {
    size_t type;
    uint64_t data[2];
} ei_g_value;

typedef struct ei_g_error {
    uint32_t domain;
    int code;
    char *message;
} ei_g_error;

// EI_GST_FUNCTIONS(F) expands F(result, name, parameters) for every function.
#define EI_GST_FUNCTIONS(F)                                                                                               \
    F(void, g_log_set_writer_func, (GLogWriterFunc, void *, GDestroyNotify))                                              \
    F(void, g_free, (void *))                                                                                             \
    F(void, g_error_free, (GError *))                                                                                     \
    F(const char *, g_quark_to_string, (uint32_t))                                                                        \
    F(uint32_t, g_quark_from_static_string, (const char *))                                                               \
    F(int, g_type_check_instance_is_a, (GTypeInstance *, size_t))                                                         \
    F(const char *, g_type_name_from_instance, (GTypeInstance *))                                                         \
    F(void *, g_value_get_object, (const GValue *))                                                                       \
    F(void, g_value_unset, (GValue *))                                                                                    \
    F(GParamSpec *, g_object_class_find_property, (GObjectClass *, const char *))                                         \
    F(void, gst_segtrap_set_enabled, (int))                                                                               \
    F(int, gst_init_check, (int *, char ***, GError **))                                                                  \
    F(char *, gst_version_string, (void))                                                                                 \
    F(GstElement *, gst_parse_launch, (const char *, GError **))                                                          \
    F(size_t, gst_pipeline_get_type, (void))                                                                              \
    F(void *, gst_object_ref_sink, (void *))                                                                              \
    F(void *, gst_object_ref, (void *))                                                                                   \
    F(void, gst_object_unref, (void *))                                                                                   \
    F(char *, gst_object_get_name, (GstObject *))                                                                         \
    F(void, gst_mini_object_unref, (GstMiniObject *))                                                                     \
    F(GstMiniObject *, gst_mini_object_ref, (GstMiniObject *))                                                            \
    F(void, gst_mini_object_set_qdata, (GstMiniObject *, uint32_t, void *, GDestroyNotify))                               \
    F(void *, gst_mini_object_get_qdata, (GstMiniObject *, uint32_t))                                                     \
    F(GstIterator *, gst_bin_iterate_recurse, (GstBin *))                                                                 \
    F(GstIteratorResult, gst_iterator_next, (GstIterator *, GValue *))                                                    \
    F(void, gst_iterator_resync, (GstIterator *))                                                                         \
    F(void, gst_iterator_free, (GstIterator *))                                                                           \
    F(GstStateChangeReturn, gst_element_set_state, (GstElement *, GstState))                                              \
    F(GstBus *, gst_element_get_bus, (GstElement *))                                                                      \
    F(GstElement *, gst_element_factory_make, (const char *, const char *))                                               \
    F(GstElementFactory *, gst_element_factory_find, (const char *))                                                      \
    F(GstPlugin *, gst_plugin_feature_get_plugin, (GstPluginFeature *))                                                   \
    F(const char *, gst_plugin_get_filename, (GstPlugin *))                                                               \
    F(GstElementFactory *, gst_element_get_factory, (GstElement *))                                                       \
    F(size_t, gst_element_get_type, (void))                                                                               \
    F(GstPad *, gst_element_get_static_pad, (GstElement *, const char *))                                                 \
    F(int, gst_element_query_duration, (GstElement *, GstFormat, int64_t *))                                              \
    F(GstCaps *, gst_pad_peer_query_caps, (GstPad *, GstCaps *))                                                          \
    F(void, gst_bus_set_sync_handler, (GstBus *, GstBusSyncHandler, void *, GDestroyNotify))                              \
    F(void, gst_message_parse_error, (GstMessage *, GError **, char **))                                                  \
    F(GstBuffer *, gst_sample_get_buffer, (GstSample *))                                                                  \
    F(GstCaps *, gst_sample_get_caps, (GstSample *))                                                                      \
    F(GstSegment *, gst_sample_get_segment, (GstSample *))                                                                \
    F(uint64_t, gst_segment_to_stream_time, (const GstSegment *, GstFormat, uint64_t))                                    \
    F(GstCaps *, gst_caps_from_string, (const char *))                                                                    \
    F(char *, gst_caps_to_string, (const GstCaps *))                                                                      \
    F(unsigned, gst_caps_get_size, (const GstCaps *))                                                                     \
    F(int, gst_caps_can_intersect, (const GstCaps *, const GstCaps *))                                                    \
    F(GstStructure *, gst_caps_get_structure, (const GstCaps *, unsigned))                                                \
    F(GstCapsFeatures *, gst_caps_get_features, (const GstCaps *, unsigned))                                              \
    F(char *, gst_caps_features_to_string, (const GstCapsFeatures *))                                                     \
    F(const char *, gst_structure_get_name, (const GstStructure *))                                                       \
    F(const char *, gst_structure_get_string, (const GstStructure *, const char *))                                       \
    F(int, gst_structure_get_int, (const GstStructure *, const char *, int *))                                            \
    F(int, gst_structure_get_fraction, (const GstStructure *, const char *, int *, int *))                                \
    F(int, gst_buffer_map, (GstBuffer *, GstMapInfo *, GstMapFlags))                                                      \
    F(void, gst_buffer_unmap, (GstBuffer *, GstMapInfo *))                                                                \
    F(GstMemory *, gst_buffer_peek_memory, (GstBuffer *, unsigned))                                                       \
    F(GstBuffer *, gst_buffer_new_allocate, (GstAllocator *, size_t, GstAllocationParams *))                              \
    F(size_t, gst_buffer_fill, (GstBuffer *, size_t, const void *, size_t))                                               \
    F(GstMeta *, gst_buffer_get_meta, (GstBuffer *, size_t))                                                              \
    F(GstReferenceTimestampMeta *, gst_buffer_add_reference_timestamp_meta, (GstBuffer *, GstCaps *, uint64_t, uint64_t)) \
    F(GstReferenceTimestampMeta *, gst_buffer_get_reference_timestamp_meta, (GstBuffer *, GstCaps *))                     \
    F(size_t, gst_app_sink_get_type, (void))                                                                              \
    F(GstCaps *, gst_app_sink_get_caps, (GstAppSink *))                                                                   \
    F(void, gst_app_sink_set_caps, (GstAppSink *, const GstCaps *))                                                       \
    F(unsigned, gst_app_sink_get_max_buffers, (GstAppSink *))                                                             \
    F(void, gst_app_sink_set_max_buffers, (GstAppSink *, unsigned))                                                       \
    F(void, gst_app_sink_set_callbacks, (GstAppSink *, GstAppSinkCallbacks *, void *, GDestroyNotify))                    \
    F(GstSample *, gst_app_sink_try_pull_sample, (GstAppSink *, uint64_t))                                                \
    F(size_t, gst_app_src_get_type, (void))                                                                               \
    F(GstFlowReturn, gst_app_src_push_buffer, (GstAppSrc *, GstBuffer *))                                                 \
    F(GstFlowReturn, gst_app_src_end_of_stream, (GstAppSrc *))                                                            \
    F(void, gst_app_src_set_callbacks, (GstAppSrc *, GstAppSrcCallbacks *, void *, GDestroyNotify))                       \
    F(size_t, gst_video_meta_api_get_type, (void))
