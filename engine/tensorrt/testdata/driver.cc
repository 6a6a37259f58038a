// Runs the shim with the fake libraries under AddressSanitizer and UndefinedBehaviorSanitizer: every function, and every failure of the
// fake TensorRT. usage: driver LIBCUDA LIBNVINFER MODEL
#include <dlfcn.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "../shim.h"

extern "C" {
int cuDeviceGet(int* device, int ordinal);
int cuDevicePrimaryCtxRetain(ei_cuda_context* context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
}

namespace {

void require(bool holds, const char* what, const ei_error& error) {
    if (holds) return;
    fprintf(stderr, "driver: %s: %s\n", what, error.message);
    exit(1);
}

struct Session {
    ei_cuda_context context = nullptr;
    ei_library* library = nullptr;
    std::string model;
};

int build(const Session& s, ei_plan* plan, ei_error* error, bool cancel) {
    ei_build_options options = {};
    options.level = -1;
    options.dla = -1;
    for (int64_t& b : options.batch) b = 1;
    options.batch[2] = 4;
    ei_progress progress = {};
    if (cancel) ei_progress_cancel(&progress);
    std::atomic<bool> done = false;
    std::thread reader([&] {
        for (ei_progress copy; !done;) ei_progress_read(&progress, &copy);
    });
    const int code = ei_build(s.library, s.context, s.model.data(), s.model.size(), "model.onnx", &options, &progress, plan, error);
    done = true;
    reader.join();
    return code;
}

// run opens the plan and runs requests; it returns the first error.
int run(const Session& s, const std::string& plan, const ei_slot_options& options, ei_error* error) {
    ei_engine* engine = nullptr;
    ei_engine_info info;
    if (const int code = ei_engine_open(s.library, s.context, plan.data(), plan.size(), 0, -1, 1, &engine, &info, error)) return code;
    char text[64];
    ei_engine_layers(engine, text, sizeof(text));
    ei_engine_layers(engine, nullptr, 0);
    ei_slot* slot = nullptr;
    ei_request* request = nullptr;
    int code = ei_slot_open(engine, &options, &slot, &request, error);
    for (int i = 0; code == EI_OK && i < 12; i++) {
        request->images = 0;
        for (int n = 0; n < info.tensors; n++) {
            ei_tensor tensor;
            if ((code = ei_engine_tensor(engine, n, &tensor, error)) != EI_OK) break;
            if (!tensor.input) continue;
            ei_io& io = request->io[n];
            io.rank = tensor.rank;
            memcpy(io.shape, tensor.opt, sizeof(io.shape));
            if (tensor.shape[0] < 0) io.shape[0] = 1 + i / 3 % 4;
            memset(io.host, i, io.capacity);
        }
        if (code == EI_OK) code = ei_slot_submit(slot, error);
        ei_error waited = {};
        const int last = ei_slot_wait(slot, &waited);
        if (code == EI_OK && last != EI_OK) {
            code = last;
            *error = waited;
        }
    }
    if (code == EI_OK) {
        char times[256];
        require(ei_slot_profile(slot, 2, times, sizeof(times), error) > 0, "profile", *error);
        ei_slot_profile(slot, 2, times, 4, error);
        if (options.graph) require(request->replayed == 1 || request->graph_refusal[0] != 0, "graph", *error);
    }
    ei_slot_close(slot);
    ei_engine_close(engine);
    return code;
}

}  // namespace

int main(int argc, char** argv) {
    if (argc != 4) return 2;
    setenv("FAKE_TRT_CUDA", argv[1], 1);
    ei_error error = {};
    ei_cuda_driver driver;
    if (ei_cuda_open(argv[1], &driver) != 0) {
        fprintf(stderr, "driver: %s\n", driver.why);
        return 1;
    }
    Session s;
    int device = 0;
    if (cuDeviceGet(&device, 0) != 0 || cuDevicePrimaryCtxRetain(&s.context, device) != 0) return 1;
    std::ifstream file(argv[3], std::ios::binary);
    s.model.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());

    ei_version version;
    char why[256];
    require(ei_library_open("/none.so", "", "", 3, &s.library, &version, why, sizeof(why), &error) == EI_LOAD, "missing library", error);
    require(ei_library_open(argv[1], "", "", 3, &s.library, &version, why, sizeof(why), &error) == EI_LOAD, "not TensorRT", error);
    for (int i = 0; i < 2; i++) {
        ei_library* before = s.library;
        require(ei_library_open(argv[2], "", "", 3, &s.library, &version, why, sizeof(why), &error) == EI_OK, "library", error);
        require(i == 0 || before == s.library, "the same handle", error);
    }
    ei_offer offer;
    require(ei_library_describe(s.library, s.context, 1, &offer, &error) == EI_OK && offer.asked_builder, "offer", error);

    ei_plan plan;
    require(build(s, &plan, &error, false) == EI_OK, "build", error);
    const std::string bytes(static_cast<const char*>(plan.data), plan.size);
    ei_plan_free(&plan);
    if (version.major >= 9) require(build(s, &plan, &error, true) == EI_CANCELLED, "cancelled build", error);

    ei_slot_options options = {};
    for (const int mapped : {0, 1}) {
        for (const int graph : {0, 1}) {
            options.mapped = mapped;
            options.graph = graph;
            options.wait = mapped + graph;
            require(run(s, bytes, options, &error) == EI_OK, "run", error);
        }
    }
    options.graph = 1;
    for (const char* script : {"builder", "network", "config", "parser-object", "parse", "build"}) {
        setenv("FAKE_TRT", script, 1);
        require(build(s, &plan, &error, false) != EI_OK, script, error);
    }
    for (const char* script : {"runtime", "deserialize", "context", "address", "shape", "enqueue", "throw", "enqueue:40", "throw:60"}) {
        setenv("FAKE_TRT", script, 1);
        for (int i = 0; i < 8 && run(s, bytes, options, &error) == EI_OK; i++) {
        }
        require(error.message[0] != 0, script, error);
    }
    setenv("FAKE_TRT", "capture", 1);
    require(run(s, bytes, options, &error) == EI_OK, "without a graph", error);
    setenv("FAKE_TRT", "", 1);
    for (const char* script :
         {"fail=cuMemAlloc_v2:2", "fail=cuMemAlloc_v2:2:2", "fail=cuMemHostAlloc:2", "fail=cuStreamCreate:2", "fail=cuEventCreate:2",
          "fail=cuMemcpyHtoDAsync_v2:719", "fail=cuMemcpyDtoHAsync_v2:719", "fail=cuEventQuery:719", "fail=cuGraphLaunch:719"}) {
        setenv("FAKE_CUDA", script, 1);
        options.mapped = 0;
        require(run(s, bytes, options, &error) != EI_OK, script, error);
    }
    setenv("FAKE_CUDA", "", 1);
    for (size_t cut = 0; cut < bytes.size(); cut += 1 + bytes.size() / 64) run(s, bytes.substr(0, cut), options, &error);
    require(run(s, bytes, options, &error) == EI_OK, "run at the end", error);

    char log[4096];
    uint64_t lost = 0;
    while (ei_library_log(s.library, log, sizeof(log), &lost) > 0) {
    }
    void* library = dlopen(argv[2], RTLD_NOW);
    auto* alive = reinterpret_cast<int (*)()>(dlsym(library, "fakeAlive"));
    if (alive() != 0) {
        fprintf(stderr, "driver: %d TensorRT objects are left\n", alive());
        return 1;
    }
    cuDevicePrimaryCtxRelease_v2(device);
    puts("clean");
    return 0;
}
