// A stand-in for JetPack's GStreamer plugins for decoding: nvv4l2decoder, which decodes with FFmpeg into NVMM, and nvvidconv, which copies
// from there to system memory. FAKE_NVV4L2DECODER is a comma-separated list: open (the device cannot be opened), fail=N (an error at image
// N), hang=N (neither an image nor an end from image N on).
#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>
#include <gst/video/video.h>
#include <stdlib.h>
#include <string.h>

#include "../nvbufsurface.h"

// ---- NVMM: a GstMemory whose address is that of an NvBufSurface

typedef struct {
    GstMemory parent;
    ei_nv_surface surface;
    ei_nv_params params;
} Memory;

typedef GstAllocator Allocator;
typedef GstAllocatorClass AllocatorClass;
G_DEFINE_TYPE(Allocator, allocator, GST_TYPE_ALLOCATOR)

static gpointer memory_map(GstMemory *memory, gsize size, GstMapFlags flags) {
    (void)size, (void)flags;
    return &((Memory *)memory)->surface;
}
static void memory_unmap(GstMemory *memory) { (void)memory; }

static GstMemory *allocator_alloc(GstAllocator *allocator, gsize size, GstAllocationParams *params) {
    (void)params;
    Memory *m = g_new0(Memory, 1);
    gst_memory_init(GST_MEMORY_CAST(m), GST_MEMORY_FLAG_NO_SHARE, allocator, NULL, size, 0, 0, size);
    m->surface = (ei_nv_surface){.batch_size = 1, .filled = 1, .memory_type = 4, .list = &m->params};
    return GST_MEMORY_CAST(m);
}

static void allocator_free(GstAllocator *allocator, GstMemory *memory) {
    (void)allocator;
    Memory *m = (Memory *)memory;
    if (m->params.mapped.egl_image) abort();  // still mapped
    g_free(m->params.data);
    g_free(m);
}

static void allocator_class_init(AllocatorClass *class) {
    class->alloc = allocator_alloc;
    class->free = allocator_free;
}
static void allocator_init(Allocator *a) {
    a->mem_type = "nvmm";
    a->mem_map = memory_map;
    a->mem_unmap = memory_unmap;
}

// ---- the end of the decoder: it copies an image from system memory to NVMM

typedef struct {
    GstBaseTransform parent;
    GstVideoInfo info;
    GstBufferPool *pool;
    int count;
} Uploader;
typedef GstBaseTransformClass UploaderClass;
G_DEFINE_TYPE(Uploader, uploader, GST_TYPE_BASE_TRANSFORM)

static int fault(const char *name, int count) {
    const char *all = getenv("FAKE_NVV4L2DECODER"), *at = all ? strstr(all, name) : NULL;
    return at && (at[strlen(name)] != '=' || count >= atoi(at + strlen(name) + 1));
}

static GstCaps *with_memory(GstCaps *caps, gboolean nvmm) {
    GstCaps *copy = gst_caps_copy(caps);
    for (guint i = 0; i < gst_caps_get_size(copy); i++) {
        gst_caps_set_features(copy, i, nvmm ? gst_caps_features_new("memory:NVMM", NULL) : NULL);
    }
    return copy;
}

static GstCaps *filtered(GstCaps *caps, GstCaps *filter) {
    if (!filter) return caps;
    GstCaps *common = gst_caps_intersect_full(filter, caps, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(caps);
    return common;
}

static GstCaps *uploader_transform_caps(GstBaseTransform *t, GstPadDirection direction, GstCaps *caps, GstCaps *filter) {
    (void)t;
    return filtered(with_memory(caps, direction == GST_PAD_SINK), filter);
}

static void drop_pool(Uploader *u) {
    if (!u->pool) return;
    gst_buffer_pool_set_active(u->pool, FALSE);
    gst_clear_object(&u->pool);
}

static gboolean uploader_set_caps(GstBaseTransform *t, GstCaps *in, GstCaps *out) {
    Uploader *u = (Uploader *)t;
    drop_pool(u);
    u->pool = gst_buffer_pool_new();
    GstStructure *config = gst_buffer_pool_get_config(u->pool);
    GstAllocator *allocator = g_object_new(allocator_get_type(), NULL);
    gst_object_ref_sink(allocator);
    gst_buffer_pool_config_set_params(config, out, sizeof(ei_nv_surface), 4, 8);
    gst_buffer_pool_config_set_allocator(config, allocator, NULL);
    gst_object_unref(allocator);
    return gst_video_info_from_caps(&u->info, in) && gst_buffer_pool_set_config(u->pool, config) &&
           gst_buffer_pool_set_active(u->pool, TRUE);
}

static void fill(ei_nv_params *p, const GstVideoFrame *frame) {
    guint width = GST_VIDEO_FRAME_WIDTH(frame), height = GST_VIDEO_FRAME_HEIGHT(frame), pitch = (width + 63) / 64 * 64;
    if (!p->data) p->data = g_malloc(pitch * (height + 8) * 3 / 2);
    p->width = p->planes.width[0] = width;
    p->height = p->planes.height[0] = height;
    p->pitch = p->planes.pitch[0] = p->planes.pitch[1] = pitch;
    p->planes.count = 2;
    p->planes.offset[1] = pitch * (height + 4);  // the planes do not adjoin
    for (guint plane = 0; plane < 2; plane++) {
        for (guint y = 0; y < height / (plane + 1); y++) {
            memcpy((char *)p->data + p->planes.offset[plane] + y * pitch,
                   (const char *)GST_VIDEO_FRAME_PLANE_DATA(frame, plane) + y * GST_VIDEO_FRAME_PLANE_STRIDE(frame, plane), width);
        }
    }
}

static GstFlowReturn uploader_prepare(GstBaseTransform *t, GstBuffer *in, GstBuffer **out) {
    Uploader *u = (Uploader *)t;
    (void)in;
    return gst_buffer_pool_acquire_buffer(u->pool, out, NULL);
}

static gboolean copy_meta(GstBuffer *in, GstMeta **meta, gpointer data) {
    (void)in;
    if ((*meta)->info->api == GST_REFERENCE_TIMESTAMP_META_API_TYPE) {
        GstReferenceTimestampMeta *m = (GstReferenceTimestampMeta *)*meta;
        gst_buffer_add_reference_timestamp_meta(data, m->reference, m->timestamp, m->duration);
    }
    return TRUE;
}

static GstFlowReturn uploader_transform(GstBaseTransform *t, GstBuffer *in, GstBuffer *out) {
    Uploader *u = (Uploader *)t;
    int count = u->count++;
    if (fault("fail", count)) {
        GST_ELEMENT_ERROR(GST_OBJECT_PARENT(u), STREAM, DECODE, ("Video decoder gave an error"), ("code 66"));
        return GST_FLOW_ERROR;
    }
    while (fault("hang", count)) g_usleep(G_USEC_PER_SEC);
    GstVideoFrame frame;
    if (!gst_video_frame_map(&frame, &u->info, in, GST_MAP_READ)) return GST_FLOW_ERROR;
    fill(&((Memory *)gst_buffer_peek_memory(out, 0))->params, &frame);
    gst_video_frame_unmap(&frame);
    GST_BUFFER_PTS(out) = GST_BUFFER_PTS(in);
    gst_buffer_foreach_meta(in, copy_meta, out);
    return GST_FLOW_OK;
}

static gboolean uploader_start(GstBaseTransform *t) {
    if (!fault("open", 0)) return TRUE;
    GST_ELEMENT_ERROR(GST_OBJECT_PARENT(t), RESOURCE, NOT_FOUND, ("Cannot identify device '/dev/nvhost-nvdec'."), (NULL));
    return FALSE;
}

static gboolean uploader_stop(GstBaseTransform *t) {
    drop_pool((Uploader *)t);
    return TRUE;
}

static void add_pad(GstElementClass *element, const char *name, GstPadDirection direction, const char *text) {
    GstCaps *caps = gst_caps_from_string(text);
    gst_element_class_add_pad_template(element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}

#define NVMM "video/x-raw(memory:NVMM),format=NV12"
#define SYSTEM "video/x-raw,format=NV12"

static void uploader_init(Uploader *u) { (void)u; }
static void uploader_class_init(UploaderClass *class) {
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "uploader", "Filter/Video", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "sink", GST_PAD_SINK, SYSTEM);
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, NVMM);
    class->transform_caps = uploader_transform_caps;
    class->set_caps = uploader_set_caps;
    class->prepare_output_buffer = uploader_prepare;
    class->transform = uploader_transform;
    class->start = uploader_start;
    class->stop = uploader_stop;
}

// ---- nvv4l2decoder

typedef struct {
    GstBin parent;
    GstElement *decoder;
    gboolean performance, low_latency;
} Decoder;
typedef GstBinClass DecoderClass;
G_DEFINE_TYPE(Decoder, decoder, GST_TYPE_BIN)

// choose adds FFmpeg's decoder when the codec is known.
static GstPadProbeReturn choose(GstPad *pad, GstPadProbeInfo *info, gpointer data) {
    (void)pad;
    Decoder *d = data;
    GstEvent *event = GST_PAD_PROBE_INFO_EVENT(info);
    if (GST_EVENT_TYPE(event) != GST_EVENT_CAPS || d->decoder) return GST_PAD_PROBE_OK;
    GstCaps *caps;
    gst_event_parse_caps(event, &caps);
    const char *name = gst_structure_get_name(gst_caps_get_structure(caps, 0));
    GstElement *first = gst_bin_get_by_name(GST_BIN(d), "first"), *second = gst_bin_get_by_name(GST_BIN(d), "second");
    d->decoder = gst_element_factory_make(strcmp(name, "video/x-h265") ? "avdec_h264" : "avdec_h265", NULL);
    g_object_set(d->decoder, "max-threads", 1, NULL);
    gst_bin_add(GST_BIN(d), d->decoder);
    gst_element_link_many(first, d->decoder, second, NULL);
    gst_element_sync_state_with_parent(d->decoder);
    gst_object_unref(first);
    gst_object_unref(second);
    return GST_PAD_PROBE_OK;
}

static void set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
    (void)spec;
    *(id == 1 ? &((Decoder *)object)->performance : &((Decoder *)object)->low_latency) = g_value_get_boolean(value);
}

static void ghost(GstElement *bin, const char *name, GstElement *element) {
    GstPad *pad = gst_element_get_static_pad(element, name);
    gst_element_add_pad(bin, gst_ghost_pad_new(name, pad));
    gst_object_unref(pad);
}

static void decoder_init(Decoder *d) {
    GstElement *first = gst_element_factory_make("identity", "first"), *second = gst_element_factory_make("videoconvert", "second");
    GstElement *last = g_object_new(uploader_get_type(), NULL);
    gst_util_set_object_arg(G_OBJECT(second), "dither", "none");
    gst_util_set_object_arg(G_OBJECT(second), "chroma-mode", "none");
    gst_bin_add_many(GST_BIN(d), first, second, last, NULL);
    gst_element_link(second, last);
    ghost(GST_ELEMENT(d), "sink", first);
    ghost(GST_ELEMENT(d), "src", last);
    GstPad *pad = gst_element_get_static_pad(first, "src");
    gst_pad_add_probe(pad, GST_PAD_PROBE_TYPE_EVENT_DOWNSTREAM, choose, d, NULL);
    gst_object_unref(pad);
}

static void decoder_class_init(DecoderClass *class) {
    GObjectClass *object = G_OBJECT_CLASS(class);
    object->set_property = set_property;
    g_object_class_install_property(object, 1, g_param_spec_boolean("enable-max-performance", "", "", FALSE, G_PARAM_WRITABLE));
    g_object_class_install_property(object, 2, g_param_spec_boolean("disable-dpb", "", "", FALSE, G_PARAM_WRITABLE));
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "decoder", "Codec/Decoder/Video/Hardware", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "sink", GST_PAD_SINK,
            "video/x-h264,stream-format=byte-stream,alignment=au;video/x-h265,stream-format=byte-stream,alignment=au");
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, NVMM);
}

// ---- nvvidconv

typedef GstBaseTransform Converter;
typedef GstBaseTransformClass ConverterClass;
G_DEFINE_TYPE(Converter, converter, GST_TYPE_BASE_TRANSFORM)

static GstCaps *converter_transform_caps(GstBaseTransform *t, GstPadDirection direction, GstCaps *caps, GstCaps *filter) {
    (void)t, (void)direction;
    return filtered(gst_caps_merge(with_memory(caps, TRUE), with_memory(caps, FALSE)), filter);
}

static gboolean converter_unit_size(GstBaseTransform *t, GstCaps *caps, gsize *size) {
    (void)t;
    GstVideoInfo info;
    gboolean nvmm = gst_caps_features_contains(gst_caps_get_features(caps, 0), "memory:NVMM");
    *size = nvmm ? sizeof(ei_nv_surface) : gst_video_info_from_caps(&info, caps) ? info.size : 0;
    return *size > 0;
}

static GstFlowReturn converter_transform(GstBaseTransform *t, GstBuffer *in, GstBuffer *out) {
    const ei_nv_params *p = &((Memory *)gst_buffer_peek_memory(in, 0))->params;
    GstCaps *caps = gst_pad_get_current_caps(t->srcpad);
    GstVideoInfo info;
    GstVideoFrame frame;
    gboolean known = gst_video_info_from_caps(&info, caps);
    gst_caps_unref(caps);
    if (!known || !gst_video_frame_map(&frame, &info, out, GST_MAP_WRITE)) return GST_FLOW_ERROR;
    for (guint plane = 0; plane < 2; plane++) {
        for (guint y = 0; y < p->height / (plane + 1); y++) {
            memcpy((char *)GST_VIDEO_FRAME_PLANE_DATA(&frame, plane) + y * GST_VIDEO_FRAME_PLANE_STRIDE(&frame, plane),
                   (const char *)p->data + p->planes.offset[plane] + y * p->pitch, p->width);
        }
    }
    gst_video_frame_unmap(&frame);
    return GST_FLOW_OK;
}

static void ignore_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
    (void)object, (void)id, (void)value, (void)spec;
}

static void converter_init(Converter *c) { (void)c; }
static void converter_class_init(ConverterClass *class) {
    GObjectClass *object = G_OBJECT_CLASS(class);
    object->set_property = ignore_property;
    g_object_class_install_property(object, 1, g_param_spec_boolean("bl-output", "", "", TRUE, G_PARAM_WRITABLE));
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "converter", "Filter/Video", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "sink", GST_PAD_SINK, NVMM ";" SYSTEM);
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, NVMM ";" SYSTEM);
    class->transform_caps = converter_transform_caps;
    class->get_unit_size = converter_unit_size;
    class->transform = converter_transform;
    class->passthrough_on_same_caps = TRUE;
}

static gboolean plugin_init(GstPlugin *plugin) {
    return gst_element_register(plugin, "nvv4l2decoder", GST_RANK_NONE, decoder_get_type()) &&
           gst_element_register(plugin, "nvvidconv", GST_RANK_NONE, converter_get_type());
}

#define PACKAGE "edge-infer"
GST_PLUGIN_DEFINE(GST_VERSION_MAJOR, GST_VERSION_MINOR, nvvideo4linux2, "stand-in for tests", plugin_init, "1", "MIT/X11", PACKAGE,
                  "https://example.com")
