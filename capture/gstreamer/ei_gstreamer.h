// GStreamer pipelines for Go. The libraries are loaded at run time. No function prints; no C code calls into Go.
#pragma once

#include <stddef.h>
#include <stdint.h>

// Why something failed. The texts are the caller's to clear; they are NULL where there is none. They may contain addresses with passwords.
typedef struct ei_gst_error {
    char *domain;   // GError domain, for example gst-resource-error-quark
    int code;       // in that domain
    char *element;  // name of the element that failed
    char *message;
    char *debug;  // the element's additional information
    char *caps;   // what the appsink is offered, if it cannot take it
} ei_gst_error;

void ei_gst_error_clear(ei_gst_error *error);

// ei_gst_load loads and initializes GStreamer, once per process, and returns 0, or -1 with a message; later calls then try again. The
// names of the libraries are appended to prefix, which is empty except in tests.
int ei_gst_load(const char *prefix, ei_gst_error *error);

// ei_gst_silence drops the messages that GLib and GStreamer write to standard error, now or when they are loaded. GLib allows one writer
// per process, so nothing else may set one.
void ei_gst_silence(void);

// ei_gst_version returns "GStreamer 1.22.0" to be freed, NULL before ei_gst_load.
char *ei_gst_version(void);

// ei_gst_has_element reports whether an element is installed, and has a property unless that is NULL. GStreamer must be loaded.
int ei_gst_has_element(const char *element, const char *property);

// ei_gst_load_error returns why the plugin of an element that is installed cannot be loaded, to be freed, or NULL. GStreamer must be
// loaded.
char *ei_gst_load_error(const char *element);

typedef struct ei_gst_pipeline ei_gst_pipeline;

typedef enum ei_gst_format {
    EI_GST_OTHER,
    EI_GST_BGR,
    EI_GST_BGRX,
    EI_GST_NV12,
    EI_GST_I420,  // copied as NV12
    EI_GST_YUY2,
    EI_GST_GRAY8
} ei_gst_format;

// The newest image of a pipeline.
typedef struct ei_gst_image {
    ei_gst_format format;
    int width, height;      // pixels, as the stream claims; ei_gst_copy checks them against the memory
    int fps_n, fps_d;       // 0/1 if unknown
    int64_t position;       // stream time in nanoseconds, -1 if unknown
    int64_t number;         // that ei_gst_push gave the data, -1 if unknown
    int device_memory;      // the pixels are in memory of a device, such as NVMM
    const char *caps_name;  // name of the pixel format, or of the media type if it is no raw video; valid until the next pull
} ei_gst_image;

typedef enum ei_gst_result {
    EI_GST_IMAGE,
    EI_GST_END,
    EI_GST_FAILED,   // ei_gst_failure returns the reason
    EI_GST_TIMEOUT,  // no image in time
    EI_GST_STOPPED,
} ei_gst_result;

// ei_gst_open parses and starts a pipeline with an appsink; NULL with a reason if it fails. It does not wait for an image.
ei_gst_pipeline *ei_gst_open(const char *description, ei_gst_error *error);

// ei_gst_pull waits for an image, which is then held until ei_gst_copy or ei_gst_drop; an image that is held is returned again. One thread
// at a time may pull, copy and drop.
ei_gst_result ei_gst_pull(ei_gst_pipeline *pipeline, int64_t nanoseconds, ei_gst_image *image);

// ei_gst_copy copies the held image to rows of stride bytes and drops it: I420 as NV12, and NV12 and I420 with levels of the full range as
// those of the limited range, which engines read. It returns -1 if the memory of either side is too small.
int ei_gst_copy(ei_gst_pipeline *pipeline, unsigned char *to, size_t size, size_t stride);
void ei_gst_drop(ei_gst_pipeline *pipeline);

// ei_gst_failure returns the first error of the pipeline, or nothing.
void ei_gst_failure(ei_gst_pipeline *pipeline, ei_gst_error *error);

// ei_gst_duration returns the length in nanoseconds, 0 if unknown.
int64_t ei_gst_duration(ei_gst_pipeline *pipeline);

typedef enum ei_gst_pushed { EI_GST_PUSHED, EI_GST_REFUSED, EI_GST_NO_SOURCE } ei_gst_pushed;

// ei_gst_push waits until the pipeline's appsrc has nothing left, copies data to it and returns EI_GST_PUSHED; EI_GST_REFUSED if the
// pipeline has failed, ended or stopped. ei_gst_push_end ends the stream. Time is in nanoseconds, negative if unknown. Most
// elements pass the number on to the image, unless it is negative. One thread at a time may push, also while another one pulls.
ei_gst_pushed ei_gst_push(ei_gst_pipeline *pipeline, const unsigned char *data, size_t size, int64_t time, int64_t number);
ei_gst_pushed ei_gst_push_end(ei_gst_pipeline *pipeline);

// ei_gst_stop makes the current and every later pull and push return at once. It may be called by any thread while the pipeline is open.
void ei_gst_stop(ei_gst_pipeline *pipeline);

// ei_gst_close stops and frees the pipeline. It waits for the elements, some of which may hang in a driver.
void ei_gst_close(ei_gst_pipeline *pipeline);
