// The C side of package tensorrt: TensorRT by dlopen behind opaque handles. Every function that can fail returns 0 or a code of ei_code and
// then fills the caller's ei_error. Nothing here prints, exits, aborts or calls back into Go; no exception leaves a function. Handles are
// used by one thread at a time, except where a comment says otherwise.
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
    EI_UNSUPPORTED = 2,  // this release cannot do what was asked, or the model needs what the shim lacks
    EI_PLAN = 3,         // the plan was refused
    EI_CUDA = 4,         // the driver refused a call
    EI_TENSORRT = 5,     // TensorRT refused a call
    EI_MODEL = 6,        // the ONNX file was refused
    EI_SHAPE = 7,
    EI_CANCELLED = 8,
    EI_MEMORY = 9,
    EI_FILE = 10,
    EI_ARGUMENT = 11,
    EI_LEAN = 12,  // the library only runs plans
};

enum {
    EI_MAX_TENSORS = 32,     // inputs and outputs together
    EI_MAX_BATCH = 64,       // images of one request
    EI_MAX_ARGUMENTS = 256,  // bytes of a kernel's argument struct
};

typedef struct ei_error {
    int code;
    char message[512];
} ei_error;

// ---- libraries

typedef struct ei_library ei_library;

typedef struct ei_version {
    int number;  // as getInferLibVersion gives it
    int major, minor, patch, build;
    int builder;  // 1 when the library can build, 0 for the lean and dispatch runtimes
    int parser;   // 1 when an ONNX parser was loaded
    int plugin;   // 1 when the plugins were loaded
    char path[512], parser_path[512], plugin_path[512];
} ei_version;

// ei_library_open loads TensorRT from a file name or path; parser and plugin may be NULL or empty for the ones beside it. A missing parser
// or plugin library is no error: why holds the loader's words. threshold is the gravest severity number that the log keeps (2 warnings,
// 3 information, 4 everything). The CUDA driver must be initialized first.
//
// There is no close: TensorRT keeps the logger it was first given, exit handlers and threads, so a loaded library and its handle last as
// long as the process. Opening the same file again gives the same handle. Any thread.
int ei_library_open(const char *path, const char *parser, const char *plugin, int threshold, ei_library **library, ei_version *version,
                    char *why, size_t why_size, ei_error *error);
// ei_library_plugin loads a shared object with further operators, which stay registered as long as the process lives; one that is loaded
// stays as it is. path is absolute. EI_LOAD when the loader refuses it, EI_UNSUPPORTED when it is not for this TensorRT.
int ei_library_plugin(ei_library *library, const char *path, ei_error *error);
// ei_library_log moves log lines "<severity> <message>\n" into text and returns their bytes; lost counts lines that were overwritten.
// Any thread.
size_t ei_library_log(ei_library *library, char *text, size_t size, uint64_t *lost);

// ---- engines

typedef struct ei_engine ei_engine;

typedef struct ei_tensor {
    const char *name;  // the engine's
    int type;          // DataType as TensorRT numbers it
    int input;         // 1 input, 0 output
    int host;          // 1 when the network wants it in host memory: a shape tensor
    int rank;
    int64_t shape[8];                // -1 where it varies
    int64_t min[8], opt[8], max[8];  // inputs: the profile's shapes
} ei_tensor;

typedef struct ei_engine_info {
    int tensors, profiles, layers;
    int dla_cores;
    int64_t device_memory;  // bytes one context needs for its activations
} ei_engine_info;

// ei_engine_open deserializes a plan. dla is the DLA core or -1. host_code allows version-compatible plans to run the code they carry.
int ei_engine_open(ei_library *library, ei_cuda_context context, const void *plan, size_t size, int profile, int dla, int host_code,
                   ei_engine **engine, ei_engine_info *info, ei_error *error);
int ei_engine_tensor(ei_engine *engine, int index, ei_tensor *tensor, ei_error *error);
// ei_engine_layers writes the inspector's JSON; it returns the length it needs, which may be more than size, 0 when there is no inspector.
size_t ei_engine_layers(ei_engine *engine, char *text, size_t size);
void ei_engine_close(ei_engine *engine);

// ---- slots: one execution context with its stream, memory and graphs

typedef struct ei_slot ei_slot;

// ei_image is one image of a request. Go fills it before ei_slot_submit.
typedef struct ei_image {
    const void *host;         // pinned memory to copy from first; NULL when the kernel reads the image where it is
    ei_cuda_pointer staging;  // where to
    size_t bytes;
    ei_cuda_kernel letterbox;  // arguments point to the field below
    unsigned char arguments[EI_MAX_ARGUMENTS];
} ei_image;

// ei_filter runs after the network and leaves a short list of candidates instead of the whole outputs.
typedef struct ei_filter {
    int enabled;
    ei_cuda_pointer clear;  // words to zero before the kernel
    size_t clear_words;
    ei_cuda_kernel kernel;  // arguments point to the field below
    unsigned char arguments[EI_MAX_ARGUMENTS];
    ei_cuda_pointer list;  // copied to list_host after the kernel
    void *list_host;
    size_t list_bytes;
} ei_filter;

// ei_io is a tensor of a slot. Go writes shape of the inputs before a submit and reads shape and data of the outputs after a wait.
typedef struct ei_io {
    void *host;              // pinned
    ei_cuda_pointer device;  // the address that the network was given
    size_t capacity;         // bytes
    size_t element;          // bytes of one element
    int rank;
    int64_t shape[8];
} ei_io;

// ei_request is the part of a slot that Go and C both touch. It lives as long as the slot.
typedef struct ei_request {
    int images;  // 0 for a request of tensors
    ei_image image[EI_MAX_BATCH];
    ei_filter filter;
    ei_io io[EI_MAX_TENSORS];  // in the engine's order
    // Written by C: CLOCK_MONOTONIC nanoseconds, device nanoseconds, and whether a graph ran.
    int64_t submitted, done;
    int64_t preprocess, inference, filtering;
    int replayed;
    ei_error error;  // of the last submit or wait, so that Go need not pass memory of its own
    // The first refusal of graph capture, for the log; empty when none.
    char graph_refusal[256];
} ei_request;

// ei_wait is how ei_slot_wait passes the time. EI_WAIT_ADAPT sleeps for as long as requests of this slot have been known to take at least
// and waits busily for the rest, EI_WAIT_SPIN is always busy, EI_WAIT_BLOCK leaves it to the driver's interrupt.
enum ei_wait { EI_WAIT_ADAPT = 0, EI_WAIT_SPIN = 1, EI_WAIT_BLOCK = 2 };

typedef struct ei_slot_options {
    int mapped;   // 1: inputs and outputs in mapped host memory, 0: device memory and copies
    int graph;    // 1: replay CUDA graphs
    int wait;     // one of ei_wait
    int profile;  // optimization profile
    int image;  // index of the input that the letterbox writes, -1 for none
    int discard;  // 1: outputs of images stay on the device, where the filter reads them
} ei_slot_options;

int ei_slot_open(ei_engine *engine, const ei_slot_options *options, ei_slot **slot, ei_request **request, ei_error *error);
// ei_slot_submit starts the request that ei_request describes. It does not wait.
int ei_slot_submit(ei_slot *slot, ei_error *error);
// ei_slot_wait blocks until the request is done and fills the outputs' shapes.
int ei_slot_wait(ei_slot *slot, ei_error *error);
// ei_slot_profile runs the network of the slot's last request several times again, layer by layer, and writes lines
// "<milliseconds> <layer>\n", an empty line after each run. It returns the length it needs, or 0 with the error filled.
size_t ei_slot_profile(ei_slot *slot, int runs, char *text, size_t size, ei_error *error);
void ei_slot_close(ei_slot *slot);

// ---- building

typedef struct ei_shape {
    char name[256];
    int rank;
    int64_t min[8], opt[8], max[8];
} ei_shape;

// ei_progress is written by the builder while it works and read by another thread at any time, by the functions below alone: what is in it
// is atomic or under its lock. It begins as zeros.
typedef struct ei_progress {
    int cancel;       // atomic
    int locked;       // atomic; guards the rest
    int step, steps;  // of the outermost phase
    char phase[256];
} ei_progress;

typedef struct ei_build_options {
    int fp16, int8, strongly_typed;
    int version_compatible, hardware_compatible;
    int level;         // builder optimization level, -1 for the library's default
    size_t workspace;  // bytes, 0 for the library's default
    int dla;           // core, -1 for none
    // For inputs without a shape of their own: the range of a free first dimension, and the sides of an image input that leaves them open.
    int64_t batch[3];
    int64_t height, width;
    int shapes;
    ei_shape shape[EI_MAX_TENSORS];
    // INT8 without Q/DQ nodes: a file of calibration batches (see Calibration) and a cache file, each may be empty.
    int minmax;
    char calibration[512], calibration_cache[512];
    // The results of the layers that stay in floating point beside calibrated ones: names with their final zeros and one more zero. NULL
    // for none. The caller's, needed until ei_build returns.
    const char *unquantized;
    // Read when it exists, written after the build; may be empty.
    char timing_cache[512];
} ei_build_options;

typedef struct ei_plan {
    void *memory;  // the library's
    const void *data;
    size_t size;
    int layers;
    int64_t nanoseconds;
} ei_plan;

// ei_build parses an ONNX file and builds a plan; plan is freed by ei_plan_free. options that the release lacks are EI_UNSUPPORTED.
int ei_build(ei_library *library, ei_cuda_context context, const void *model, size_t size, const char *path,
             const ei_build_options *options, ei_progress *progress, ei_plan *plan, ei_error *error);
void ei_plan_free(ei_plan *plan);
// ei_progress_read copies where the builder is. It waits for nothing but a few instructions.
void ei_progress_read(ei_progress *progress, ei_progress *copy);
// ei_progress_cancel asks the builder to stop.
void ei_progress_cancel(ei_progress *progress);

// ei_offer is what the library offers on a device. asked_builder says whether the builder was asked, which takes seconds and much memory;
// without it fast_fp16 and fast_int8 are 0.
typedef struct ei_offer {
    int dla_cores;
    int asked_builder, fast_fp16, fast_int8;
} ei_offer;
int ei_library_describe(ei_library *library, ei_cuda_context context, int ask_builder, ei_offer *offer, ei_error *error);

#ifdef __cplusplus
}
#endif
