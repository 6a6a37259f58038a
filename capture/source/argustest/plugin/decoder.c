// A stand-in for the GStreamer plugin of JetPack that decodes, for machines without FFmpeg: nvv4l2decoder gives the image of the file
// FAKE_ARGUS_IMAGE (NV12, of the video's size) for each access unit, numbered in its first byte. avdec_h264 does the same in the place of
// FFmpeg's decoder. FAKE_NVV4L2DECODER is what goes wrong with the former: open (there is no device) or fail=N (an error at image N).
#include <gst/base/gstbasetransform.h>
#include <gst/gst.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    GstBaseTransform parent;
    int count, size;
    char *image;
    gsize image_size;
} Decoder;
typedef struct {
    GstBaseTransformClass parent;
    gboolean hardware;
} DecoderClass;
G_DEFINE_TYPE(Decoder, decoder, GST_TYPE_BASE_TRANSFORM)

#define CODED "video/x-h264,stream-format=byte-stream,alignment=au;video/x-h265,stream-format=byte-stream,alignment=au"
#define DEVICE_MEMORY "video/x-raw(memory:NVMM),format=NV12"
#define SYSTEM_MEMORY "video/x-raw,format=NV12"

static gboolean is_hardware(void *decoder) { return ((DecoderClass *)G_OBJECT_GET_CLASS(decoder))->hardware; }

static gboolean fault(void *decoder, const char *name, int count) {
    const char *setting = getenv("FAKE_NVV4L2DECODER"), *at = setting && is_hardware(decoder) ? strstr(setting, name) : NULL;
    return at && (at[strlen(name)] != '=' || count >= atoi(at + strlen(name) + 1));
}

// The parser before the decoder says which size the images have.
static GstCaps *decoder_transform_caps(GstBaseTransform *t, GstPadDirection direction, GstCaps *caps, GstCaps *filter) {
    GstCaps *other = gst_caps_from_string(direction == GST_PAD_SRC ? CODED : is_hardware(t) ? DEVICE_MEMORY : SYSTEM_MEMORY);
    if (direction == GST_PAD_SINK && gst_caps_get_size(caps) == 1) {
        const char *const fields[] = {"width", "height", "framerate"};
        for (int i = 0; i < 3; i++) {
            const GValue *value = gst_structure_get_value(gst_caps_get_structure(caps, 0), fields[i]);
            if (value) gst_caps_set_value(other, fields[i], value);
        }
    }
    if (!filter) return other;
    GstCaps *common = gst_caps_intersect_full(filter, other, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(other);
    return common;
}

static gboolean decoder_set_caps(GstBaseTransform *t, GstCaps *in, GstCaps *out) {
    (void)in;
    int width, height;
    GstStructure *image = gst_caps_get_structure(out, 0);
    if (!gst_structure_get_int(image, "width", &width) || !gst_structure_get_int(image, "height", &height)) return FALSE;
    ((Decoder *)t)->size = width * height * 3 / 2;
    return TRUE;
}

static gboolean decoder_start(GstBaseTransform *t) {
    Decoder *d = (Decoder *)t;
    if (fault(d, "open", 0)) {
        GST_ELEMENT_ERROR(d, RESOURCE, NOT_FOUND, ("Cannot identify device '/dev/nvhost-nvdec'."), (NULL));
        return FALSE;
    }
    const char *image = getenv("FAKE_ARGUS_IMAGE");
    if (image && !d->image && !g_file_get_contents(image, &d->image, &d->image_size, NULL)) abort();
    return TRUE;
}

static GstFlowReturn decoder_prepare(GstBaseTransform *t, GstBuffer *in, GstBuffer **out) {
    *out = gst_buffer_new_allocate(NULL, (gsize)((Decoder *)t)->size, NULL);
    gst_buffer_copy_into(*out, in, GST_BUFFER_COPY_TIMESTAMPS, 0, (gsize)-1);
    return GST_FLOW_OK;
}

static GstFlowReturn decoder_transform(GstBaseTransform *t, GstBuffer *in, GstBuffer *out) {
    (void)in;
    Decoder *d = (Decoder *)t;
    if (fault(d, "fail", d->count)) {
        GST_ELEMENT_ERROR(d, STREAM, DECODE, ("Video decoder gave an error"), ("code 66"));
        return GST_FLOW_ERROR;
    }
    gst_buffer_memset(out, 0, 128, gst_buffer_get_size(out));
    if (d->image) gst_buffer_fill(out, 0, d->image, MIN(d->image_size, gst_buffer_get_size(out)));
    gst_buffer_memset(out, 0, (guint8)d->count++, 1);
    return GST_FLOW_OK;
}

static void decoder_set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
    (void)object, (void)id, (void)value, (void)spec;
}

static void decoder_finalize(GObject *object) {
    g_free(((Decoder *)object)->image);
    G_OBJECT_CLASS(decoder_parent_class)->finalize(object);
}

static void add_pad(GstElementClass *element, const char *name, GstPadDirection direction, const char *text) {
    GstCaps *caps = gst_caps_from_string(text);
    gst_element_class_add_pad_template(element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}

static void decoder_init(Decoder *d) { (void)d; }
static void decoder_class_init(DecoderClass *class) {
    class->hardware = TRUE;
    G_OBJECT_CLASS(class)->finalize = decoder_finalize;
    G_OBJECT_CLASS(class)->set_property = decoder_set_property;
    g_object_class_install_property(G_OBJECT_CLASS(class), 1,
                                    g_param_spec_boolean("enable-max-performance", "", "", FALSE, G_PARAM_WRITABLE));
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "decoder", "Codec/Decoder/Video", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "sink", GST_PAD_SINK, CODED);
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, DEVICE_MEMORY);
    GstBaseTransformClass *transform = GST_BASE_TRANSFORM_CLASS(class);
    transform->transform_caps = decoder_transform_caps;
    transform->set_caps = decoder_set_caps;
    transform->start = decoder_start;
    transform->prepare_output_buffer = decoder_prepare;
    transform->transform = decoder_transform;
}

typedef Decoder Software;
typedef DecoderClass SoftwareClass;
G_DEFINE_TYPE(Software, software, decoder_get_type())

static void software_init(Software *s) { (void)s; }
static void software_class_init(SoftwareClass *class) {
    class->hardware = FALSE;
    G_OBJECT_CLASS(class)->set_property = decoder_set_property;
    g_object_class_install_property(G_OBJECT_CLASS(class), 2, g_param_spec_int("max-threads", "", "", 0, 64, 0, G_PARAM_WRITABLE));
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, SYSTEM_MEMORY);
}

static gboolean plugin_init(GstPlugin *plugin) {
    return gst_element_register(plugin, "nvv4l2decoder", GST_RANK_NONE, decoder_get_type()) &&
           gst_element_register(plugin, "avdec_h264", GST_RANK_NONE, software_get_type());
}

#define PACKAGE "edge-infer"
// For the GStreamer of JetPack 5 and every newer one.
GST_PLUGIN_DEFINE(1, 16, nvvideo4linux2, "stand-in for tests", plugin_init, "1", "MIT/X11", PACKAGE, "https://example.com")
