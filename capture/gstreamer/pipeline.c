#include "pipeline.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "ei_gstreamer.h"
#include "library.h"
#include "planes.h"

// signals is what GStreamer's threads and a puller share. Bus and appsink may outlive the pipeline, so each holder has a reference.
typedef struct signals {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    int references;
    uint64_t events;    // incremented with every change
    int ended;          // the appsink has received the end of the stream
    int all_ended;      // every sink has
    int stopped;        // ei_gst_stop was called
    int hungry;         // the appsrc waits for data
    int ended_input;    // ei_gst_push_end was called
    GstMessage *error;  // the first error message: later ones follow from it
} signals;

struct ei_gst_pipeline {
    GstElement *element;
    GstBus *bus;
    GstAppSink *sink;
    GstAppSrc *source;  // NULL if the description has none
    GstCaps *numbers;   // the clock that counts what is pushed
    signals *signals;

    // The puller's only.
    GstSample *sample;  // held image
    GstCaps *caps;      // of the last sample, to which image belongs
    ei_gst_image image;
    const ei_levels *levels;  // how image must be converted; NULL if it need not be
};

static signals *signals_new(void) {
    signals *s = calloc(1, sizeof(*s));
    pthread_condattr_t attributes;
    pthread_mutex_init(&s->lock, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&s->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    s->references = 1;
    return s;
}

static signals *signals_ref(signals *s) {
    pthread_mutex_lock(&s->lock);
    s->references++;
    pthread_mutex_unlock(&s->lock);
    return s;
}

static void unref(void *mini_object) {
    if (mini_object) ei_gst.gst_mini_object_unref(mini_object);
}

static void signals_unref(void *data) {
    signals *s = data;
    pthread_mutex_lock(&s->lock);
    int left = --s->references;
    pthread_mutex_unlock(&s->lock);
    if (left) return;
    unref(s->error);
    pthread_cond_destroy(&s->changed);
    pthread_mutex_destroy(&s->lock);
    free(s);
}

static void wake(signals *s) {
    s->events++;
    pthread_cond_broadcast(&s->changed);
}

static GstFlowReturn on_sample(GstAppSink *sink, void *data) {
    (void)sink;
    signals *s = data;
    pthread_mutex_lock(&s->lock);
    wake(s);
    pthread_mutex_unlock(&s->lock);
    return EI_GST_FLOW_OK;
}

static void on_end(GstAppSink *sink, void *data) {
    (void)sink;
    signals *s = data;
    pthread_mutex_lock(&s->lock);
    s->ended = 1;
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

static void on_need_data(GstAppSrc *source, unsigned length, void *data) {
    (void)source, (void)length;
    signals *s = data;
    pthread_mutex_lock(&s->lock);
    s->hungry = 1;
    wake(s);
    pthread_mutex_unlock(&s->lock);
}

// on_message keeps the first error and notes the end; everything is dropped, so that nobody has to read the bus.
static GstBusSyncReply on_message(GstBus *bus, GstMessage *message, void *data) {
    (void)bus;
    signals *s = data;
    pthread_mutex_lock(&s->lock);
    unsigned type = ((ei_gst_message *)message)->type;
    int keep = type == EI_GST_MESSAGE_ERROR && !s->error;
    if (keep) s->error = message;
    if (type == EI_GST_MESSAGE_EOS) s->all_ended = 1;
    if (keep || s->all_ended) wake(s);
    pthread_mutex_unlock(&s->lock);
    if (!keep) unref(message);  // a dropped message belongs to this function
    return EI_GST_BUS_DROP;
}

static char *copy_text(const char *text) { return text ? strdup(text) : NULL; }

static void copy_error(const GError *from, ei_gst_error *to) {
    const ei_g_error *e = (const ei_g_error *)from;
    to->domain = copy_text(ei_gst.g_quark_to_string(e->domain));
    to->code = e->code;
    to->message = copy_text(e->message);
}

// refused_caps describes what is offered to the appsink if that cannot take it; NULL otherwise. The text is to be freed.
static char *refused_caps(ei_gst_pipeline *p) {
    GstCaps *wanted = ei_gst.gst_app_sink_get_caps(p->sink);
    GstPad *pad = ei_gst.gst_element_get_static_pad((GstElement *)p->sink, "sink");
    GstCaps *offered = pad ? ei_gst.gst_pad_peer_query_caps(pad, NULL) : NULL;
    char *text = NULL;
    if (wanted && offered && ei_gst.gst_caps_get_size(offered) > 0 && !ei_gst.gst_caps_can_intersect(wanted, offered)) {
        GstStructure *first = ei_gst.gst_caps_get_structure(offered, 0);
        const char *format = ei_gst.gst_structure_get_string(first, "format");
        char *features = ei_gst.gst_caps_features_to_string(ei_gst.gst_caps_get_features(offered, 0));
        const char *memory = features && strstr(features, "memory:") && !strstr(features, "memory:SystemMemory") ? features : "";
        const char *subject = format ? format : ei_gst.gst_structure_get_name(first);
        size_t size = strlen(subject) + strlen(memory) + 4;
        text = malloc(size);
        snprintf(text, size, *memory ? "%s (%s)" : "%s%s", subject, memory);
        ei_gst.g_free(features);
    }
    unref(wanted);
    unref(offered);
    if (pad) ei_gst.gst_object_unref(pad);
    return text;
}

// is_default_name reports whether GStreamer has made up a name: the type without "Gst" in lower case and a number through the life of the
// process, as "filesrc0", or "avdec_h264-0" after a digit.
static int is_default_name(const char *name, const char *type) {
    if (!strncmp(type, "Gst", 3)) type += 3;
    size_t length = strlen(type), rest = strlen(name);
    return rest > length && !strncasecmp(name, type, length) && strspn(name + length, "-0123456789") == rest - length;
}

// element_name returns a name to be freed. For an unnamed element it is the kind of element, so that the same failure has the same text
// each time.
static char *element_name(GstObject *object) {
    char *name = ei_gst.gst_object_get_name(object);
    GstElementFactory *factory = NULL;
    if (ei_gst.g_type_check_instance_is_a((GTypeInstance *)object, ei_gst.gst_element_get_type())) {
        factory = ei_gst.gst_element_get_factory((GstElement *)object);
    }
    if (name && factory && is_default_name(name, ei_gst.g_type_name_from_instance((GTypeInstance *)object))) {
        ei_gst.g_free(name);
        name = ei_gst.gst_object_get_name((GstObject *)factory);
    }
    char *result = copy_text(name);
    ei_gst.g_free(name);
    return result;
}

void ei_gst_failure(ei_gst_pipeline *p, ei_gst_error *error) {
    pthread_mutex_lock(&p->signals->lock);
    GstMessage *message = p->signals->error;
    if (message) ei_gst.gst_mini_object_ref((GstMiniObject *)message);
    pthread_mutex_unlock(&p->signals->lock);
    if (!message) return;
    GError *why = NULL;
    char *debug = NULL;
    ei_gst.gst_message_parse_error(message, &why, &debug);
    if (why) {
        copy_error(why, error);
        ei_gst.g_error_free(why);
    }
    error->debug = copy_text(debug);
    ei_gst.g_free(debug);
    GstObject *from = ((ei_gst_message *)message)->src;
    if (from) error->element = element_name(from);
    error->caps = refused_caps(p);
    unref(message);
}

int ei_gst_has_element(const char *name, const char *property) {
    GstElement *element = ei_gst.gst_element_factory_make(name, NULL);
    if (!element) return 0;
    ei_gst.gst_object_ref_sink(element);
    int found = !property || ei_gst.g_object_class_find_property(*(GObjectClass **)element, property) != NULL;
    ei_gst.gst_object_unref(element);
    return found;
}

char *ei_gst_load_error(const char *name) {
    GstElementFactory *factory = ei_gst.gst_element_factory_find(name);
    if (!factory) return NULL;
    GstPlugin *plugin = ei_gst.gst_plugin_feature_get_plugin((GstPluginFeature *)factory);
    const char *path = plugin ? ei_gst.gst_plugin_get_filename(plugin) : NULL;  // NULL for a plugin without a file
    void *handle = path ? dlopen(path, RTLD_LAZY | RTLD_LOCAL) : NULL;
    char *reason = path && !handle ? copy_text(dlerror()) : NULL;
    if (handle) dlclose(handle);
    if (plugin) ei_gst.gst_object_unref(plugin);
    ei_gst.gst_object_unref(factory);
    return reason;
}

// find_element returns a reference to the first element of a type, or NULL.
static void *find_element(GstElement *bin, size_t type) {
    GstIterator *all = ei_gst.gst_bin_iterate_recurse((GstBin *)bin);
    ei_g_value item = {0};
    void *found = NULL;
    while (!found) {
        int state = ei_gst.gst_iterator_next(all, (GValue *)&item);
        if (state == EI_GST_ITERATOR_RESYNC) {
            ei_gst.gst_iterator_resync(all);
            continue;
        }
        if (state != EI_GST_ITERATOR_OK) break;
        void *element = ei_gst.g_value_get_object((GValue *)&item);
        if (ei_gst.g_type_check_instance_is_a(element, type)) found = ei_gst.gst_object_ref(element);
        ei_gst.g_value_unset((GValue *)&item);
    }
    ei_gst.gst_iterator_free(all);
    return found;
}

// What an appsink without caps of its own accepts. Subsampled formats need even sides.
static const char accepted[] =
    "video/x-raw,format={NV12,I420},width=[2,65534,2],height=[2,65534,2];video/x-raw,format=YUY2,width=[2,65534,2];"
    "video/x-raw,format={BGR,BGRx,BGRA,GRAY8}";

enum { default_buffers = 4 };

static void prepare_sink(GstAppSink *sink, signals *s) {
    GstCaps *caps = ei_gst.gst_app_sink_get_caps(sink);
    if (!caps) {
        caps = ei_gst.gst_caps_from_string(accepted);
        ei_gst.gst_app_sink_set_caps(sink, caps);
    }
    unref(caps);
    // The default is an unlimited queue, which would grow while the consumer is slow.
    if (ei_gst.gst_app_sink_get_max_buffers(sink) == 0) ei_gst.gst_app_sink_set_max_buffers(sink, default_buffers);
    ei_gst_sink_callbacks callbacks = {.eos = on_end, .new_sample = on_sample};
    ei_gst.gst_app_sink_set_callbacks(sink, (GstAppSinkCallbacks *)&callbacks, signals_ref(s), signals_unref);
}

ei_gst_pipeline *ei_gst_open(const char *description, ei_gst_error *error) {
    GError *why = NULL;
    GstElement *element = ei_gst.gst_parse_launch(description, &why);
    if (element) ei_gst.gst_object_ref_sink(element);
    if (why || !element) {  // with an error the element, if any, is incomplete
        if (why) copy_error(why, error);
        if (why) ei_gst.g_error_free(why);
        if (element) ei_gst.gst_object_unref(element);
        return NULL;
    }
    void *sink = NULL;
    int is_pipeline = ei_gst.g_type_check_instance_is_a((GTypeInstance *)element, ei_gst.gst_pipeline_get_type());
    if (is_pipeline) sink = find_element(element, ei_gst.gst_app_sink_get_type());
    if (!sink) {
        error->message = strdup(is_pipeline ? "the pipeline has no appsink" : "a single element is not a pipeline");
        ei_gst.gst_object_unref(element);
        return NULL;
    }
    ei_gst_pipeline *p = calloc(1, sizeof(*p));
    p->element = element;
    p->sink = sink;
    p->source = find_element(element, ei_gst.gst_app_src_get_type());
    p->bus = ei_gst.gst_element_get_bus(element);
    p->signals = signals_new();
    ei_gst.gst_bus_set_sync_handler(p->bus, on_message, signals_ref(p->signals), signals_unref);
    prepare_sink(p->sink, p->signals);
    p->numbers = ei_gst.gst_caps_from_string("timestamp/x-edge-infer-number");
    if (p->source) {
        ei_gst_source_callbacks callbacks = {.need_data = on_need_data};
        ei_gst.gst_app_src_set_callbacks(p->source, (GstAppSrcCallbacks *)&callbacks, signals_ref(p->signals), signals_unref);
    }
    if (ei_gst.gst_element_set_state(element, EI_GST_STATE_PLAYING) == EI_GST_STATE_FAILURE) {
        ei_gst_failure(p, error);
        if (!error->message) error->message = strdup("the pipeline does not start and reports no reason");
        ei_gst_close(p);
        return NULL;
    }
    return p;
}

static const struct {
    const char *name;
    ei_gst_format format;
} formats[] = {
    {"BGR", EI_GST_BGR},   {"BGRx", EI_GST_BGRX}, {"BGRA", EI_GST_BGRX},   {"NV12", EI_GST_NV12},
    {"I420", EI_GST_I420}, {"YUY2", EI_GST_YUY2}, {"GRAY8", EI_GST_GRAY8},
};

static ei_gst_format find_format(const char *name) {
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++) {
        if (!strcmp(formats[i].name, name)) return formats[i].format;
    }
    return EI_GST_OTHER;
}

// read_caps describes the held sample. Caps change rarely, so they are read again only when they are another object.
static void read_caps(ei_gst_pipeline *p) {
    GstCaps *caps = ei_gst.gst_sample_get_caps(p->sample);
    if (caps && caps == p->caps) return;
    unref(p->caps);
    p->caps = NULL;
    p->levels = NULL;
    p->image = (ei_gst_image){.fps_d = 1, .caps_name = "without caps"};
    if (!caps || ei_gst.gst_caps_get_size(caps) == 0) return;
    p->caps = (GstCaps *)ei_gst.gst_mini_object_ref((GstMiniObject *)caps);
    GstStructure *s = ei_gst.gst_caps_get_structure(caps, 0);
    p->image.caps_name = ei_gst.gst_structure_get_name(s);
    char *features = ei_gst.gst_caps_features_to_string(ei_gst.gst_caps_get_features(caps, 0));
    p->image.device_memory = features && strstr(features, "memory:") && !strstr(features, "memory:SystemMemory");
    ei_gst.g_free(features);
    if (strcmp(p->image.caps_name, "video/x-raw") != 0) return;
    const char *format = ei_gst.gst_structure_get_string(s, "format");
    if (!format) return;
    p->image.caps_name = format;
    p->image.format = find_format(format);
    const char *range = ei_gst.gst_structure_get_string(s, "colorimetry");  // "1:..." is the full range; those with names are limited
    if (range && !strncmp(range, "1:", 2)) p->levels = ei_limited_levels();
    ei_gst.gst_structure_get_int(s, "width", &p->image.width);
    ei_gst.gst_structure_get_int(s, "height", &p->image.height);
    ei_gst.gst_structure_get_fraction(s, "framerate", &p->image.fps_n, &p->image.fps_d);
}

static void hold(ei_gst_pipeline *p, GstSample *sample) {
    p->sample = sample;
    read_caps(p);
    p->image.position = p->image.number = -1;
    const ei_gst_buffer *buffer = (const ei_gst_buffer *)ei_gst.gst_sample_get_buffer(sample);
    GstSegment *segment = ei_gst.gst_sample_get_segment(sample);
    if (buffer && segment && buffer->pts != UINT64_MAX) {
        // UINT64_MAX where the time is outside of the stream, which is -1.
        p->image.position = (int64_t)ei_gst.gst_segment_to_stream_time(segment, EI_GST_FORMAT_TIME, buffer->pts);
    }
    const ei_gst_reference_meta *meta = NULL;
    if (buffer) meta = (const ei_gst_reference_meta *)ei_gst.gst_buffer_get_reference_timestamp_meta((GstBuffer *)buffer, p->numbers);
    if (meta) p->image.number = (int64_t)meta->timestamp;
}

static struct timespec deadline_after(int64_t nanoseconds) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    t.tv_sec += nanoseconds / 1000000000;
    t.tv_nsec += nanoseconds % 1000000000;
    if (t.tv_nsec >= 1000000000) {
        t.tv_nsec -= 1000000000;
        t.tv_sec++;
    }
    return t;
}

ei_gst_result ei_gst_pull(ei_gst_pipeline *p, int64_t nanoseconds, ei_gst_image *image) {
    signals *s = p->signals;
    struct timespec deadline = deadline_after(nanoseconds);
    ei_gst_result result = EI_GST_IMAGE;
    int late = 0;
    while (!p->sample) {
        // The state is read before the queue, so that what arrives in between is not lost, and images that precede an end or error come
        // first.
        pthread_mutex_lock(&s->lock);
        uint64_t events = s->events;
        int stopped = s->stopped, ended = s->ended, all_ended = s->all_ended, failed = s->error != NULL;
        pthread_mutex_unlock(&s->lock);
        if (stopped) return EI_GST_STOPPED;
        GstSample *sample = ei_gst.gst_app_sink_try_pull_sample(p->sink, 0);
        if (sample) {
            hold(p, sample);
            break;
        }
        if (failed) return EI_GST_FAILED;
        // Another branch may still write a file, which closing would cut off.
        if (all_ended || (ended && late)) return EI_GST_END;
        if (late) return EI_GST_TIMEOUT;
        pthread_mutex_lock(&s->lock);
        while (s->events == events && !late) late = pthread_cond_timedwait(&s->changed, &s->lock, &deadline) == ETIMEDOUT;
        pthread_mutex_unlock(&s->lock);
    }
    *image = p->image;
    return result;
}

void ei_gst_drop(ei_gst_pipeline *p) {
    unref(p->sample);
    p->sample = NULL;
}

GstSample *ei_gst_take(ei_gst_pipeline *p, ei_gst_image *image) {
    GstSample *sample = p->sample;
    p->sample = NULL;
    *image = p->image;
    return sample;
}

static int copy_held(ei_gst_pipeline *p, unsigned char *to, size_t size, size_t stride) {
    GstBuffer *buffer = p->sample ? ei_gst.gst_sample_get_buffer(p->sample) : NULL;
    ei_planes planes;
    if (!buffer || ei_default_planes(&p->image, &planes) || ei_own_planes(buffer, &p->image, &planes)) return -1;
    ei_gst_map map;
    if (!ei_gst.gst_buffer_map(buffer, (GstMapInfo *)&map, EI_GST_MAP_READ)) return -1;
    int result = ei_copy_planes(&planes, &map, p->levels, to, size, stride);
    ei_gst.gst_buffer_unmap(buffer, (GstMapInfo *)&map);
    return result;
}

int ei_gst_copy(ei_gst_pipeline *p, unsigned char *to, size_t size, size_t stride) {
    int result = copy_held(p, to, size, stride);
    ei_gst_drop(p);
    return result;
}

int64_t ei_gst_duration(ei_gst_pipeline *p) {
    int64_t duration = 0;
    if (!ei_gst.gst_element_query_duration(p->element, EI_GST_FORMAT_TIME, &duration) || duration < 0) return 0;
    return duration;
}

ei_gst_pushed ei_gst_push(ei_gst_pipeline *p, const unsigned char *data, size_t size, int64_t time, int64_t number) {
    if (!p->source) return EI_GST_NO_SOURCE;
    signals *s = p->signals;
    pthread_mutex_lock(&s->lock);
    while (!s->hungry && !s->stopped && !s->ended_input && !s->error) pthread_cond_wait(&s->changed, &s->lock);
    int hungry = s->hungry && !s->stopped && !s->ended_input && !s->error;
    s->hungry = 0;
    pthread_mutex_unlock(&s->lock);
    if (!hungry) return EI_GST_REFUSED;
    GstBuffer *buffer = ei_gst.gst_buffer_new_allocate(NULL, size, NULL);
    if (!buffer) return EI_GST_REFUSED;
    ei_gst.gst_buffer_fill(buffer, 0, data, size);
    ((ei_gst_buffer *)buffer)->pts = time < 0 ? UINT64_MAX : (uint64_t)time;
    if (number >= 0) ei_gst.gst_buffer_add_reference_timestamp_meta(buffer, p->numbers, (uint64_t)number, UINT64_MAX);
    return ei_gst.gst_app_src_push_buffer(p->source, buffer) == EI_GST_FLOW_OK ? EI_GST_PUSHED : EI_GST_REFUSED;
}

ei_gst_pushed ei_gst_push_end(ei_gst_pipeline *p) {
    if (!p->source) return EI_GST_NO_SOURCE;
    pthread_mutex_lock(&p->signals->lock);
    p->signals->ended_input = 1;
    wake(p->signals);
    pthread_mutex_unlock(&p->signals->lock);
    return ei_gst.gst_app_src_end_of_stream(p->source) == EI_GST_FLOW_OK ? EI_GST_PUSHED : EI_GST_REFUSED;
}

void ei_gst_stop(ei_gst_pipeline *p) {
    pthread_mutex_lock(&p->signals->lock);
    p->signals->stopped = 1;
    wake(p->signals);
    pthread_mutex_unlock(&p->signals->lock);
}

void ei_gst_close(ei_gst_pipeline *p) {
    ei_gst_stop(p);
    ei_gst_drop(p);
    unref(p->caps);
    ei_gst.gst_element_set_state(p->element, EI_GST_STATE_NULL);
    unref(p->numbers);
    ei_gst.gst_bus_set_sync_handler(p->bus, NULL, NULL, NULL);
    ei_gst.gst_object_unref(p->bus);
    ei_gst.gst_object_unref(p->sink);
    if (p->source) ei_gst.gst_object_unref(p->source);
    ei_gst.gst_object_unref(p->element);
    signals_unref(p->signals);
    free(p);
}
