// Runs the C part with real pipelines; sanitize_test.go builds it with the sanitizers. It includes the source to reach the appsrc.
#include <assert.h>
#include <gst/app/gstappsink.h>
#include <gst/app/gstappsrc.h>
#include <gst/video/video.h>

#define EI_GST_HEADERS
#include "../library.c"
#include "../pipeline.c"
#include "../planes.c"

static const int64_t minute = 60 * 1000000000LL;

static void test_load(void) {
    ei_gst_error error = {0};
    assert(ei_gst_load("/nonexistent/", &error) != 0);
    assert(strstr(error.message, "/nonexistent/libglib-2.0.so.0"));
    ei_gst_error_clear(&error);
    assert(!ei_gst_version());
    ei_gst_silence();
    assert(ei_gst_load("", &error) == 0 && ei_gst_load("", &error) == 0);
    ei_gst_silence();
    free(ei_gst_version());
}

static void test_errors(void) {
    static const char *const descriptions[] = {
        "nosuchelement", "appsink", "videotestsrc ! fakesink", "videotestsrc ! ! appsink", "filesrc location=/nonexistent ! appsink",
    };
    for (size_t i = 0; i < sizeof(descriptions) / sizeof(descriptions[0]); i++) {
        ei_gst_error error = {0};
        assert(!ei_gst_open(descriptions[i], &error));
        assert(error.message);
        ei_gst_error_clear(&error);
    }
}

static ei_gst_pipeline *start(const char *description) {
    ei_gst_error error = {0};
    ei_gst_pipeline *p = ei_gst_open(description, &error);
    assert(p);
    return p;
}

// The memory has exactly the size of the image, so that the sanitizer sees what runs over.
static void copy(ei_gst_pipeline *p, size_t row, size_t rows) {
    unsigned char *to = malloc(row * rows);
    assert(ei_gst_copy(p, to, row * rows, row) == 0);
    free(to);
}

static void test_images(void) {
    static const struct {
        const char *format;
        int bytes, width, height;
    } cases[] = {{"BGR", 3, 63, 47},  {"BGRx", 4, 63, 47}, {"GRAY8", 1, 63, 47},
                 {"NV12", 1, 62, 46}, {"I420", 1, 62, 46}, {"YUY2", 2, 62, 47}};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char description[256];
        snprintf(description, sizeof(description), "videotestsrc num-buffers=4 ! video/x-raw,format=%s,width=%d,height=%d ! appsink",
                 cases[i].format, cases[i].width, cases[i].height);
        ei_gst_pipeline *p = start(description);
        ei_gst_image image;
        size_t row = cases[i].bytes * cases[i].width,
               rows = cases[i].height + (cases[i].bytes == 1 && cases[i].height % 2 == 0 ? cases[i].height / 2 : 0);
        assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE && image.width == cases[i].width && image.height == cases[i].height);
        copy(p, row, rows);
        assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
        unsigned char *small = malloc(row * rows - 1);
        assert(ei_gst_copy(p, small, row * rows - 1, row) == -1);
        free(small);
        assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
        ei_gst_drop(p);
        if (i % 2) {  // the others are closed with an image that is held or queued
            assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
            ei_gst_drop(p);
            assert(ei_gst_pull(p, minute, &image) == EI_GST_END);
        } else {
            assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
        }
        ei_gst_close(p);
    }
}

static const char fed[] = "appsrc format=time caps=video/x-raw,format=NV12,width=6,height=4,framerate=30/1 ! appsink sync=false";

// push_described pushes an image whose rows and planes are where its metadata says.
static void push_described(ei_gst_pipeline *p, size_t size, size_t second, int stride, guint planes) {
    GstBuffer *buffer = gst_buffer_new_allocate(NULL, size, NULL);
    GstMapInfo map;
    assert(gst_buffer_map(buffer, &map, GST_MAP_WRITE));
    for (size_t i = 0; i < size; i++) map.data[i] = i;
    gst_buffer_unmap(buffer, &map);
    gsize offset[GST_VIDEO_MAX_PLANES] = {5, second};
    gint strides[GST_VIDEO_MAX_PLANES] = {stride, stride};
    gst_buffer_add_video_meta_full(buffer, 0, GST_VIDEO_FORMAT_NV12, 6, 4, planes, offset, strides);
    assert(gst_app_src_push_buffer(p->source, buffer) == GST_FLOW_OK);
}

static void test_described_layout(void) {
    ei_gst_pipeline *p = start(fed);
    ei_gst_image image;
    push_described(p, 100, 60, 11, 2);
    assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
    unsigned char to[36];
    assert(ei_gst_copy(p, to, sizeof(to), 6) == 0);
    for (int y = 0; y < 6; y++) {
        for (int x = 0; x < 6; x++) assert(to[y * 6 + x] == (y < 4 ? 5 + 11 * y : 60 + 11 * (y - 4)) + x);
    }
    // The second plane begins behind the end, ends behind it, or rows overlap or go backwards, or a plane is missing.
    static const struct {
        size_t second;
        int stride;
        guint planes;
    } bad[] = {{101, 11, 2}, {84, 11, 2}, {(size_t)-1, 11, 2}, {60, 5, 2}, {60, -11, 2}, {60, 11, 1}, {60, 0x7fffffff, 2}};
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        push_described(p, 100, bad[i].second, bad[i].stride, bad[i].planes);
        assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE);
        assert(ei_gst_copy(p, to, sizeof(to), 6) == -1);
    }
    ei_gst_close(p);
}

static void *stop(void *p) {
    ei_gst_stop(p);
    return NULL;
}

static void test_push_and_stop(void) {
    ei_gst_pipeline *p = start(fed);
    ei_gst_image image;
    unsigned char data[40] = {0};
    assert(ei_gst_pull(p, 1000, &image) == EI_GST_TIMEOUT);
    assert(ei_gst_push(p, data, sizeof(data), 0, 7) == EI_GST_PUSHED);
    assert(ei_gst_pull(p, minute, &image) == EI_GST_IMAGE && image.position == 0 && image.number == 7);
    ei_gst_drop(p);
    pthread_t thread;
    assert(!pthread_create(&thread, NULL, stop, p));
    assert(ei_gst_pull(p, 1440 * minute, &image) == EI_GST_STOPPED);
    assert(!pthread_join(thread, NULL));
    ei_gst_close(p);
    p = start(fed);
    assert(ei_gst_push_end(p) == EI_GST_PUSHED && ei_gst_pull(p, minute, &image) == EI_GST_END);
    assert(ei_gst_push(p, data, sizeof(data), -1, -1) == EI_GST_REFUSED);
    ei_gst_close(p);
}

static void test_failure(void) {
    ei_gst_pipeline *p = start("videotestsrc ! video/x-raw,format=Y42B ! appsink");
    ei_gst_image image;
    ei_gst_error error = {0};
    assert(ei_gst_pull(p, minute, &image) == EI_GST_FAILED);
    ei_gst_failure(p, &error);
    assert(error.caps && !strcmp(error.caps, "Y42B") && error.element && error.debug);
    ei_gst_error_clear(&error);
    ei_gst_close(p);
}

int main(void) {
    test_load();
    for (int i = 0; i < 3; i++) {
        test_errors();
        test_images();
        test_described_layout();
        test_push_and_stop();
        test_failure();
    }
    return 0;
}
