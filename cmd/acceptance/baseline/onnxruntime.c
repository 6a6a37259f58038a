// Baseline for ONNX Runtime: one session runs one network on a constant input and does nothing else. The CPU benchmarks of edge-infer are
// ratios to its output.
//
// usage: onnxruntime LIBONNXRUNTIME NET.onnx THREADS SPIN SECONDS
// SPIN is 1 if threads wait in a busy loop, 0 if they sleep. Dynamic dimensions become 1 for the batch and 640 for the others. Prints one
// JSON line.
#include <dlfcn.h>
#include <onnxruntime_c_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

enum { MAX_DIMENSIONS = 8, MAX_RUNS = 1 << 20 };

static const OrtApi *api;

static void check(OrtStatus *status) {
    if (status == NULL) return;
    fprintf(stderr, "onnxruntime baseline: %s\n", api->GetErrorMessage(status));
    exit(1);
}

static void die(const char *what) {
    fprintf(stderr, "onnxruntime baseline: %s\n", what);
    exit(1);
}

static double seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double processor(void) {
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static int ascending(const void *a, const void *b) {
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double percentile(const double *sorted, int count, double p) {
    const int at = (int)(p * count);
    return sorted[at < count ? at : count - 1] * 1e6;
}

// input is a tensor of numbers between 0 and 1 for the network's only input.
static OrtValue *input(OrtSession *session, OrtAllocator *allocator) {
    OrtTypeInfo *type = NULL;
    const OrtTensorTypeAndShapeInfo *info = NULL;
    size_t dimensions = 0, count = 1;
    int64_t shape[MAX_DIMENSIONS] = {0};
    check(api->SessionGetInputTypeInfo(session, 0, &type));
    check(api->CastTypeInfoToTensorInfo(type, &info));
    check(api->GetDimensionsCount(info, &dimensions));
    if (dimensions > MAX_DIMENSIONS) die("too many dimensions");
    check(api->GetDimensions(info, shape, dimensions));
    for (size_t i = 0; i < dimensions; i++) {
        if (shape[i] < 0) shape[i] = i == 0 ? 1 : 640;
        count *= (size_t)shape[i];
    }
    api->ReleaseTypeInfo(type);
    OrtValue *value = NULL;
    float *data = NULL;
    check(api->CreateTensorAsOrtValue(allocator, shape, dimensions, ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT, &value));
    check(api->GetTensorMutableData(value, (void **)&data));
    for (size_t i = 0; i < count; i++) data[i] = (float)(i % 255) / 255;
    return value;
}

int main(int argc, char **argv) {
    if (argc != 6) {
        fputs("usage: onnxruntime LIBONNXRUNTIME NET.onnx THREADS SPIN SECONDS\n", stderr);
        return 2;
    }
    void *library = dlopen(argv[1], RTLD_NOW | RTLD_LOCAL);
    if (library == NULL) die(dlerror());
    const OrtApiBase *(*base)(void) = NULL;
    *(void **)&base = dlsym(library, "OrtGetApiBase");
    if (base == NULL) die("no OrtGetApiBase");
    api = base()->GetApi(ORT_API_VERSION);
    if (api == NULL) die("the library is older than the header");

    OrtEnv *environment = NULL;
    OrtSessionOptions *options = NULL;
    OrtSession *session = NULL;
    OrtAllocator *allocator = NULL;
    check(api->CreateEnv(ORT_LOGGING_LEVEL_ERROR, "baseline", &environment));
    check(api->CreateSessionOptions(&options));
    check(api->SetIntraOpNumThreads(options, atoi(argv[3])));
    check(api->AddSessionConfigEntry(options, "session.intra_op.allow_spinning", argv[4]));
    check(api->CreateSession(environment, argv[2], options, &session));
    check(api->GetAllocatorWithDefaultOptions(&allocator));
    char *in = NULL, *out = NULL;
    check(api->SessionGetInputName(session, 0, allocator, &in));
    check(api->SessionGetOutputName(session, 0, allocator, &out));
    const OrtValue *inputs[] = {input(session, allocator)};
    const char *in_names[] = {in}, *out_names[] = {out};
    OrtValue *outputs[] = {NULL};

    // The output of the first run is used again by the others.
    for (int i = 0; i < 5; i++) check(api->Run(session, NULL, in_names, inputs, 1, out_names, 1, outputs));

    const double limit = atof(argv[5]);
    double *took = malloc(sizeof(double) * MAX_RUNS);
    if (took == NULL) die("no memory");
    int runs = 0;
    const double used = processor(), begun = seconds();
    double now = begun;
    while (now - begun < limit && runs < MAX_RUNS) {
        check(api->Run(session, NULL, in_names, inputs, 1, out_names, 1, outputs));
        const double done = seconds();
        took[runs++] = done - now;
        now = done;
    }
    const double elapsed = now - begun, cpu = processor() - used;
    qsort(took, (size_t)runs, sizeof(double), ascending);
    printf(
        "{\"what\": \"baseline\", \"onnxruntime\": \"%s\", \"threads\": %d, \"spin\": %s, \"frames_per_second\": %.2f, "
        "\"cpu_us_per_frame\": "
        "%.1f, "
        "\"latency_us_p50\": %.1f, \"latency_us_p99\": %.1f, \"latency_us_p999\": %.1f, \"n\": %d}\n",
        base()->GetVersionString(), atoi(argv[3]), strcmp(argv[4], "0") == 0 ? "false" : "true", runs / elapsed, cpu / runs * 1e6,
        percentile(took, runs, 0.5), percentile(took, runs, 0.99), percentile(took, runs, 0.999), runs);
    return 0;
}
