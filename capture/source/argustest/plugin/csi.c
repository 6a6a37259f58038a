// A stand-in for the GStreamer plugins of JetPack that a CSI camera needs: nvarguscamerasrc, whose sensor number selects what goes wrong,
// and nvvidconv, which copies nothing. Images are those of the file FAKE_ARGUS_IMAGE (NV12), or of one colour, and are numbered in their
// first byte. As JetPack's, the plugin connects to the daemon at FAKE_ARGUS_SOCKET when it is loaded, never again, and prints to the
// standard output. The daemon gives each sensor to one process at a time.
#include <fcntl.h>
#include <gst/base/gstbasetransform.h>
#include <gst/base/gstpushsrc.h>
#include <gst/gst.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { WORKS = 0, BUSY = 1, FAILS_LATER = 2, FALLS_SILENT = 3, HANGS_IN_STOP = 4, REPEATS = 5, IMAGES_BEFORE_FAULT = 5 };

static int provider = -1;  // connection to the daemon; -1 without a daemon's path in the environment

static void connect_provider(void) {
    const char *path = getenv("FAKE_ARGUS_SOCKET");
    if (!path) return;
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof(address.sun_path), "%s", path);
    provider = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(provider, (struct sockaddr *)&address, sizeof(address)) != 0) shutdown(provider, SHUT_RDWR);
}

// provider_is_lost reports whether the daemon that was there at load time is gone.
static gboolean provider_is_lost(void) {
    char byte;
    return provider >= 0 && recv(provider, &byte, 1, MSG_DONTWAIT | MSG_PEEK) == 0;
}

typedef struct {
    GstPushSrc parent;
    int sensor, mode, width, height, rate, rate_unit, count;
    int held;  // file whose lock is the sensor; -1 without one
    char *image;
    gsize image_size;
    gboolean unlocked;
    GMutex lock;
    GCond changed;
} Source;
typedef GstPushSrcClass SourceClass;
G_DEFINE_TYPE(Source, source, GST_TYPE_PUSH_SRC)

#define DEVICE_CAPS "video/x-raw(memory:NVMM),format=NV12,width=[16,4096],height=[16,4096],framerate=[0/1,120/1]"

// hold_sensor takes the sensor, which belongs to this process until source_stop or its end. Without a daemon nobody else wants it.
static gboolean hold_sensor(Source *s) {
    const char *path = getenv("FAKE_ARGUS_SOCKET");
    if (s->sensor == BUSY) return FALSE;
    if (!path) return TRUE;
    char *name = g_strdup_printf("%s.%d", path, s->sensor);
    s->held = open(name, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    g_free(name);
    return flock(s->held, LOCK_EX | LOCK_NB) == 0;
}

static void drop_sensor(Source *s) {
    if (s->held >= 0) close(s->held);
    s->held = -1;
}

static gboolean source_start(GstBaseSrc *base) {
    Source *s = (Source *)base;
    s->count = 0;
    printf("GST_ARGUS: Creating output stream\n");
    fflush(stdout);
    if (provider_is_lost()) {
        GST_ELEMENT_ERROR(s, RESOURCE, FAILED, ("Failed to create CameraProvider"), (NULL));
        return FALSE;
    }
    const char *image = getenv("FAKE_ARGUS_IMAGE");
    if (image && !s->image && !g_file_get_contents(image, &s->image, &s->image_size, NULL)) abort();
    if (hold_sensor(s)) return TRUE;
    drop_sensor(s);
    GST_ELEMENT_ERROR(s, RESOURCE, BUSY, ("Failed to create CaptureSession"), ("nvargus-daemon: sensor %d is in use", s->sensor));
    return FALSE;
}

static gboolean source_stop(GstBaseSrc *base) {
    while (((Source *)base)->sensor == HANGS_IN_STOP) g_usleep(G_USEC_PER_SEC);
    drop_sensor((Source *)base);
    return TRUE;
}

static gboolean source_set_caps(GstBaseSrc *base, GstCaps *caps) {
    Source *s = (Source *)base;
    GstStructure *structure = gst_caps_get_structure(caps, 0);
    return gst_structure_get_int(structure, "width", &s->width) && gst_structure_get_int(structure, "height", &s->height) &&
           gst_structure_get_fraction(structure, "framerate", &s->rate, &s->rate_unit);
}

static gboolean set_unlocked(GstBaseSrc *base, gboolean unlocked) {
    Source *s = (Source *)base;
    g_mutex_lock(&s->lock);
    s->unlocked = unlocked;
    g_cond_broadcast(&s->changed);
    g_mutex_unlock(&s->lock);
    return TRUE;
}
static gboolean source_unlock(GstBaseSrc *base) { return set_unlocked(base, TRUE); }
static gboolean source_unlock_stop(GstBaseSrc *base) { return set_unlocked(base, FALSE); }

static GstFlowReturn source_create(GstPushSrc *base, GstBuffer **buffer) {
    Source *s = (Source *)base;
    if (s->count >= IMAGES_BEFORE_FAULT && s->sensor == FAILS_LATER) {
        GST_ELEMENT_ERROR(s, STREAM, FAILED, ("TIMEOUT"), ("Argus Error Status"));
        return GST_FLOW_ERROR;
    }
    const gboolean silent = s->sensor == FALLS_SILENT || s->sensor == HANGS_IN_STOP;
    if ((s->count >= IMAGES_BEFORE_FAULT && silent) || provider_is_lost()) {
        g_mutex_lock(&s->lock);
        while (!s->unlocked) g_cond_wait(&s->changed, &s->lock);
        g_mutex_unlock(&s->lock);
        return GST_FLOW_FLUSHING;
    }
    g_usleep(G_USEC_PER_SEC * s->rate_unit / MAX(s->rate, 1));
    *buffer = gst_buffer_new_allocate(NULL, s->width * s->height * 3 / 2, NULL);
    gst_buffer_memset(*buffer, 0, s->count, gst_buffer_get_size(*buffer));
    if (s->image) gst_buffer_fill(*buffer, 1, s->image + 1, MIN(s->image_size, gst_buffer_get_size(*buffer)) - 1);
    s->count++;
    if (s->sensor == REPEATS && s->count > IMAGES_BEFORE_FAULT) {
        const unsigned char pattern[] = {1, 2, 3};
        gst_buffer_memset(*buffer, 0, 0, gst_buffer_get_size(*buffer));
        gst_buffer_fill(*buffer, 0, pattern, sizeof(pattern));
    }
    return GST_FLOW_OK;
}

static void source_set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
    (void)spec;
    *(id == 1 ? &((Source *)object)->sensor : &((Source *)object)->mode) = g_value_get_int(value);
}

static void source_init(Source *s) {
    s->held = -1;
    gst_base_src_set_live(GST_BASE_SRC(s), TRUE);
    gst_base_src_set_format(GST_BASE_SRC(s), GST_FORMAT_TIME);
    gst_base_src_set_do_timestamp(GST_BASE_SRC(s), TRUE);
}

static void add_pad(GstElementClass *element, const char *name, GstPadDirection direction, const char *text) {
    GstCaps *caps = gst_caps_from_string(text);
    gst_element_class_add_pad_template(element, gst_pad_template_new(name, direction, GST_PAD_ALWAYS, caps));
    gst_caps_unref(caps);
}

static void source_finalize(GObject *object) {
    g_free(((Source *)object)->image);
    G_OBJECT_CLASS(source_parent_class)->finalize(object);
}

static void source_class_init(SourceClass *class) {
    G_OBJECT_CLASS(class)->finalize = source_finalize;
    G_OBJECT_CLASS(class)->set_property = source_set_property;
    g_object_class_install_property(G_OBJECT_CLASS(class), 1, g_param_spec_int("sensor-id", "", "", 0, 255, 0, G_PARAM_WRITABLE));
    g_object_class_install_property(G_OBJECT_CLASS(class), 2, g_param_spec_int("sensor-mode", "", "", -1, 255, -1, G_PARAM_WRITABLE));
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "camera", "Source/Video", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, DEVICE_CAPS);
    GstBaseSrcClass *base = GST_BASE_SRC_CLASS(class);
    base->start = source_start;
    base->stop = source_stop;
    base->set_caps = source_set_caps;
    base->unlock = source_unlock;
    base->unlock_stop = source_unlock_stop;
    class->create = source_create;
}

typedef GstBaseTransform Converter;
typedef GstBaseTransformClass ConverterClass;
G_DEFINE_TYPE(Converter, converter, GST_TYPE_BASE_TRANSFORM)

// Either side may be in device or system memory.
static GstCaps *converter_transform(GstBaseTransform *transform, GstPadDirection direction, GstCaps *caps, GstCaps *filter) {
    (void)transform, (void)direction;
    GstCaps *system = gst_caps_copy(caps), *device = gst_caps_copy(caps);
    for (guint i = 0; i < gst_caps_get_size(caps); i++) {
        gst_caps_set_features(system, i, NULL);
        gst_caps_set_features(device, i, gst_caps_features_new("memory:NVMM", NULL));
    }
    GstCaps *both = gst_caps_merge(system, device);
    if (!filter) return both;
    GstCaps *common = gst_caps_intersect_full(filter, both, GST_CAPS_INTERSECT_FIRST);
    gst_caps_unref(both);
    return common;
}

static void converter_set_property(GObject *object, guint id, const GValue *value, GParamSpec *spec) {
    (void)object, (void)id, (void)value, (void)spec;
}

static void converter_init(Converter *c) { gst_base_transform_set_passthrough(c, TRUE); }

static void converter_class_init(ConverterClass *class) {
    G_OBJECT_CLASS(class)->set_property = converter_set_property;
    g_object_class_install_property(G_OBJECT_CLASS(class), 1, g_param_spec_int("flip-method", "", "", 0, 7, 0, G_PARAM_WRITABLE));
    gst_element_class_set_static_metadata(GST_ELEMENT_CLASS(class), "converter", "Filter/Video", "stand-in", "test");
    add_pad(GST_ELEMENT_CLASS(class), "sink", GST_PAD_SINK, "video/x-raw(memory:NVMM);video/x-raw");
    add_pad(GST_ELEMENT_CLASS(class), "src", GST_PAD_SRC, "video/x-raw(memory:NVMM);video/x-raw");
    class->transform_caps = converter_transform;
    class->passthrough_on_same_caps = FALSE;
}

static gboolean plugin_init(GstPlugin *plugin) {
    connect_provider();
    return gst_element_register(plugin, "nvarguscamerasrc", GST_RANK_NONE, source_get_type()) &&
           gst_element_register(plugin, "nvvidconv", GST_RANK_NONE, converter_get_type());
}

#define PACKAGE "edge-infer"
// For the GStreamer of JetPack 5 and every newer one.
GST_PLUGIN_DEFINE(1, 16, nvarguscamerasrc, "stand-in for tests", plugin_init, "1", "MIT/X11", PACKAGE, "https://example.com")
