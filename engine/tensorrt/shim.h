// The C interface of package tensorrt: TensorRT loaded by dlopen, behind opaque handles. Every function that can fail returns 0 or a code
// of ei_code and fills the caller's ei_error. Functions do not print, exit, abort or call back into Go, and no exception leaves them. One
// thread at a time uses a handle, unless a comment states otherwise.
#pragma once

#include <stddef.h>
#include <stdint.h>

#include "../cuda/ei_cuda.h"

#ifdef __cplusplus
extern "C" {
#endif

enum ei_code {
    EI_OK = 0,
    EI_LOAD = 1,         // a library could not be loaded or is not TensorRT
    EI_UNSUPPORTED = 2,  // this version does not support the request, or the shim does not support the model
    EI_PLAN = 3,         // the plan was rejected
    EI_CUDA = 4,         // the driver returned an error
    EI_TENSORRT = 5,     // TensorRT returned an error
    EI_MODEL = 6,        // the ONNX file was rejected
    EI_SHAPE = 7,
    EI_CANCELLED = 8,
    EI_MEMORY = 9,
    EI_FILE = 10,
    EI_ARGUMENT = 11,
    EI_LEAN = 12,     // the library can only run plans
    EI_CONTEXT = 13,  // the driver returned an error after which the GPU needs a new process
};

enum {
    EI_MAX_TENSORS = 32,     // inputs and outputs together
    EI_MAX_BATCH = 64,       // images per request
    EI_MAX_ARGUMENTS = 256,  // bytes of a kernel's argument struct
};

typedef struct ei_error {
    int code;
    char message[512];
} ei_error;

// ---- libraries

typedef struct ei_library ei_library;

typedef struct ei_version {
    int number;  // as getInferLibVersion returns it
    int major, minor, patch, build;
    int builder;  // 1 if the library can build, 0 for the lean and dispatch runtimes
    int parser;   // 1 if an ONNX parser was loaded
    int plugin;   // 1 if the plugins were loaded
    char path[512], parser_path[512], plugin_path[512];
} ei_version;

// ei_library_open loads TensorRT from a file name or path. parser and plugin may be NULL or empty: then the ones next to it are loaded. A
// missing parser or plugin library is not an error; why contains the loader's message. threshold is the highest severity number that the
// log keeps (2 warnings, 3 information, 4 everything). The CUDA driver must be initialized first.
//
// There is no close, because TensorRT keeps the first logger, exit handlers and threads: a library and its handle remain until the process
// ends. Opening the same file again returns the same handle. Any thread.
int ei_library_open(const char *path, const char *parser, const char *plugin, int threshold, ei_library **library, ei_version *version,
                    char *why, size_t why_size, ei_error *error);
// ei_library_plugin loads a shared object with further operators, which stay registered until the process ends; loading it again has no
// effect. path is absolute. Returns EI_LOAD if the loader fails, EI_UNSUPPORTED if the plugin is not for this TensorRT.
int ei_library_plugin(ei_library *library, const char *path, ei_error *error);
// ei_library_log moves log lines "<severity> <message>\n" into text and returns the number of bytes; lost is the number of overwritten
// lines. Any thread.
size_t ei_library_log(ei_library *library, char *text, size_t size, uint64_t *lost);

// ---- engines

typedef struct ei_engine ei_engine;

typedef struct ei_tensor {
    const char *name;  // owned by the engine
    int type;          // TensorRT's DataType
    int input;         // 1 input, 0 output
    int host;          // 1 for a shape tensor in host memory
    int rank;
    int64_t shape[8];                // -1 for dynamic dimensions
    int64_t min[8], opt[8], max[8];  // inputs: shapes of the profile
} ei_tensor;

typedef struct ei_engine_info {
    int tensors, profiles, layers;
    int dla_cores;
    int64_t device_memory;  // bytes of one context's activations
} ei_engine_info;

// ei_engine_open deserializes a plan. dla is the DLA core or -1. host_code allows version-compatible plans to run embedded host code.
int ei_engine_open(ei_library *library, ei_cuda_context context, const void *plan, size_t size, int profile, int dla, int host_code,
                   ei_engine **engine, ei_engine_info *info, ei_error *error);
int ei_engine_tensor(ei_engine *engine, int index, ei_tensor *tensor, ei_error *error);
// ei_engine_layers writes the inspector's JSON and returns its length, which may exceed size; 0 if there is no inspector.
size_t ei_engine_layers(ei_engine *engine, char *text, size_t size);
void ei_engine_close(ei_engine *engine);

// ---- slots: one execution context with its stream, memory and graphs

typedef struct ei_slot ei_slot;

// ei_image is one image of a request, set before ei_slot_submit.
typedef struct ei_image {
    const void *host;         // pinned memory to copy from first; NULL if the kernel reads the image in place
    ei_cuda_pointer staging;  // destination of the copy
    size_t bytes;
    ei_cuda_event ready;       // the kernel may read the image after it; NULL if at once
    ei_cuda_kernel letterbox;  // arguments points to the field below
    unsigned char arguments[EI_MAX_ARGUMENTS];
} ei_image;

// ei_filter runs after the network and writes a short list of candidates in place of the whole outputs.
typedef struct ei_filter {
    int enabled;
    ei_cuda_pointer clear;  // words to clear before the kernel
    size_t clear_words;
    ei_cuda_kernel kernel;  // arguments points to the field below
    unsigned char arguments[EI_MAX_ARGUMENTS];
    ei_cuda_pointer list;  // copied to list_host after the kernel
    void *list_host;
    size_t list_bytes;
} ei_filter;

// ei_io is a tensor of a slot. The caller sets the shapes of inputs before a submit and reads the shapes and data of outputs after a wait.
typedef struct ei_io {
    void *host;              // pinned
    ei_cuda_pointer device;  // the network's address
    size_t capacity;         // bytes
    size_t element;          // bytes per element
    int rank;
    int64_t shape[8];
} ei_io;

// ei_request is the memory of a slot that Go and C share. It lives as long as the slot.
typedef struct ei_request {
    int images;  // 0 for a request with tensors
    ei_image image[EI_MAX_BATCH];
    ei_filter filter;
    ei_io io[EI_MAX_TENSORS];  // in the engine's order
    // Set by C: CLOCK_MONOTONIC nanoseconds, device nanoseconds, and whether a graph ran.
    int64_t submitted, done;
    int64_t preprocess, inference, filtering;
    int replayed;
    ei_error error;  // of the last submit or wait, so that Go need not pass its own memory
    // The first failure of graph capture, for the log; empty if there was none.
    char graph_refusal[256];
} ei_request;

// ei_wait selects how ei_slot_wait waits: EI_WAIT_ADAPT sleeps for the shortest duration of this slot's requests and spins for the rest,
// EI_WAIT_SPIN spins, EI_WAIT_BLOCK waits for the driver's interrupt.
enum ei_wait { EI_WAIT_ADAPT = 0, EI_WAIT_SPIN = 1, EI_WAIT_BLOCK = 2 };

typedef struct ei_slot_options {
    int mapped;   // 1: outputs in mapped host memory, 0: device memory and copies
    int graph;    // 1: replay CUDA graphs
    int wait;     // one of ei_wait
    int profile;  // optimization profile
    int discard;  // 1: outputs of images stay on the device for the filter
} ei_slot_options;

int ei_slot_open(ei_engine *engine, const ei_slot_options *options, ei_slot **slot, ei_request **request, ei_error *error);
// ei_slot_submit starts the request in ei_request without waiting.
int ei_slot_submit(ei_slot *slot, ei_error *error);
// ei_slot_wait waits for the request and sets the shapes of the outputs.
int ei_slot_wait(ei_slot *slot, ei_error *error);
// ei_slot_profile repeats the network of the slot's last request with layer timing and writes lines "<milliseconds> <layer>\n" with an
// empty line after each run. Returns the length it needs, or 0 with the error set.
size_t ei_slot_profile(ei_slot *slot, int runs, char *text, size_t size, ei_error *error);
void ei_slot_close(ei_slot *slot);

// ---- building

typedef struct ei_shape {
    char name[256];
    int rank;
    int64_t min[8], opt[8], max[8];
} ei_shape;

// ei_progress is written by the builder and may be read by another thread at any time with the functions below: its fields are atomic or
// locked. Initialize it with zeros.
typedef struct ei_progress {
    int cancel;       // atomic
    int locked;       // atomic; guards the rest
    int step, steps;  // of the outermost phase
    char phase[256];
} ei_progress;

typedef struct ei_build_options {
    int fp16, int8, strongly_typed;
    int version_compatible, hardware_compatible;
    int level;         // builder optimization level, -1 for TensorRT's default
    size_t workspace;  // bytes, 0 for TensorRT's default
    int dla;           // DLA core, -1 for none
    // For inputs without an own shape: the range of a dynamic first dimension, and the size of an image input with dynamic height and
    // width.
    int64_t batch[3];
    int64_t height, width;
    int shapes;
    ei_shape shape[EI_MAX_TENSORS];
    // INT8 without Q/DQ nodes: a calibration cache of TensorRT and whether it is of the min-max calibrator; may be empty.
    int minmax;
    char calibration_cache[512];
    // The output tensors of the layers that stay in floating point in spite of calibration: zero-terminated names and one more zero, or
    // NULL. Owned by the caller until ei_build returns.
    const char *unquantized;
    // Read if it exists, written after the build; may be empty.
    char timing_cache[512];
} ei_build_options;

typedef struct ei_plan {
    void *memory;  // owned by the library
    const void *data;
    size_t size;
    int layers;
    int64_t nanoseconds;
} ei_plan;

// ei_build parses an ONNX file and builds a plan, which ei_plan_free frees. Unsupported options return EI_UNSUPPORTED.
int ei_build(ei_library *library, ei_cuda_context context, const void *model, size_t size, const char *path,
             const ei_build_options *options, ei_progress *progress, ei_plan *plan, ei_error *error);
void ei_plan_free(ei_plan *plan);
// ei_progress_read copies the builder's progress. It spins for a few instructions at most.
void ei_progress_read(ei_progress *progress, ei_progress *copy);
// ei_progress_cancel requests the builder to stop.
void ei_progress_cancel(ei_progress *progress);

// ei_offer is what the library supports on a device. asked_builder is set if a builder was created, which takes seconds and much memory;
// without it fast_fp16 and fast_int8 are 0.
typedef struct ei_offer {
    int dla_cores;
    int asked_builder, fast_fp16, fast_int8;
} ei_offer;
int ei_library_describe(ei_library *library, ei_cuda_context context, int ask_builder, ei_offer *offer, ei_error *error);

#ifdef __cplusplus
}
#endif
