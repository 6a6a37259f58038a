// A CUDA driver for tests: device memory is host memory, streams run at once, kernels are host functions. It checks handles and contexts,
// charges everything that is not freed to the device's memory, and fails as FAKE_CUDA specifies. Compiled by fake.Build; FAKE_CUDA_VERSION
// omits the functions that a driver of that version lacks.
//
// FAKE_CUDA         comma-separated settings, read at every call: init=CODE devices=N version=V integrated=0|1 map=0|1 register=0|1
//                   capability=87 memory=BYTES fail=FUNCTION:CODE or fail=FUNCTION:CODE:N (from the Nth call of the process on)
// FAKE_CUDA_LOG     file that gets one line per call
// FAKE_CUDA_KERNELS shared object with a function NAME_launch(arguments, size, grid, block) for each kernel NAME
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef FAKE_CUDA_VERSION
#define FAKE_CUDA_VERSION 12020
#endif

#define API __attribute__((visibility("default")))

enum {
    SUCCESS = 0,
    INVALID_VALUE = 1,
    OUT_OF_MEMORY = 2,
    NOT_INITIALIZED = 3,
    INVALID_DEVICE = 101,
    INVALID_IMAGE = 200,
    INVALID_CONTEXT = 201,
    UNSUPPORTED_LIMIT = 215,
    INVALID_HANDLE = 400,
    NOT_FOUND = 500,
    NOT_READY = 600,
    LAUNCH_FAILED = 719,
    CAPTURE_UNSUPPORTED = 900,
    CAPTURE_INVALIDATED = 901,
    UPDATE_FAILURE = 910,
};
enum { MAX_DEVICES = 8, MAX_BLOCKS = 65536, OBJECT_COST = 4096, MAX_NODES = 4096, MAX_ARGUMENTS = 4096 };

typedef unsigned long long pointer;
typedef int (*launcher)(const void *arguments, size_t size, const unsigned *grid, const unsigned *block);
typedef struct context {
    int device, retained;
    size_t limits[3];  // of the stack, printf's buffer and malloc's heap
} context;
typedef struct module {
    char *text;
} module;
typedef struct function {
    char name[64];
    launcher launch;
    struct function *next;
} function;
enum kind { KERNEL, COPY, FILL, CALL_HOST, RECORD, WAIT };
typedef struct event {
    int timing, recorded;
    struct timespec at;
} event;
typedef struct node {
    enum kind kind;
    function *function;
    unsigned grid[3], block[3];
    size_t size;
    unsigned char arguments[MAX_ARGUMENTS];
    void *to;
    const void *from;
    unsigned value;
    void (*host)(void *);
    void *argument;
    event *event;
} node;
typedef struct graph {
    size_t count;
    node *nodes[MAX_NODES];
} graph;
typedef struct graph_exec {
    size_t count;
    node **nodes;  // copies
    node **from;   // the graph's own, by which parameters are set
} graph_exec;
typedef struct stream {
    graph *capturing;
    int invalid;
} stream;
typedef struct kernel_parameters {
    function *function;
    unsigned grid[3], block[3], shared;
    void **arguments, **extra;
} kernel_parameters;

// Everything that was made and not freed: memory with its size, objects with OBJECT_COST.
typedef struct block {
    void *at;
    size_t bytes;
    char kind;  // d device, h host, r registered, or the first letter of an object
} block;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static block blocks[MAX_BLOCKS];
static size_t block_count;
static int initialized;
static context contexts[MAX_DEVICES];
static function *functions;
static __thread context *stack[16];
static __thread int depth;

static const char *setting(const char *key) {
    const char *text = getenv("FAKE_CUDA");
    size_t length = strlen(key);
    while (text && *text) {
        if (!strncmp(text, key, length) && text[length] == '=') return text + length + 1;
        text = strchr(text, ',');
        if (text) text++;
    }
    return NULL;
}

static long long number(const char *key, long long otherwise) {
    const char *text = setting(key);
    return text ? strtoll(text, NULL, 0) : otherwise;
}

static int scripted(const char *name) {
    static struct {
        char name[64];
        int calls;
    } counted[256];
    int calls = 0;
    for (int i = 0; i < 256; i++) {
        if (!counted[i].name[0]) snprintf(counted[i].name, sizeof(counted[i].name), "%s", name);
        if (!strcmp(counted[i].name, name)) {
            calls = ++counted[i].calls;
            break;
        }
    }
    const char *fail = setting("fail");
    size_t length = strlen(name);
    if (!fail || strncmp(fail, name, length) || fail[length] != ':') return 0;
    char *rest;
    int code = (int)strtol(fail + length + 1, &rest, 10);
    return *rest == ':' && calls < strtol(rest + 1, NULL, 10) ? 0 : code;
}

static void record_call(const char *name, const char *detail) {
    const char *path = getenv("FAKE_CUDA_LOG");
    FILE *log = path ? fopen(path, "a") : NULL;
    if (!log) return;
    fprintf(log, detail[0] ? "%s %s\n" : "%s\n", name, detail);
    fclose(log);
}

static int enter(const char *name, const char *detail) {
    pthread_mutex_lock(&lock);
    record_call(name, detail);
    int code = scripted(name);
    if (!code && !initialized) code = NOT_INITIALIZED;
    pthread_mutex_unlock(&lock);
    return code;
}

static context *current(void) { return depth ? stack[depth - 1] : NULL; }

#define ENTER_ANY(detail)                      \
    do {                                       \
        int code_ = enter(__func__, (detail)); \
        if (code_) return code_;               \
    } while (0)
#define ENTER(detail)                                                   \
    do {                                                                \
        ENTER_ANY(detail);                                              \
        if (!current() || !current()->retained) return INVALID_CONTEXT; \
    } while (0)

static long long memory_size(void) { return number("memory", 8LL << 30); }

static long long used(void) {
    long long sum = 0;
    for (size_t i = 0; i < block_count; i++) sum += blocks[i].kind == 'h' || blocks[i].kind == 'r' ? 0 : (long long)blocks[i].bytes;
    return sum;
}

static int keep(void *at, size_t bytes, char kind) {
    int code = OUT_OF_MEMORY;
    pthread_mutex_lock(&lock);
    if (at && block_count < MAX_BLOCKS && (kind == 'h' || kind == 'r' || used() + (long long)bytes <= memory_size())) {
        blocks[block_count++] = (block){at, bytes, kind};
        code = SUCCESS;
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int drop(const void *at, char kind) {
    int code = kind == 'd' || kind == 'h' || kind == 'r' ? INVALID_VALUE : INVALID_HANDLE;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < block_count; i++) {
        if (blocks[i].at == at && blocks[i].kind == kind) {
            blocks[i] = blocks[--block_count];
            code = SUCCESS;
            break;
        }
    }
    pthread_mutex_unlock(&lock);
    return code;
}

static int known(const void *at, char kind) {
    int found = 0;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < block_count && !found; i++) found = blocks[i].at == at && blocks[i].kind == kind;
    pthread_mutex_unlock(&lock);
    return found;
}

// reachable reports whether the device may access the range, which must lie in one block of memory.
static int reachable(const void *at, size_t bytes) {
    int found = 0;
    uintptr_t from = (uintptr_t)at;
    pthread_mutex_lock(&lock);
    for (size_t i = 0; i < block_count && !found; i++) {
        uintptr_t start = (uintptr_t)blocks[i].at;
        found = strchr("dhr", blocks[i].kind) && from >= start && bytes <= blocks[i].bytes && from - start <= blocks[i].bytes - bytes;
    }
    pthread_mutex_unlock(&lock);
    return found;
}

static void *object(size_t bytes, char kind) {
    void *made = calloc(1, bytes);
    if (keep(made, OBJECT_COST, kind)) {
        free(made);
        return NULL;
    }
    return made;
}

// ---- start, devices, contexts

API int cuInit(unsigned flags) {
    pthread_mutex_lock(&lock);
    record_call(__func__, "");
    int code = flags ? INVALID_VALUE : (int)number("init", 0);
    initialized = code == 0;
    pthread_mutex_unlock(&lock);
    return code;
}

API int cuDriverGetVersion(int *version) {
    *version = (int)number("version", FAKE_CUDA_VERSION);
    return SUCCESS;
}

API int cuGetErrorString(int code, const char **text) {
    static const struct {
        int code;
        const char *text;
    } texts[] = {{0, "no error"},
                 {1, "invalid value"},
                 {2, "out of memory"},
                 {3, "not initialized"},
                 {34, "stub library"},
                 {46, "device busy or unavailable"},
                 {100, "no device"},
                 {101, "invalid device"},
                 {200, "invalid kernel image"},
                 {201, "invalid context"},
                 {218, "PTX does not compile"},
                 {400, "invalid handle"},
                 {500, "not found"},
                 {600, "not ready"},
                 {719, "launch failed"},
                 {900, "not allowed in a capture"},
                 {901, "capture spoilt"},
                 {910, "graph has another shape"},
                 {999, "unknown error"}};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        if (texts[i].code == code) {
            *text = texts[i].text;
            return SUCCESS;
        }
    }
    *text = NULL;
    return INVALID_VALUE;
}

static int devices(void) {
    int count = (int)number("devices", 1);
    return count < MAX_DEVICES ? count : MAX_DEVICES;
}

API int cuDeviceGetCount(int *count) {
    ENTER_ANY("");
    *count = devices();
    return SUCCESS;
}

API int cuDeviceGet(int *device, int ordinal) {
    ENTER_ANY("");
    if (ordinal < 0 || ordinal >= devices()) return INVALID_DEVICE;
    *device = ordinal;
    return SUCCESS;
}

API int cuDeviceGetName(char *name, int size, int device) {
    ENTER_ANY("");
    snprintf(name, (size_t)size, "Fake GPU %d", device);
    return SUCCESS;
}

API int cuDeviceGetUuid(unsigned char *id, int device) {
    ENTER_ANY("");
    for (int i = 0; i < 16; i++) id[i] = (unsigned char)(16 * i + device);
    return SUCCESS;
}

API int cuDeviceTotalMem_v2(size_t *bytes, int device) {
    ENTER_ANY("");
    (void)device;
    *bytes = (size_t)memory_size();
    return SUCCESS;
}

API int cuDeviceGetAttribute(int *value, int attribute, int device) {
    ENTER_ANY("");
    if (device < 0 || device >= devices()) return INVALID_DEVICE;
    int capability = (int)number("capability", 87);
    switch (attribute) {
        case 16:
            *value = 8;  // multiprocessors
            break;
        case 18:
            *value = (int)number("integrated", 0);
            break;
        case 19:
            *value = (int)number("map", 1);
            break;
        case 20:
            *value = (int)number("mode", 0);
            break;
        case 38:
            *value = 4 << 20;  // L2
            break;
        case 75:
            *value = capability / 10;
            break;
        case 76:
            *value = capability % 10;
            break;
        case 99:
            *value = (int)number("register", 1);
            break;
        default:
            *value = 0;
    }
    return SUCCESS;
}

static const size_t initial_limits[3] = {1 << 10, 1 << 20, 8 << 20};

API int cuDevicePrimaryCtxRetain(context **made, int device) {
    ENTER_ANY("");
    if (device < 0 || device >= devices()) return INVALID_DEVICE;
    pthread_mutex_lock(&lock);
    contexts[device].device = device;
    if (!contexts[device].retained++) memcpy(contexts[device].limits, initial_limits, sizeof(initial_limits));
    pthread_mutex_unlock(&lock);
    *made = &contexts[device];
    return SUCCESS;
}

API int cuDevicePrimaryCtxRelease_v2(int device) {
    ENTER_ANY("");
    pthread_mutex_lock(&lock);
    int code = contexts[device].retained > 0 ? SUCCESS : INVALID_CONTEXT;
    if (!code) contexts[device].retained--;
    pthread_mutex_unlock(&lock);
    return code;
}

API int cuCtxSetCurrent(context *c) {
    ENTER_ANY("");
    if (c && !c->retained) return INVALID_CONTEXT;
    if (!depth) depth = 1;
    stack[depth - 1] = c;
    return SUCCESS;
}

API int cuCtxGetCurrent(context **c) {
    ENTER_ANY("");
    *c = current();
    return SUCCESS;
}

API int cuCtxPushCurrent_v2(context *c) {
    ENTER_ANY("");
    if (!c || !c->retained || depth == 16) return INVALID_CONTEXT;
    stack[depth++] = c;
    return SUCCESS;
}

API int cuCtxPopCurrent_v2(context **c) {
    ENTER_ANY("");
    if (!depth) return INVALID_CONTEXT;
    *c = stack[--depth];
    return SUCCESS;
}

API int cuCtxSetLimit(int limit, size_t value) {
    ENTER("");
    if (limit < 0 || limit > 2) return UNSUPPORTED_LIMIT;
    current()->limits[limit] = value;
    return SUCCESS;
}

API int cuCtxGetLimit(size_t *value, int limit) {
    ENTER("");
    if (limit < 0 || limit > 2) return UNSUPPORTED_LIMIT;
    *value = current()->limits[limit];
    return SUCCESS;
}

API int cuCtxSynchronize(void) {
    ENTER("");
    return SUCCESS;
}

// ---- memory

API int cuMemGetInfo_v2(size_t *unused, size_t *total) {
    ENTER("");
    pthread_mutex_lock(&lock);
    *total = (size_t)memory_size();
    *unused = (size_t)(memory_size() - used());
    pthread_mutex_unlock(&lock);
    return SUCCESS;
}

static int allocate(void **at, size_t bytes, char kind) {
    if (!bytes) return INVALID_VALUE;
    void *made = NULL;
    // The exact size, so that the address sanitizer sees what runs over; filled, so that nothing relies on zeros.
    if ((long long)bytes > memory_size() || posix_memalign(&made, 256, bytes)) return OUT_OF_MEMORY;
    memset(made, 0xa5, bytes);
    int code = keep(made, bytes, kind);
    if (code) {
        free(made);
        return code;
    }
    *at = made;
    return SUCCESS;
}

static int release(void *at, char kind) {
    int code = drop(at, kind);
    if (!code) free(at);
    return code;
}

API int cuMemAlloc_v2(pointer *at, size_t bytes) {
    ENTER("");
    return allocate((void **)at, bytes, 'd');
}

// Managed memory is device memory whose address the host uses too.
API int cuMemAllocManaged(pointer *at, size_t bytes, unsigned flags) {
    ENTER("");
    if (flags != 1 && flags != 2) return INVALID_VALUE;
    return allocate((void **)at, bytes, 'd');
}

API int cuMemFree_v2(pointer at) {
    ENTER("");
    return release((void *)at, 'd');
}

// The handle is the address: who opens it must be in this process.
API int cuIpcGetMemHandle(unsigned char *handle, pointer at) {
    ENTER("");
    if (!known((void *)at, 'd')) return INVALID_VALUE;
    memset(handle, 0, 64);
    memcpy(handle, &at, sizeof(at));
    return SUCCESS;
}

API int cuMemHostAlloc(void **at, size_t bytes, unsigned flags) {
    ENTER("");
    if ((flags & 2) && !number("map", 1)) return 801;
    return allocate(at, bytes, 'h');
}

API int cuMemFreeHost(void *at) {
    ENTER("");
    return release(at, 'h');
}

API int cuMemHostRegister_v2(void *at, size_t bytes, unsigned flags) {
    ENTER("");
    (void)flags;
    if (!number("register", 1)) return 801;
    return known(at, 'r') ? 712 : keep(at, bytes, 'r');
}

API int cuMemHostUnregister(void *at) {
    ENTER("");
    return drop(at, 'r') ? 713 : SUCCESS;
}

API int cuMemHostGetDevicePointer_v2(pointer *device, void *at, unsigned flags) {
    ENTER("");
    if (flags || !reachable(at, 1)) return INVALID_VALUE;
    *device = (pointer)at;
    return SUCCESS;
}

// ---- streams and events

API int cuStreamCreate(stream **made, unsigned flags) {
    ENTER("");
    (void)flags;
    *made = object(sizeof(stream), 's');
    return *made ? SUCCESS : OUT_OF_MEMORY;
}

API int cuStreamCreateWithPriority(stream **made, unsigned flags, int priority) {
    (void)priority;
    return cuStreamCreate(made, flags);
}

API int cuStreamDestroy_v2(stream *s) {
    ENTER("");
    return drop(s, 's') ? INVALID_HANDLE : (free(s), SUCCESS);
}

static int idle(stream *s) {
    if (s && !known(s, 's')) return INVALID_HANDLE;
    if (!s || !s->capturing) return SUCCESS;
    s->invalid = 1;
    return CAPTURE_UNSUPPORTED;
}

API int cuStreamSynchronize(stream *s) {
    ENTER("");
    return idle(s);
}

API int cuStreamQuery(stream *s) {
    ENTER("");
    return idle(s);
}

API int cuEventCreate(event **made, unsigned flags) {
    ENTER("");
    *made = object(sizeof(event), 'e');
    if (!*made) return OUT_OF_MEMORY;
    (*made)->timing = !(flags & 2);
    return SUCCESS;
}

API int cuEventDestroy_v2(event *e) {
    ENTER("");
    return drop(e, 'e') ? INVALID_HANDLE : (free(e), SUCCESS);
}

API int cuEventSynchronize(event *e) {
    ENTER("");
    return known(e, 'e') ? SUCCESS : INVALID_HANDLE;
}

API int cuEventQuery(event *e) {
    ENTER("");
    return known(e, 'e') ? SUCCESS : INVALID_HANDLE;
}

API int cuEventElapsedTime(float *milliseconds, event *start, event *end) {
    ENTER("");
    if (!known(start, 'e') || !known(end, 'e') || !start->timing || !end->timing || !start->recorded || !end->recorded)
        return INVALID_HANDLE;
    *milliseconds = (float)(end->at.tv_sec - start->at.tv_sec) * 1e3f + (float)(end->at.tv_nsec - start->at.tv_nsec) / 1e6f;
    return SUCCESS;
}

// ---- work: run at once, or kept in the graph that the stream records

static int run(const node *n) {
    switch (n->kind) {
        case KERNEL:
            return n->function->launch ? n->function->launch(n->arguments, n->size, n->grid, n->block) : SUCCESS;
        case COPY:
            memmove(n->to, n->from, n->size);
            break;
        case FILL:
            for (size_t i = 0; i < n->size / 4; i++) ((unsigned *)n->to)[i] = n->value;
            break;
        case CALL_HOST:
            n->host(n->argument);
            break;
        case RECORD:
            clock_gettime(CLOCK_MONOTONIC, &n->event->at);
            n->event->recorded = 1;
            break;
        case WAIT:
            break;
    }
    return SUCCESS;
}

static int enqueue(stream *s, const node *work) {
    if (s && !known(s, 's')) return INVALID_HANDLE;
    if (!s || !s->capturing) return run(work);
    if (s->invalid) return CAPTURE_INVALIDATED;
    graph *g = s->capturing;
    node *copy = g->count < MAX_NODES ? malloc(sizeof(node)) : NULL;
    if (!copy) return OUT_OF_MEMORY;
    *copy = *work;
    g->nodes[g->count++] = copy;
    return SUCCESS;
}

static int copy(const void *to, const void *from, size_t bytes, stream *s, int check_to, int check_from) {
    if ((check_to && !reachable(to, bytes)) || (check_from && !reachable(from, bytes))) return INVALID_VALUE;
    node *n = calloc(1, sizeof(node));
    n->kind = COPY;
    n->to = (void *)to;
    n->from = from;
    n->size = bytes;
    int code = enqueue(s, n);
    free(n);
    return code;
}

API int cuMemcpyAsync(pointer to, pointer from, size_t bytes, stream *s) {
    ENTER("");
    return copy((void *)to, (void *)from, bytes, s, 1, 1);
}

API int cuMemcpyHtoDAsync_v2(pointer to, const void *from, size_t bytes, stream *s) {
    ENTER("");
    return copy((void *)to, from, bytes, s, 1, 0);
}

API int cuMemcpyDtoHAsync_v2(void *to, pointer from, size_t bytes, stream *s) {
    ENTER("");
    return copy(to, (void *)from, bytes, s, 0, 1);
}

API int cuMemcpyDtoDAsync_v2(pointer to, pointer from, size_t bytes, stream *s) {
    ENTER("");
    return copy((void *)to, (void *)from, bytes, s, 1, 1);
}

API int cuMemcpyHtoD_v2(pointer to, const void *from, size_t bytes) {
    ENTER("");
    return copy((void *)to, from, bytes, NULL, 1, 0);
}

API int cuMemcpyDtoH_v2(void *to, pointer from, size_t bytes) {
    ENTER("");
    return copy(to, (void *)from, bytes, NULL, 0, 1);
}

// The parameters of a two-dimensional copy. Kind 1 is host memory, 2 the device's.
typedef struct copy2d {
    size_t source_x, source_y;
    unsigned source_kind;
    const void *source_host;
    pointer source;
    void *source_array;
    size_t source_pitch;
    size_t to_x, to_y;
    unsigned to_kind;
    void *to_host;
    pointer to;
    void *to_array;
    size_t to_pitch;
    size_t length, rows;
} copy2d;

// An array, which programs cannot address.
typedef struct array {
    const char *data;
    size_t pitch;
} array;

static int copy_rows(const copy2d *c, stream *s) {
    char *to = c->to_kind == 1 ? c->to_host : (void *)c->to;
    const char *from = c->source_kind == 1 ? c->source_host : (const void *)c->source;
    size_t pitch = c->source_pitch;
    if (c->source_kind == 3) {
        const array *a = c->source_array;
        if (!known(a, 'A')) return INVALID_HANDLE;
        from = a->data;
        pitch = a->pitch;
    }
    if (pitch < c->length || c->to_pitch < c->length) return INVALID_VALUE;
    int code = SUCCESS;
    for (size_t y = 0; y < c->rows && code == SUCCESS; y++) {
        code = copy(to + y * c->to_pitch, from + y * pitch, c->length, s, c->to_kind == 2, c->source_kind == 2);
    }
    return code;
}

// ---- images of EGL, as on a Jetson

// What the stand-in for libnvbufsurface has as an EGLImage of NV12.
typedef struct egl_image {
    int tiles;
    unsigned width, height, pitch;
    char *planes[2];
} egl_image;

typedef struct egl_frame {
    void *planes[3];
    unsigned width, height, depth, pitch, plane_count, channels;
    int type, color_format, element;
} egl_frame;

typedef struct resource {
    egl_image image;
    array arrays[2];
} resource;

API int cuGraphicsEGLRegisterImage(resource **made, egl_image *image, unsigned flags) {
    ENTER("");
    if (flags || !image) return INVALID_VALUE;
    resource *r = calloc(1, sizeof(*r));
    r->image = *image;
    int code = keep(r, OBJECT_COST, 'E');
    for (int i = 0; i < 2 && !code; i++) {
        r->arrays[i] = (array){image->planes[i], image->pitch};
        code = image->tiles ? keep(&r->arrays[i], OBJECT_COST, 'A')
                            : keep(image->planes[i], (size_t)image->pitch * image->height / (i + 1), 'd');
    }
    *made = r;
    return code;
}

API int cuGraphicsResourceGetMappedEglFrame(egl_frame *frame, resource *r, unsigned index, unsigned level) {
    ENTER("");
    if (!known(r, 'E') || index || level) return INVALID_HANDLE;
    *frame = (egl_frame){
        .width = r->image.width,
        .height = r->image.height,
        .depth = 1,
        .pitch = r->image.tiles ? 0 : r->image.pitch,
        .plane_count = 2,
        .channels = 1,
        .type = !r->image.tiles,
        .color_format = 1,
        .element = 1,
    };
    for (int i = 0; i < 2; i++) frame->planes[i] = r->image.tiles ? (void *)&r->arrays[i] : r->image.planes[i];
    return SUCCESS;
}

API int cuGraphicsUnregisterResource(resource *r) {
    ENTER("");
    int code = drop(r, 'E');
    for (int i = 0; i < 2 && !code; i++) code = r->image.tiles ? drop(&r->arrays[i], 'A') : drop(r->image.planes[i], 'd');
    if (!code) free(r);
    return code;
}

API int cuMemcpy2DAsync_v2(const copy2d *c, stream *s) {
    ENTER("");
    return copy_rows(c, s);
}

API int cuMemcpy2D_v2(const copy2d *c) {
    ENTER("");
    return copy_rows(c, NULL);
}

API int cuMemsetD32Async(pointer to, unsigned value, size_t words, stream *s) {
    ENTER("");
    if (!reachable((void *)to, 4 * words)) return INVALID_VALUE;
    node *n = calloc(1, sizeof(node));
    n->kind = FILL;
    n->to = (void *)to;
    n->size = 4 * words;
    n->value = value;
    int code = enqueue(s, n);
    free(n);
    return code;
}

API int cuLaunchHostFunc(stream *s, void (*host)(void *), void *argument) {
    ENTER("");
    node *n = calloc(1, sizeof(node));
    n->kind = CALL_HOST;
    n->host = host;
    n->argument = argument;
    int code = enqueue(s, n);
    free(n);
    return code;
}

static int record_event(event *e, stream *s, int external) {
    if (!known(e, 'e')) return INVALID_HANDLE;
    node *n = calloc(1, sizeof(node));
    // Inside a capture a plain record only orders the graph's steps.
    n->kind = s && s->capturing && !external ? WAIT : RECORD;
    n->event = e;
    int code = enqueue(s, n);
    free(n);
    return code;
}

API int cuEventRecord(event *e, stream *s) {
    ENTER("");
    return record_event(e, s, 0);
}

#if FAKE_CUDA_VERSION >= 11010
API int cuEventRecordWithFlags(event *e, stream *s, unsigned flags) {
    ENTER("");
    return record_event(e, s, flags & 1);
}
#endif

API int cuStreamWaitEvent(stream *s, event *e, unsigned flags) {
    ENTER("");
    if (flags || !known(e, 'e')) return INVALID_HANDLE;
    node *n = calloc(1, sizeof(node));
    n->kind = WAIT;
    n->event = e;
    int code = enqueue(s, n);
    free(n);
    return code;
}

// ---- kernels

API int cuModuleLoadDataEx(module **made, const void *image, unsigned count, int *options, void **values) {
    ENTER("");
    if (!strstr(image, ".entry")) {
        for (unsigned i = 0; i < count; i++) {
            if (options[i] == 5) snprintf(values[i], 64, "fatal: no kernel in the text\n");
        }
        return 218;
    }
    *made = object(sizeof(module), 'm');
    if (!*made) return OUT_OF_MEMORY;
    (*made)->text = strdup(image);
    return SUCCESS;
}

API int cuModuleUnload(module *m) {
    ENTER("");
    if (drop(m, 'm')) return INVALID_HANDLE;
    free(m->text);
    free(m);
    return SUCCESS;
}

// Functions belong to the process: they are found again by name and freed at its end by the system.
API int cuModuleGetFunction(function **found, module *m, const char *name) {
    ENTER(name);
    char entry[96], symbol[96];
    snprintf(entry, sizeof(entry), ".entry %s(", name);
    snprintf(symbol, sizeof(symbol), "%s_launch", name);
    if (!known(m, 'm') || !strstr(m->text, entry)) return NOT_FOUND;
    pthread_mutex_lock(&lock);
    function *f = functions;
    while (f && strcmp(f->name, name)) f = f->next;
    if (!f) {
        f = calloc(1, sizeof(function));
        snprintf(f->name, sizeof(f->name), "%s", name);
        const char *path = getenv("FAKE_CUDA_KERNELS");
        void *library = path ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
        if (library) f->launch = (launcher)dlsym(library, symbol);
        f->next = functions;
        functions = f;
    }
    pthread_mutex_unlock(&lock);
    *found = f;
    return SUCCESS;
}

static int kernel_node(node *n, function *f, const unsigned *grid, const unsigned *block, void **extra) {
    memset(n, 0, sizeof(*n));
    n->kind = KERNEL;
    n->function = f;
    memcpy(n->grid, grid, sizeof(n->grid));
    memcpy(n->block, block, sizeof(n->block));
    for (int i = 0; i < 3; i++) {
        if (!grid[i] || !block[i] || (i > 0 && grid[i] > 65535)) return INVALID_VALUE;
    }
    if (block[0] * block[1] * block[2] > 1024) return INVALID_VALUE;
    // Only argument blocks: a list of parameters does not say its sizes.
    const void *from = NULL;
    for (; extra && *extra; extra += 2) {
        if (extra[0] == (void *)1) from = extra[1];
        if (extra[0] == (void *)2) n->size = *(size_t *)extra[1];
    }
    if (!from || n->size > MAX_ARGUMENTS) return INVALID_VALUE;
    memcpy(n->arguments, from, n->size);
    return SUCCESS;
}

API int cuLaunchKernel(function *f, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz, unsigned shared,
                       stream *s, void **arguments, void **extra) {
    char detail[160];
    snprintf(detail, sizeof(detail), "%s %ux%ux%u", f ? f->name : "", gx, gy, gz);
    ENTER(detail);
    (void)shared;
    if (!f || arguments) return INVALID_VALUE;
    node *n = malloc(sizeof(node));
    int code = kernel_node(n, f, (unsigned[]){gx, gy, gz}, (unsigned[]){bx, by, bz}, extra);
    if (!code) code = enqueue(s, n);
    free(n);
    return code;
}

// ---- capture and graphs

API int cuStreamBeginCapture_v2(stream *s, int mode) {
    ENTER("");
    if (!s || !known(s, 's') || mode < 0 || mode > 2) return INVALID_VALUE;
    if (s->capturing) return CAPTURE_UNSUPPORTED;
    s->capturing = object(sizeof(graph), 'g');
    s->invalid = 0;
    return s->capturing ? SUCCESS : OUT_OF_MEMORY;
}

API int cuStreamIsCapturing(stream *s, int *status) {
    ENTER("");
    *status = !s->capturing ? 0 : s->invalid ? 2 : 1;
    return SUCCESS;
}

static void free_graph(graph *g) {
    for (size_t i = 0; i < g->count; i++) free(g->nodes[i]);
    free(g);
}

API int cuStreamEndCapture(stream *s, graph **made) {
    ENTER("");
    *made = NULL;
    graph *g = s->capturing;
    if (!g) return INVALID_VALUE;
    s->capturing = NULL;
    if (s->invalid) {
        drop(g, 'g');
        free_graph(g);
        return CAPTURE_INVALIDATED;
    }
    *made = g;
    return SUCCESS;
}

#if FAKE_CUDA_VERSION >= 11030
API int cuStreamGetCaptureInfo_v2(stream *s, int *status, unsigned long long *id, graph **g, node ***last, size_t *count) {
    ENTER("");
    *status = s->capturing ? 1 : 0;
    *id = 1;
    *g = s->capturing;
    *count = s->capturing && s->capturing->count ? 1 : 0;
    *last = *count ? &s->capturing->nodes[s->capturing->count - 1] : NULL;
    return SUCCESS;
}
#endif

API int cuGraphDestroy(graph *g) {
    ENTER("");
    if (drop(g, 'g')) return INVALID_HANDLE;
    free_graph(g);
    return SUCCESS;
}

static int instantiate(graph_exec **made, graph *g) {
    if (!known(g, 'g')) return INVALID_HANDLE;
    graph_exec *e = object(sizeof(graph_exec), 'x');
    if (!e) return OUT_OF_MEMORY;
    e->count = g->count;
    e->nodes = calloc(g->count + 1, sizeof(node *));
    e->from = calloc(g->count + 1, sizeof(node *));
    for (size_t i = 0; i < g->count; i++) {
        e->nodes[i] = malloc(sizeof(node));
        *e->nodes[i] = *g->nodes[i];
        e->from[i] = g->nodes[i];
    }
    *made = e;
    return SUCCESS;
}

API int cuGraphInstantiate_v2(graph_exec **made, graph *g, node **failed, char *log, size_t size) {
    ENTER("");
    (void)failed, (void)log, (void)size;
    return instantiate(made, g);
}

#if FAKE_CUDA_VERSION >= 11040
API int cuGraphInstantiateWithFlags(graph_exec **made, graph *g, unsigned long long flags) {
    ENTER("");
    return flags ? INVALID_VALUE : instantiate(made, g);
}
#endif

API int cuGraphExecDestroy(graph_exec *e) {
    ENTER("");
    if (drop(e, 'x')) return INVALID_HANDLE;
    for (size_t i = 0; i < e->count; i++) free(e->nodes[i]);
    free(e->nodes);
    free(e->from);
    free(e);
    return SUCCESS;
}

API int cuGraphLaunch(graph_exec *e, stream *s) {
    ENTER("");
    if (!known(e, 'x') || (s && !known(s, 's'))) return INVALID_HANDLE;
    int code = idle(s);
    for (size_t i = 0; i < e->count && !code; i++) code = run(e->nodes[i]);
    return code;
}

static int update(graph_exec *e, graph *g) {
    if (!known(e, 'x') || !known(g, 'g')) return INVALID_HANDLE;
    if (e->count != g->count) return UPDATE_FAILURE;
    for (size_t i = 0; i < e->count; i++) {
        if (e->nodes[i]->kind != g->nodes[i]->kind || e->nodes[i]->function != g->nodes[i]->function) return UPDATE_FAILURE;
    }
    for (size_t i = 0; i < e->count; i++) *e->nodes[i] = *g->nodes[i];
    return SUCCESS;
}

#if FAKE_CUDA_VERSION < 12000
API int cuGraphExecUpdate(graph_exec *e, graph *g, node **failed, int *result) {
    ENTER("");
    *failed = NULL;
    int code = update(e, g);
    *result = code ? 1 : 0;
    return code;
}
#else
API int cuGraphExecUpdate_v2(graph_exec *e, graph *g, void *info) {
    ENTER("");
    memset(info, 0, 24);
    return update(e, g);
}
#endif

API int cuGraphExecKernelNodeSetParams(graph_exec *e, node *n, const kernel_parameters *p) {
    ENTER("");
    if (!known(e, 'x')) return INVALID_HANDLE;
    for (size_t i = 0; i < e->count; i++) {
        if (e->from[i] != n) continue;
        if (n->kind != KERNEL || n->function != p->function) return INVALID_VALUE;
        node *changed = malloc(sizeof(node));
        int code = kernel_node(changed, p->function, p->grid, p->block, p->extra);
        if (!code) *e->nodes[i] = *changed;
        free(changed);
        return code;
    }
    return INVALID_VALUE;
}
