// Runs plans: an engine with its tensors, and slots, each with one execution context, stream, memory and CUDA graphs.
#include <sys/prctl.h>
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>

#include "library.h"

// Provided by the trampoline in addition to the calls that ei_cuda.h declares.
extern "C" {
int cuMemAlloc_v2(ei_cuda_pointer* device, size_t bytes);
int cuMemFree_v2(ei_cuda_pointer device);
int cuStreamCreate(ei_cuda_stream* stream, unsigned flags);
int cuStreamDestroy_v2(ei_cuda_stream stream);
int cuEventCreate(ei_cuda_event* event, unsigned flags);
int cuEventDestroy_v2(ei_cuda_event event);
}

struct ei_engine {
    ei_library* library;
    ei_cuda_context context;
    void* runtime;
    void* engine;
    int count;
    ei_tensor tensor[EI_MAX_TENSORS];
};

namespace ei {

namespace {

enum { kMapped = 1 | 2, kNonBlocking = 1, kBlockingSync = 1 };
constexpr int kGraphs = 16;        // captured requests per slot; further ones are enqueued without a graph
constexpr size_t kSmallest = 256;  // TensorRT's alignment of addresses

// Growing owns the memory of an output of data-dependent size, which the library requests during the run.
struct Growing final : OutputSink {
    ei_cuda_pointer device = 0;
    size_t capacity = 0;
    Dims64 dims{-1, {}};
    Adapter adapter;

    void* allocate(uint64_t bytes) override {
        if (bytes > capacity || device == 0) {
            ei_cuda_pointer larger = 0;
            const size_t wanted = bytes < kSmallest ? kSmallest : bytes;
            if (cuMemAlloc_v2(&larger, wanted) != 0) return nullptr;
            if (device != 0) cuMemFree_v2(device);
            device = larger;
            capacity = wanted;
        }
        return reinterpret_cast<void*>(device);
    }
    void shape(const Dims64& dimensions) override { dims = dimensions; }
};

// Captured is one shape of request. It runs without a graph once, because TensorRT allocates its resources in the first run, and is
// captured the second time.
struct Captured {
    bool used = false, refused = false;
    int images = 0;
    Dims64 dims[EI_MAX_TENSORS];  // of inputs and outputs
    ei_cuda_graph graph = nullptr;
    ei_cuda_graph_exec exec = nullptr;
    ei_cuda_node letterbox[EI_MAX_BATCH];
    ei_cuda_kernel kernel[EI_MAX_BATCH];  // at capture or at the last update of the node
    unsigned char arguments[EI_MAX_BATCH][EI_MAX_ARGUMENTS];
};

size_t elementSize(int type) {
    switch (type) {
        case 0:
        case 3:
            return 4;
        case 1:
            return 2;
        case 2:
        case 4:
        case 5:
            return 1;
        case 8:
            return 8;
    }
    return 0;
}

bool operator==(const Dims64& a, const Dims64& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; i++) {
        if (a.d[i] != b.d[i]) return false;
    }
    return true;
}

int64_t elements(const Dims64& dims) {
    int64_t n = 1;
    for (int i = 0; i < dims.rank; i++) n *= dims.d[i];
    return n;
}

bool isKnown(const Dims64& dims) {
    if (dims.rank < 0) return false;
    for (int i = 0; i < dims.rank; i++) {
        if (dims.d[i] < 0) return false;
    }
    return true;
}

void format(const Dims64& dims, char* text, size_t size) {
    size_t used = 0;
    text[0] = 0;
    for (int i = 0; i < dims.rank && used + 1 < size; i++) {
        used += snprintf(text + used, size - used, "%s%lld", i > 0 ? "x" : "", static_cast<long long>(dims.d[i]));
    }
}

struct Text {
    char* text;
    size_t size, used;

    void append(const char* line, size_t length) {
        if (used + length < size) memcpy(text + used, line, length + 1);
        used += length;
    }
};

struct Lines final : LayerTimes {
    Text text;
    explicit Lines(const Text& t) : text(t) {}
    void add(const char* layer, float milliseconds) override {
        char line[1024];
        text.append(line, snprintf(line, sizeof(line), "%.6f %.900s\n", milliseconds, layer));
    }
};

}  // namespace

}  // namespace ei

struct ei_slot {
    ei_engine* engine;
    ei_slot_options options;
    void* context;
    ei_cuda_stream stream;
    ei_cuda_event begun, prepared, inferred, finished;
    bool inFlight, graphs;
    int64_t expected;                    // shortest duration of a request in nanoseconds, 0 before the first
    int64_t oversleep;                   // smoothed delay of this machine's timers in nanoseconds
    ei::Dims64 current[EI_MAX_TENSORS];  // shapes set in and returned by the context
    ei::Dims64 ran[EI_MAX_TENSORS];      // shapes of the request in flight
    ei::Growing growing[EI_MAX_TENSORS];
    bool unsized[EI_MAX_TENSORS];
    bool mapped[EI_MAX_TENSORS];
    ei::Captured captured[ei::kGraphs];
    ei_request request;
};

namespace ei {

namespace {

#define CUDA(expression, what)                                                     \
    do {                                                                           \
        if (const int code_ = (expression)) return ei::driver(error, code_, what); \
    } while (0)

int openEngine(ei_engine* e, const void* plan, size_t size, int profile, int dla, int host_code, ei_engine_info* info, ei_error* error) {
    ei_library* library = e->library;
    const Family& family = *library->family;
    library->log.mark();
    e->runtime = library->createRuntime(library->logger.object, library->version);
    if (e->runtime == nullptr) return refused(library, error, EI_TENSORRT, "no TensorRT runtime");
    info->dla_cores = family.runtimeDLACores(e->runtime);
    if (dla >= 0) {
        if (dla >= info->dla_cores) return fail(error, EI_UNSUPPORTED, "no DLA core %d, this device has %d", dla, info->dla_cores);
        family.setRuntimeDLACore(e->runtime, dla);
    }
    if (host_code) family.allowHostCode(e->runtime, library->version);
    e->engine = family.deserialize(e->runtime, plan, size);
    if (e->engine == nullptr) return refused(library, error, EI_PLAN, "plan refused");
    e->count = family.tensors(e->engine);
    if (e->count > EI_MAX_TENSORS) return fail(error, EI_UNSUPPORTED, "%d inputs and outputs, at most %d", e->count, EI_MAX_TENSORS);
    info->tensors = e->count;
    info->layers = family.layers(e->engine);
    info->profiles = family.profiles(e->engine);
    info->device_memory = family.deviceMemory(e->engine, library->version);
    if (profile < 0 || profile >= info->profiles) {
        return fail(error, EI_ARGUMENT, "no optimization profile %d, the plan has %d", profile, info->profiles);
    }
    for (int i = 0; i < e->count; i++) {
        ei_tensor& t = e->tensor[i];
        t.name = family.tensorName(e->engine, i);
        if (t.name == nullptr) return refused(library, error, EI_TENSORRT, "tensor %d has no name", i);
        t.type = family.tensorType(e->engine, t.name);
        t.input = family.tensorMode(e->engine, t.name) == kInput;
        t.host = family.tensorLocation(e->engine, t.name) == 1;
        if (elementSize(t.type) == 0) return fail(error, EI_UNSUPPORTED, "tensor %s has element type %d", t.name, t.type);
        if (const int form = family.tensorFormat(e->engine, t.name)) {
            return fail(error, EI_UNSUPPORTED, "tensor %s has memory format %d, only linear formats are supported", t.name, form);
        }
        const Dims64 shape = family.tensorShape(e->engine, t.name);
        if (shape.rank < 0 || shape.rank > 8) return fail(error, EI_UNSUPPORTED, "tensor %s has %d dimensions", t.name, shape.rank);
        t.rank = shape.rank;
        memcpy(t.shape, shape.d, sizeof(t.shape));
        memcpy(t.min, shape.d, sizeof(t.min));
        memcpy(t.opt, shape.d, sizeof(t.opt));
        memcpy(t.max, shape.d, sizeof(t.max));
        if (!t.input || isKnown(shape)) continue;
        memcpy(t.min, family.profileShape(e->engine, t.name, profile, kMinShape).d, sizeof(t.min));
        memcpy(t.opt, family.profileShape(e->engine, t.name, profile, kOptShape).d, sizeof(t.opt));
        memcpy(t.max, family.profileShape(e->engine, t.name, profile, kMaxShape).d, sizeof(t.max));
    }
    return EI_OK;
}

Dims64 dimsOf(const ei_io& io) {
    Dims64 dims{io.rank, {}};
    memcpy(dims.d, io.shape, sizeof(dims.d));
    return dims;
}

void setDims(ei_io* io, const Dims64& dims) {
    io->rank = dims.rank;
    memcpy(io->shape, dims.d, sizeof(io->shape));
}

// applyShapes sets the context's input shapes and reads its output shapes.
int applyShapes(ei_slot* s, ei_error* error) {
    ei_library* library = s->engine->library;
    const Family& family = *library->family;
    bool changed = false;
    for (int i = 0; i < s->engine->count; i++) {
        const ei_tensor& t = s->engine->tensor[i];
        if (!t.input) continue;
        const Dims64 dims = dimsOf(s->request.io[i]);
        if (dims == s->current[i] && !t.host) continue;
        if (!family.setShape(s->context, t.name, dims)) {
            char text[128];
            format(dims, text, sizeof(text));
            s->current[i].rank = -1;
            return refused(library, error, EI_SHAPE, "input %s: shape %s", t.name, text);
        }
        s->current[i] = dims;
        changed = true;
    }
    if (!changed) return EI_OK;
    const char* missing[EI_MAX_TENSORS] = {};
    if (const int count = family.inferShapes(s->context, EI_MAX_TENSORS, missing)) {
        return refused(library, error, EI_SHAPE, "output shapes cannot be inferred from the inputs%s%s", count > 0 ? ", missing " : "",
                       count > 0 && missing[0] != nullptr ? missing[0] : "");
    }
    for (int i = 0; i < s->engine->count; i++) {
        const ei_tensor& t = s->engine->tensor[i];
        if (t.input) continue;
        s->current[i] = family.contextShape(s->context, t.name);
    }
    return EI_OK;
}

int allocateTensor(ei_slot* s, int i, ei_error* error) {
    const Family& family = *s->engine->library->family;
    const ei_tensor& t = s->engine->tensor[i];
    ei_io& io = s->request.io[i];
    io.element = elementSize(t.type);
    Dims64 dims{t.rank, {}};
    if (t.input) {
        memcpy(dims.d, t.max, sizeof(dims.d));
    } else {
        dims = s->current[i];
        if (!isKnown(dims)) {
            s->unsized[i] = true;
            s->graphs = false;
            s->growing[i].adapter = family.outputAllocator(&s->growing[i]);
            if (!family.setAllocator(s->context, t.name, s->growing[i].adapter.object)) {
                return refused(s->engine->library, error, EI_TENSORRT, "output %s: no allocator", t.name);
            }
            return EI_OK;
        }
    }
    const int64_t bytes = elements(dims) * static_cast<int64_t>(io.element);
    if (bytes < 0 || bytes > (int64_t{1} << 40))
        return fail(error, EI_SHAPE, "tensor %s needs %lld bytes", t.name, static_cast<long long>(bytes));
    io.capacity = static_cast<size_t>(bytes);
    const size_t room = io.capacity < kSmallest ? kSmallest : io.capacity;
    const bool discarded = !t.input && s->options.discard;
    CUDA(cuMemHostAlloc(&io.host, room, kMapped), "allocate pinned memory");
    memset(io.host, 0, room);
    void* address = io.host;
    // A network reads its inputs more than once, and a GPU does not cache mapped memory.
    s->mapped[i] = t.host || (s->options.mapped && !t.input && !discarded);
    if (!s->mapped[i]) {
        CUDA(cuMemAlloc_v2(&io.device, room), "allocate device memory");
        address = reinterpret_cast<void*>(io.device);
    } else if (!t.host) {
        CUDA(cuMemHostGetDevicePointer_v2(&io.device, io.host, 0), "map pinned memory");
        address = reinterpret_cast<void*>(io.device);
    }
    if (!family.setAddress(s->context, t.name, address)) {
        return refused(s->engine->library, error, EI_TENSORRT, "tensor %s: address refused", t.name);
    }
    return EI_OK;
}

int openSlot(ei_slot* s, ei_error* error) {
    ei_library* library = s->engine->library;
    const Family& family = *library->family;
    CUDA(ei_cuda_use(s->engine->context), "use the context");
    library->log.mark();
    s->context = family.createContext(s->engine->engine);
    if (s->context == nullptr) return refused(library, error, EI_MEMORY, "no execution context");
    CUDA(cuStreamCreate(&s->stream, kNonBlocking), "create a stream");
    CUDA(cuEventCreate(&s->begun, 0), "create an event");
    CUDA(cuEventCreate(&s->prepared, 0), "create an event");
    CUDA(cuEventCreate(&s->inferred, 0), "create an event");
    CUDA(cuEventCreate(&s->finished, s->options.wait == EI_WAIT_SPIN ? 0 : kBlockingSync), "create an event");
    if (s->options.profile > 0) {
        if (!family.setProfile(s->context, s->options.profile, s->stream)) {
            return refused(library, error, EI_TENSORRT, "optimization profile %d", s->options.profile);
        }
        CUDA(cuStreamSynchronize(s->stream), "set the optimization profile");
    }
    bool shaped = false;  // output shapes depend on shape tensors, whose values come with the first request
    for (int i = 0; i < s->engine->count; i++) {
        const ei_tensor& t = s->engine->tensor[i];
        s->current[i].rank = s->ran[i].rank = -1;
        if (!t.input) continue;
        Dims64 largest{t.rank, {}};
        memcpy(largest.d, t.max, sizeof(largest.d));
        setDims(&s->request.io[i], largest);
        shaped |= t.host != 0;
    }
    if (shaped) s->graphs = false;
    for (int pass = 0; pass < 2; pass++) {  // inputs first, because the outputs' sizes depend on their shapes
        for (int i = 0; i < s->engine->count; i++) {
            if (s->engine->tensor[i].input != (pass == 0)) continue;
            if (const int code = allocateTensor(s, i, error)) return code;
        }
        if (pass == 0 && !shaped) {
            if (const int code = applyShapes(s, error)) return code;
        }
    }
    return EI_OK;
}

// filters reports whether the device filters the boxes of the request.
bool filters(const ei_request& r) { return r.filter.enabled && r.images > 0; }

// enqueue adds the request's work to the stream. While the stream is being captured, captured receives the letterbox nodes; otherwise it is
// null.
int enqueue(ei_slot* s, Captured* captured, ei_error* error) {
    ei_request& r = s->request;
    ei_library* library = s->engine->library;
    for (int i = 0; i < r.images; i++) {
        CUDA(ei_cuda_launch(&r.image[i].letterbox, s->stream), "letterbox");
        if (captured != nullptr) CUDA(ei_cuda_captured(s->stream, &captured->letterbox[i]), "capture the letterbox");
    }
    if (r.images == 0) {
        for (int i = 0; i < s->engine->count; i++) {
            if (!s->engine->tensor[i].input || s->mapped[i]) continue;
            const size_t bytes = static_cast<size_t>(elements(dimsOf(r.io[i]))) * r.io[i].element;
            if (bytes > 0) CUDA(cuMemcpyHtoDAsync_v2(r.io[i].device, r.io[i].host, bytes, s->stream), "copy an input");
        }
    }
    CUDA(ei_cuda_record(s->prepared, s->stream, captured != nullptr), "record an event");
    if (!library->family->enqueue(s->context, s->stream)) return refused(library, error, EI_TENSORRT, "enqueue");
    if (filters(r)) {
        CUDA(ei_cuda_record(s->inferred, s->stream, captured != nullptr), "record an event");
        if (r.filter.clear_words > 0) CUDA(cuMemsetD32Async(r.filter.clear, 0, r.filter.clear_words, s->stream), "clear the candidates");
        CUDA(ei_cuda_launch(&r.filter.kernel, s->stream), "filter the candidates");
        CUDA(cuMemcpyDtoHAsync_v2(r.filter.list_host, r.filter.list, r.filter.list_bytes, s->stream), "copy the candidates");
    }
    const bool discard = s->options.discard && r.images > 0;
    for (int i = 0; i < s->engine->count; i++) {
        if (discard || s->engine->tensor[i].input || s->mapped[i] || s->unsized[i]) continue;
        const size_t bytes = static_cast<size_t>(elements(s->current[i])) * r.io[i].element;
        if (bytes > 0) CUDA(cuMemcpyDtoHAsync_v2(r.io[i].host, r.io[i].device, bytes, s->stream), "copy an output");
    }
    return EI_OK;
}

bool sameKernel(const ei_cuda_kernel& a, const ei_cuda_kernel& b) {
    return a.function == b.function && a.size == b.size && memcmp(a.grid, b.grid, sizeof(a.grid)) == 0 &&
           memcmp(a.block, b.block, sizeof(a.block)) == 0;
}

void keep(Captured* c, int i, const ei_image& image) {
    c->kernel[i] = image.letterbox;
    memcpy(c->arguments[i], image.arguments, image.letterbox.size);
}

bool capture(ei_slot* s, Captured* c, ei_error* error) {
    if (const int code = ei_cuda_begin(s->stream)) {
        driver(error, code, "begin capture");
        return false;
    }
    const int enqueued = enqueue(s, c, error);
    const int ended = ei_cuda_end(s->stream, &c->graph, &c->exec);
    if (enqueued != EI_OK) {
        ei_cuda_free_graph(c->graph, c->exec);
        c->graph = nullptr;
        c->exec = nullptr;
        return false;
    }
    if (ended != 0) {
        driver(error, ended, "instantiate the graph");
        return false;
    }
    for (int i = 0; i < s->request.images; i++) keep(c, i, s->request.image[i]);
    return true;
}

int replay(ei_slot* s, Captured* c, ei_error* error) {
    for (int i = 0; i < s->request.images; i++) {
        const ei_image& image = s->request.image[i];
        if (sameKernel(c->kernel[i], image.letterbox) && memcmp(c->arguments[i], image.arguments, image.letterbox.size) == 0) continue;
        CUDA(ei_cuda_replace_kernel(c->exec, c->letterbox[i], &image.letterbox), "replace the letterbox");
        keep(c, i, image);
    }
    CUDA(cuGraphLaunch(c->exec, s->stream), "launch the graph");
    s->request.replayed = 1;
    return EI_OK;
}

// find returns the entry for requests of this shape, an unused one if there is none, or null if all are in use.
Captured* find(ei_slot* s) {
    for (Captured& c : s->captured) {
        if (!c.used) return &c;
        if (c.images != s->request.images) continue;
        bool same = true;
        for (int i = 0; same && i < s->engine->count; i++) {
            if (s->engine->tensor[i].input) same = c.dims[i] == dimsOf(s->request.io[i]);
        }
        if (same) return &c;
    }
    return nullptr;
}

int submit(ei_slot* s, ei_error* error) {
    ei_request& r = s->request;
    r.submitted = now();
    r.replayed = 0;
    CUDA(ei_cuda_use(s->engine->context), "use the context");
    CUDA(cuEventRecord(s->begun, s->stream), "record an event");
    for (int i = 0; i < r.images; i++) {
        const ei_image& image = r.image[i];
        if (image.ready != nullptr) CUDA(cuStreamWaitEvent(s->stream, image.ready, 0), "wait for an image");
        if (image.host == nullptr) continue;
        CUDA(cuMemcpyHtoDAsync_v2(image.staging, image.host, image.bytes, s->stream), "copy an image");
    }
    Captured* c = s->graphs ? find(s) : nullptr;
    if (c != nullptr && c->exec != nullptr) {
        memcpy(s->ran, c->dims, sizeof(Dims64) * s->engine->count);
        if (const int code = replay(s, c, error)) return code;
    } else {
        s->engine->library->log.mark();
        if (const int code = applyShapes(s, error)) return code;
        bool launched = false;
        if (c != nullptr && c->used && !c->refused) {
            if (capture(s, c, error)) {
                if (const int code = replay(s, c, error)) return code;
                launched = true;
            } else {
                c->refused = true;
                if (r.graph_refusal[0] == 0) snprintf(r.graph_refusal, sizeof(r.graph_refusal), "%.255s", error->message);
                *error = {};
            }
        }
        if (!launched) {
            if (const int code = enqueue(s, nullptr, error)) return code;
        }
        if (c != nullptr && !c->used) {
            c->used = true;
            c->images = r.images;
            memcpy(c->dims, s->current, sizeof(Dims64) * s->engine->count);
        }
        memcpy(s->ran, s->current, sizeof(Dims64) * s->engine->count);
    }
    CUDA(cuEventRecord(s->finished, s->stream), "record an event");
    return EI_OK;
}

// collect copies outputs of data-dependent size to the host after the run.
int collect(ei_slot* s, ei_error* error) {
    for (int i = 0; i < s->engine->count; i++) {
        if (!s->unsized[i]) continue;
        const Growing& grown = s->growing[i];
        ei_io& io = s->request.io[i];
        s->ran[i] = grown.dims;
        if (!isKnown(grown.dims)) return fail(error, EI_TENSORRT, "output %s: TensorRT returned no shape", s->engine->tensor[i].name);
        const size_t bytes = static_cast<size_t>(elements(grown.dims)) * io.element;
        if (bytes > io.capacity || io.host == nullptr) {
            if (io.host != nullptr) cuMemFreeHost(io.host);
            io.host = nullptr;
            io.capacity = bytes < kSmallest ? kSmallest : bytes;
            CUDA(cuMemHostAlloc(&io.host, io.capacity, kMapped), "allocate pinned memory");
        }
        if (bytes == 0) continue;
        CUDA(cuMemcpyDtoHAsync_v2(io.host, grown.device, bytes, s->stream), "copy an output");
        CUDA(cuStreamSynchronize(s->stream), "copy an output");
    }
    return EI_OK;
}

// sleepUntil returns the delay of its wake-up in nanoseconds, about 60 microseconds on most machines.
int64_t sleepUntil(int64_t nanoseconds) {
    // By default a thread's timers may be late by 50 microseconds; Go moves the caller between threads.
    prctl(PR_SET_TIMERSLACK, 1);
    const timespec until = {nanoseconds / 1000000000, nanoseconds % 1000000000};
    clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
    return now() - nanoseconds;
}

// pass waits for the end of the request. It learns the shortest duration of requests: a shorter one counts at once, longer ones slowly.
int pass(ei_slot* s) {
    constexpr int64_t kWorthSleeping = 100000, kMargin = 40000, kLate = 200000, kPatience = 2000000;
    int code = cuEventQuery(s->finished);
    if (s->options.wait == EI_WAIT_BLOCK) return code == EI_CUDA_NOT_READY ? cuEventSynchronize(s->finished) : code;
    const int64_t submitted = s->request.submitted;
    if (code != EI_CUDA_NOT_READY) {
        const int64_t taken = now() - submitted;
        if (taken < s->expected) s->expected = taken;
        return code;
    }
    if (s->options.wait == EI_WAIT_ADAPT) {
        const int64_t sure = s->expected - s->expected / 16 - kMargin - s->oversleep;
        if (submitted + sure - now() > kWorthSleeping) {
            const int64_t late =
                std::clamp(sleepUntil(submitted + sure), int64_t{0}, kLate);  // longer delays mean that another thread had the core
            s->oversleep += (late - s->oversleep) / 8;
        }
    }
    const int64_t begun = now();
    for (int spins = 0; (code = cuEventQuery(s->finished)) == EI_CUDA_NOT_READY; spins++) {
        if (s->options.wait == EI_WAIT_ADAPT && spins % 16 == 15 && now() - begun > kPatience) {
            code = cuEventSynchronize(s->finished);
            break;
        }
    }
    const int64_t taken = now() - submitted;
    s->expected = taken < s->expected || s->expected == 0 ? taken : s->expected + (taken - s->expected) / 16;
    return code;
}

int wait(ei_slot* s, ei_error* error) {
    CUDA(ei_cuda_use(s->engine->context), "use the context");
    CUDA(pass(s), "run the network");
    ei_request& r = s->request;
    r.done = now();
    float milliseconds = 0;
    if (cuEventElapsedTime(&milliseconds, s->begun, s->prepared) == 0) r.preprocess = static_cast<int64_t>(milliseconds * 1e6F);
    ei_cuda_event over = filters(r) ? s->inferred : s->finished;
    if (cuEventElapsedTime(&milliseconds, s->prepared, over) == 0) r.inference = static_cast<int64_t>(milliseconds * 1e6F);
    r.filtering = 0;
    if (filters(r) && cuEventElapsedTime(&milliseconds, s->inferred, s->finished) == 0) {
        r.filtering = static_cast<int64_t>(milliseconds * 1e6F);
    }
    if (const int code = collect(s, error)) return code;
    for (int i = 0; i < s->engine->count; i++) {
        if (!s->engine->tensor[i].input) setDims(&r.io[i], s->ran[i]);
    }
    return EI_OK;
}

void forget(ei_slot* s) {
    for (Captured& c : s->captured) {
        ei_cuda_free_graph(c.graph, c.exec);
        c = {};
    }
}

// profileOn runs the network of the slot's last request on a separate context.
int profileOn(ei_slot* s, int runs, void* context, Lines* lines, const Adapter& profiler, ei_error* error) {
    ei_library* library = s->engine->library;
    const Family& family = *library->family;
    if (s->options.profile > 0 && !family.setProfile(context, s->options.profile, s->stream)) {
        return refused(library, error, EI_TENSORRT, "optimization profile %d", s->options.profile);
    }
    for (int i = 0; i < s->engine->count; i++) {
        const ei_tensor& t = s->engine->tensor[i];
        const ei_io& io = s->request.io[i];
        if (t.input && !family.setShape(context, t.name, s->ran[i])) return refused(library, error, EI_SHAPE, "input %s", t.name);
        const bool bound = s->unsized[i] ? family.setAllocator(context, t.name, s->growing[i].adapter.object)
                                         : family.setAddress(context, t.name, t.host ? io.host : reinterpret_cast<void*>(io.device));
        if (!bound) return refused(library, error, EI_TENSORRT, "tensor %s", t.name);
    }
    family.setProfiler(context, profiler.object);
    for (int run = -1; run < runs; run++) {  // the first one allocates the context's resources
        if (run == 0) lines->text.used = 0;
        if (!family.enqueue(context, s->stream)) return refused(library, error, EI_TENSORRT, "enqueue");
        CUDA(cuStreamSynchronize(s->stream), "run the network");
        if (!family.reportToProfiler(context)) return refused(library, error, EI_TENSORRT, "no layer times");
        lines->text.append("\n", 1);
    }
    return EI_OK;
}

// profile uses a separate context, because a context keeps calling its profiler even after setProfiler(nullptr).
size_t profile(ei_slot* s, int runs, char* text, size_t size, ei_error* error) {
    ei_library* library = s->engine->library;
    Lines lines({text, size, 0});
    if (s->ran[0].rank < 0) {
        fail(error, EI_ARGUMENT, "the slot has not run a request yet");
        return 0;
    }
    if (const int code = ei_cuda_use(s->engine->context)) {
        driver(error, code, "use the context");
        return 0;
    }
    library->log.mark();
    Adapter profiler = library->family->profiler(&lines);
    void* context = library->family->createContext(s->engine->engine);
    int code = EI_MEMORY;
    if (profiler.object == nullptr || context == nullptr) {
        refused(library, error, code, "no execution context");
    } else {
        code = profileOn(s, runs, context, &lines, profiler, error);
    }
    destroy(context);
    profiler.drop();
    return code == EI_OK ? lines.text.used : 0;
}

}  // namespace

}  // namespace ei

int ei_engine_open(ei_library* library, ei_cuda_context context, const void* plan, size_t size, int profile, int dla, int host_code,
                   ei_engine** engine, ei_engine_info* info, ei_error* error) {
    *engine = nullptr;
    *info = {};
    return ei::guarded(error, [&]() -> int {
        CUDA(ei_cuda_use(context), "use the context");
        auto* opened = new (std::nothrow) ei_engine();
        if (opened == nullptr) return ei::fail(error, EI_MEMORY, "out of memory");
        opened->library = library;
        opened->context = context;
        const int code = ei::openEngine(opened, plan, size, profile, dla, host_code, info, error);
        if (code != EI_OK) {
            ei_engine_close(opened);
            return code;
        }
        *engine = opened;
        return code;
    });
}

int ei_engine_tensor(ei_engine* engine, int index, ei_tensor* tensor, ei_error* error) {
    if (index < 0 || index >= engine->count) return ei::fail(error, EI_ARGUMENT, "no tensor %d", index);
    *tensor = engine->tensor[index];
    return EI_OK;
}

size_t ei_engine_layers(ei_engine* engine, char* text, size_t size) {
    void* inspector = engine->library->family->createInspector(engine->engine);
    if (inspector == nullptr) return 0;
    const char* json = engine->library->family->inspect(inspector);
    const size_t length = json != nullptr ? strlen(json) : 0;
    if (length < size) memcpy(text, json != nullptr ? json : "", length + 1);
    ei::destroy(inspector);
    return length;
}

void ei_engine_close(ei_engine* engine) {
    if (engine == nullptr) return;
    ei_cuda_use(engine->context);
    ei::destroy(engine->engine);
    ei::destroy(engine->runtime);
    delete engine;
}

int ei_slot_open(ei_engine* engine, const ei_slot_options* options, ei_slot** slot, ei_request** request, ei_error* error) {
    *slot = nullptr;
    return ei::guarded(error, [&] {
        auto* opened = new (std::nothrow) ei_slot();
        if (opened == nullptr) return ei::fail(error, EI_MEMORY, "out of memory");
        opened->engine = engine;
        opened->options = *options;
        opened->graphs = options->graph;
        const int code = ei::openSlot(opened, error);
        if (code != EI_OK) {
            ei_slot_close(opened);
            return code;
        }
        *slot = opened;
        *request = &opened->request;
        return code;
    });
}

int ei_slot_submit(ei_slot* slot, ei_error* error) {
    return ei::guarded(error, [&] {
        const int code = ei::submit(slot, error);
        slot->inFlight = true;  // also after a failure, because part of the work may have started
        return code;
    });
}

int ei_slot_wait(ei_slot* slot, ei_error* error) {
    return ei::guarded(error, [&] {
        const int code = ei::wait(slot, error);
        slot->inFlight = false;
        return code;
    });
}

size_t ei_slot_profile(ei_slot* slot, int runs, char* text, size_t size, ei_error* error) {
    size_t length = 0;
    ei::guarded(error, [&] {
        length = ei::profile(slot, runs, text, size, error);
        return 0;
    });
    return length;
}

void ei_slot_close(ei_slot* slot) {
    if (slot == nullptr) return;
    ei_cuda_use(slot->engine->context);
    if (slot->stream != nullptr && slot->inFlight) cuStreamSynchronize(slot->stream);
    ei::forget(slot);
    ei::destroy(slot->context);
    for (int i = 0; i < slot->engine->count; i++) {
        ei_io& io = slot->request.io[i];
        if (io.device != 0 && !slot->mapped[i]) cuMemFree_v2(io.device);
        if (io.host != nullptr) cuMemFreeHost(io.host);
        if (slot->growing[i].device != 0) cuMemFree_v2(slot->growing[i].device);
        slot->growing[i].adapter.drop();
    }
    const ei_cuda_event events[] = {slot->begun, slot->prepared, slot->inferred, slot->finished};
    for (ei_cuda_event event : events) {
        if (event != nullptr) cuEventDestroy_v2(event);
    }
    if (slot->stream != nullptr) cuStreamDestroy_v2(slot->stream);
    delete slot;
}
