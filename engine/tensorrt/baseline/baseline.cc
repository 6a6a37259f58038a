// The baseline of the acceptance benchmarks: the same plan, letterbox, filter and CUDA graph as the engine, driven from C++ with two slots,
// one request ahead and spinning; no Go, no camera, no messages. The benchmarks compare the daemon with its rates.
//
// usage: baseline LIBNVINFER PLAN KERNELS.ptx WIDTH HEIGHT SECONDS [mapped] [plain] [confidence=0.25] [batch=1] [rate=0] [paced=S]
// PLAN is a plan file of edge-infer or TensorRT's own. Latency is that of one request at a time: back to back or, with a rate, of requests
// at regular times, counted from the due time. One JSON line goes to standard output.
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "../../preprocess/arguments.h"
#include "../shim.h"

extern "C" {
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(ei_cuda_context* context, int device);
int cuModuleGetFunction(ei_cuda_function* function, ei_cuda_module module, const char* name);
int cuMemAlloc_v2(ei_cuda_pointer* device, size_t bytes);
}

namespace {

constexpr int kFrames = 64, kSlots = 2, kCapacity = 4096, kFields = 6;

[[noreturn]] void die(const char* what, const ei_error& error) {
    fprintf(stderr, "baseline: %s: %s\n", what, error.message);
    exit(1);
}

void check(int code, const char* what) {
    if (code == 0) return;
    fprintf(stderr, "baseline: %s: CUDA error %d\n", what, code);
    exit(1);
}

std::string read(const char* path) {
    std::ifstream file(path, std::ios::binary);
    if (!file) {
        fprintf(stderr, "baseline: cannot read %s\n", path);
        exit(1);
    }
    return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

// network returns TensorRT's plan without the header of plan.go: a magic of 8 bytes, a length, that many bytes, a checksum of 32 bytes.
std::string network(std::string file) {
    if (file.size() < 12 || file.compare(0, 8, "EIPLAN1\n") != 0) return file;
    uint32_t length = 0;
    memcpy(&length, file.data() + 8, sizeof(length));
    const size_t header = size_t{12} + length + 32;
    return header < file.size() ? file.substr(header) : file;
}

int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

double cpuSeconds() {
    rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           static_cast<double>(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

double percentile(std::vector<double>& values, double p) {
    if (values.empty()) return 0;
    std::sort(values.begin(), values.end());
    const size_t n = values.size();
    const size_t drop = static_cast<size_t>((1 - p) * static_cast<double>(n));
    return values[drop < n ? n - 1 - drop : 0];
}

ei_letterbox_arguments letterbox(int width, int height, int stride, int inputWidth, int inputHeight, bool half) {
    const double scale = std::min(static_cast<double>(inputWidth) / width, static_cast<double>(inputHeight) / height);
    ei_letterbox_arguments a = {};
    a.stride = stride;
    a.pixel_bytes = half ? 2 : 4;
    ei_letterbox& b = a.box;
    b.channels = 3;
    b.element = half ? EI_FLOAT16 : EI_FLOAT32;
    b.pad = 114;
    b.source_width = width;
    b.source_height = height;
    b.width = inputWidth;
    b.height = inputHeight;
    b.inner_width = std::clamp(static_cast<int>(std::nearbyint(width * scale)), 1, inputWidth);
    b.inner_height = std::clamp(static_cast<int>(std::nearbyint(height * scale)), 1, inputHeight);
    b.left = (inputWidth - b.inner_width) / 2;
    b.top = (inputHeight - b.inner_height) / 2;
    for (float& s : b.scale) s = 1.0f / 255;
    return a;
}

struct Slot {
    ei_slot* slot;
    ei_request* request;
    ei_cuda_pointer staging;
    int64_t ready;
};

}  // namespace

int main(int argc, char** argv) {
    if (argc < 7) {
        fputs(
            "usage: baseline LIBNVINFER PLAN KERNELS.ptx WIDTH HEIGHT SECONDS [mapped] [plain] [confidence=C] [batch=N] [rate=R] "
            "[paced=S]\n",
            stderr);
        return 2;
    }
    const int width = atoi(argv[4]), height = atoi(argv[5]);
    const double seconds = atof(argv[6]);
    double latencySeconds = seconds;
    bool mapped = false, graph = true;
    float confidence = 0, rate = 0;
    int batch = 1;
    for (int i = 7; i < argc; i++) {
        if (strcmp(argv[i], "mapped") == 0) mapped = true;
        if (strcmp(argv[i], "plain") == 0) graph = false;
        sscanf(argv[i], "confidence=%f", &confidence);
        sscanf(argv[i], "batch=%d", &batch);
        sscanf(argv[i], "rate=%f", &rate);
        sscanf(argv[i], "paced=%lf", &latencySeconds);
    }
    ei_error error = {};
    ei_cuda_driver driver;
    if (ei_cuda_open("libcuda.so.1", &driver) != 0) {
        fprintf(stderr, "baseline: no driver: %s\n", driver.why);
        return 1;
    }
    int device = 0;
    ei_cuda_context context = nullptr;
    check(cuDeviceGet(&device, 0), "device");
    check(cuDevicePrimaryCtxRetain(&context, device), "context");
    check(ei_cuda_use(context), "context");

    ei_library* library = nullptr;
    ei_version version;
    char why[1024];
    if (ei_library_open(argv[1], "", "", 2, &library, &version, why, sizeof(why), &error) != 0) die("library", error);
    const std::string plan = network(read(argv[2]));
    ei_engine* engine = nullptr;
    ei_engine_info info;
    if (ei_engine_open(library, context, plan.data(), plan.size(), 0, -1, 0, &engine, &info, &error) != 0) die("plan", error);
    int input = -1, output = -1;
    std::vector<ei_tensor> tensors(info.tensors);
    for (int i = 0; i < info.tensors; i++) {
        if (ei_engine_tensor(engine, i, &tensors[i], &error) != 0) die("tensor", error);
        (tensors[i].input ? input : output) = i;
    }
    const ei_tensor& in = tensors[input];
    if (batch < 1 || batch > in.max[0]) {
        fprintf(stderr, "baseline: a batch of %d, the plan takes up to %d\n", batch, static_cast<int>(in.max[0]));
        return 2;
    }
    const ei_tensor& out = tensors[output];
    const int inputHeight = static_cast<int>(in.opt[2]), inputWidth = static_cast<int>(in.opt[3]);
    const bool filtered = confidence > 0 && out.rank == 3 && out.shape[2] > out.shape[1];

    const std::string ptx = read(argv[3]);
    ei_cuda_module module = nullptr;
    ei_cuda_function letterboxKernel = nullptr, filterKernel = nullptr;
    check(cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr), "kernels");
    check(cuModuleGetFunction(&letterboxKernel, module, "letterbox"), "letterbox");
    check(cuModuleGetFunction(&filterKernel, module, "filter"), "filter");

    const size_t bytes = static_cast<size_t>(3) * width * height;
    std::vector<void*> frames(kFrames);
    std::vector<ei_cuda_pointer> addresses(kFrames);
    std::mt19937 random(1);
    for (int i = 0; i < kFrames; i++) {
        check(cuMemHostAlloc(&frames[i], bytes, 3), "frame");
        check(cuMemHostGetDevicePointer_v2(&addresses[i], frames[i], 0), "frame");
        auto* words = static_cast<uint32_t*>(frames[i]);
        for (size_t w = 0; w < bytes / 4; w++) words[w] = random();
    }
    const ei_letterbox_arguments shape = letterbox(width, height, 3 * width, inputWidth, inputHeight, in.type == 1);

    Slot slots[kSlots];
    for (Slot& s : slots) {
        const ei_slot_options options = {0, graph, EI_WAIT_SPIN, 0, filtered};
        if (ei_slot_open(engine, &options, &s.slot, &s.request, &error) != 0) die("slot", error);
        check(cuMemAlloc_v2(&s.staging, bytes * batch), "staging");
        if (!filtered) continue;
        ei_filter& f = s.request->filter;
        void* host = nullptr;
        ei_cuda_pointer list = 0;
        // As in the engine: rows go to mapped memory; counters stay on the device and are copied.
        const size_t counters = 256, rows = sizeof(float) * kCapacity * kFields * batch;
        ei_cuda_pointer address = 0;
        check(cuMemHostAlloc(&host, counters + rows, 3), "list");
        check(cuMemHostGetDevicePointer_v2(&address, host, 0), "list");
        check(cuMemAlloc_v2(&list, counters), "list");
        f.list_bytes = sizeof(uint32_t) * 2 * batch;
        f.list_host = host;
        f.enabled = 1;
        f.clear = f.list = list;
        f.clear_words = 2 * batch;
        const int boxes = static_cast<int>(out.shape[2]), fields = static_cast<int>(out.shape[1]);
        const bool half = out.type == 1;
        ei_filter_arguments a = {};
        a.boxes = s.request->io[output].device;
        a.scores = a.boxes + static_cast<uint64_t>(4) * boxes * (half ? 2 : 4);
        a.rows = address + counters;
        a.counts = list;
        a.box_image = a.score_image = static_cast<int64_t>(boxes) * fields;
        a.box_step = a.score_step = 1;
        a.box_next = a.score_next = boxes;
        a.images = batch;
        a.count = boxes;
        a.classes = fields - 4;
        a.capacity = kCapacity;
        a.half_boxes = a.half_scores = half;
        a.scale_x = a.scale_y = 1;
        a.threshold = confidence;
        memcpy(f.arguments, &a, sizeof(a));
        f.kernel = {filterKernel,
                    {static_cast<unsigned>((boxes + 127) / 128), static_cast<unsigned>(batch), 1},
                    {128, 1, 1},
                    f.arguments,
                    sizeof(a)};
    }

    std::vector<double> latencies, preprocess, inference;
    int64_t frame = 0;
    const size_t input_bytes = size_t{3} * inputWidth * inputHeight * (in.type == 1 ? 2 : 4);
    const auto submit = [&](Slot& s, int64_t ready) {
        ei_request& r = *s.request;
        s.ready = ready;
        for (int k = 0; k < batch; k++) {
            const int i = static_cast<int>(frame++ % kFrames);
            const ei_cuda_pointer staging = s.staging + k * bytes;
            ei_image& p = r.image[k];
            ei_letterbox_arguments a = shape;
            a.source = mapped ? addresses[i] : staging;
            a.end = a.source + bytes;
            for (int c = 0; c < 3; c++) a.output[c] = r.io[input].device + k * input_bytes + c * (input_bytes / 3);
            p.host = mapped ? nullptr : frames[i];
            p.staging = staging;
            p.bytes = bytes;
            memcpy(p.arguments, &a, sizeof(a));
            p.letterbox = {letterboxKernel,
                           {static_cast<unsigned>((inputWidth + 63) / 64), static_cast<unsigned>((inputHeight + 7) / 8), 1},
                           {32, 8, 1},
                           p.arguments,
                           sizeof(a)};
        }
        r.images = batch;
        r.io[input].rank = 4;
        r.io[input].shape[0] = batch;
        r.io[input].shape[1] = 3;
        r.io[input].shape[2] = inputHeight;
        r.io[input].shape[3] = inputWidth;
        if (ei_slot_submit(s.slot, &error) != 0) die("submit", error);
    };
    const auto wait = [&](Slot& s, bool keep) {
        if (ei_slot_wait(s.slot, &error) != 0) die("wait", error);
        if (!keep) return;
        latencies.push_back(static_cast<double>(s.request->done - s.ready) / 1e3);
        preprocess.push_back(static_cast<double>(s.request->preprocess) / 1e3);
        inference.push_back(static_cast<double>(s.request->inference) / 1e3);
    };
    for (int i = 0; i < 200; i++) {
        submit(slots[i % kSlots], now());
        wait(slots[i % kSlots], false);
    }

    // Throughput: one request ahead. A minimum number of requests is counted even on a busy machine.
    const int64_t begun = now();
    const double cpu = cpuSeconds();
    int64_t done = 0;
    submit(slots[0], now());
    for (int64_t i = 1; i <= kSlots || now() - begun < static_cast<int64_t>(seconds * 1e9); i++, done++) {
        submit(slots[i % kSlots], now());
        wait(slots[(i + 1) % kSlots], false);
    }
    const double elapsed = static_cast<double>(now() - begun) / 1e9, used = cpuSeconds() - cpu;
    wait(slots[done % kSlots], false);

    // Latency: one request at a time. By default timers are late by 50 microseconds.
    prctl(PR_SET_TIMERSLACK, 1);
    const int64_t paced = now();
    const double idle = cpuSeconds();
    for (int64_t i = 0; i == 0 || now() - paced < static_cast<int64_t>(latencySeconds * 1e9); i++) {
        int64_t ready = now();
        if (rate > 0) {
            ready = paced + static_cast<int64_t>(static_cast<double>(i) * 1e9 / rate);
            const timespec due = {static_cast<time_t>(ready / 1000000000), static_cast<long>(ready % 1000000000)};
            while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &due, nullptr) == EINTR) {
            }
        }
        submit(slots[i % kSlots], ready);
        wait(slots[i % kSlots], true);
    }
    const double paced_cpu = cpuSeconds() - idle;
    printf(
        "{\"what\": \"floor\", \"tensorrt\": \"%d.%d.%d\", \"mapped\": %s, \"graph\": %s, \"replayed\": %s, \"filter\": %s, "
        "\"frames_per_second\": "
        "%.1f, \"cpu_us_per_frame\": %.1f, \"latency_us_p50\": %.1f, \"latency_us_p99\": %.1f, \"latency_us_p999\": %.1f, \"n\": %zu, "
        "\"preprocess_us_p50\": %.1f, \"inference_us_p50\": %.1f, \"inference_us_p99\": %.1f, \"paced_cpu_us_per_frame\": %.1f}\n",
        version.major, version.minor, version.patch, mapped ? "true" : "false", graph ? "true" : "false",
        slots[0].request->replayed ? "true" : "false", filtered ? "true" : "false", static_cast<double>(done * batch) / elapsed,
        used / static_cast<double>(done * batch) * 1e6, percentile(latencies, 0.5), percentile(latencies, 0.99),
        percentile(latencies, 0.999), latencies.size(), percentile(preprocess, 0.5), percentile(inference, 0.5),
        percentile(inference, 0.99), latencies.empty() ? 0.0 : paced_cpu / static_cast<double>(latencies.size() * batch) * 1e6);
    for (Slot& s : slots) ei_slot_close(s.slot);
    ei_engine_close(engine);
    return 0;
}
