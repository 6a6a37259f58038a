// Runs the trampoline and everything of ei_cuda.h against the fake driver; sanitize_test.go builds all three with the sanitizers.
// usage: exercise DRIVER
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ei_cuda.h"

int cuInit(unsigned flags);
int cuDevicePrimaryCtxRetain(ei_cuda_context *context, int device);
int cuDevicePrimaryCtxRelease_v2(int device);
int cuMemAlloc_v2(ei_cuda_pointer *memory, size_t bytes);
int cuMemFree_v2(ei_cuda_pointer memory);
int cuModuleGetFunction(ei_cuda_function *function, ei_cuda_module module, const char *name);
int cuModuleUnload(ei_cuda_module module);
int cuStreamCreate(ei_cuda_stream *stream, unsigned flags);
int cuStreamDestroy_v2(ei_cuda_stream stream);
int cuEventCreate(ei_cuda_event *event, unsigned flags);
int cuEventDestroy_v2(ei_cuda_event event);
int cuTexRefGetFlags(unsigned *flags, void *texture);

#define EXPECT(want, call)                                                              \
    do {                                                                                \
        int got_ = (call);                                                              \
        if (got_ != (want)) {                                                           \
            fprintf(stderr, "line %d: %s = %d, not %d\n", __LINE__, #call, got_, want); \
            exit(1);                                                                    \
        }                                                                               \
    } while (0)

static const char *library;

static void *opener(void *result) {
    ei_cuda_driver facts;
    *(int *)result = ei_cuda_open(library, &facts);
    return NULL;
}

static void add(void *sum) { ++*(int *)sum; }

int main(int count, char **arguments) {
    if (count != 2) return 2;
    ei_cuda_driver facts;
    ei_cuda_stream stream = NULL;

    // Before a driver is there: refusals, not crashes, and a cuInit that lets gorgonia.org/cu start.
    EXPECT(0, cuInit(0));
    EXPECT(3, cuStreamCreate(&stream, 1));
    EXPECT(3, ei_cuda_use(NULL));
    EXPECT(-1, ei_cuda_open("/no/such/libcuda.so.1", &facts));
    EXPECT(0, facts.loaded);
    EXPECT(0, strstr(facts.why, "/no/such/libcuda.so.1") == NULL);
    char name[2000];  // longer than the message buffer
    memset(name, 'x', sizeof(name) - 1);
    name[sizeof(name) - 1] = 0;
    EXPECT(-1, ei_cuda_open(name, &facts));

    library = arguments[1];
    setenv("FAKE_CUDA", "init=100", 1);
    EXPECT(-1, ei_cuda_open(library, &facts));
    EXPECT(100, facts.init);
    setenv("FAKE_CUDA", "", 1);
    pthread_t threads[8];
    int results[8];
    for (int i = 0; i < 8; i++) pthread_create(&threads[i], NULL, opener, &results[i]);
    for (int i = 0; i < 8; i++) {
        pthread_join(threads[i], NULL);
        EXPECT(0, results[i]);
    }
    EXPECT(0, ei_cuda_open("another name is ignored now", &facts));
    EXPECT(0, strcmp(facts.path, library));
    unsigned flags;
    EXPECT(801, cuTexRefGetFlags(&flags, NULL));  // the fake driver has no textures

    ei_cuda_context context = NULL;
    EXPECT(0, cuDevicePrimaryCtxRetain(&context, 0));
    EXPECT(0, ei_cuda_use(context));
    EXPECT(0, cuStreamCreate(&stream, 1));
    ei_cuda_event event = NULL;
    EXPECT(0, cuEventCreate(&event, 0));
    uint32_t *host = NULL;
    ei_cuda_pointer mapped = 0, device = 0;
    EXPECT(0, cuMemHostAlloc((void **)&host, 1024, 3));
    EXPECT(0, cuMemHostGetDevicePointer_v2(&mapped, host, 0));
    EXPECT(0, cuMemAlloc_v2(&device, 1024));
    ei_cuda_module module = NULL;
    ei_cuda_function function = NULL;
    EXPECT(0, cuModuleLoadDataEx(&module, ".visible .entry nothing(", 0, NULL, NULL));
    EXPECT(0, cuModuleGetFunction(&function, module, "nothing"));

    struct {
        uint64_t a, b;
    } block = {1, 2};
    ei_cuda_kernel kernel = {function, {2, 1, 1}, {32, 1, 1}, &block, sizeof(block)};
    int calls = 0;
    ei_cuda_graph graph = NULL, other = NULL;
    ei_cuda_graph_exec exec = NULL, second = NULL;
    ei_cuda_node node = NULL;
    for (int round = 0; round < 2; round++) {
        EXPECT(0, ei_cuda_begin(stream));
        EXPECT(0, cuMemsetD32Async(mapped, (unsigned)round + 5, 256, stream));
        EXPECT(0, ei_cuda_launch(&kernel, stream));
        EXPECT(0, ei_cuda_captured(stream, &node));
        EXPECT(0, cuMemcpyAsync(device, mapped, 1024, stream));
        EXPECT(0, ei_cuda_record(event, stream, 1));
        EXPECT(0, cuStreamWaitEvent(stream, event, 0));
        EXPECT(0, cuLaunchHostFunc(stream, add, &calls));
        EXPECT(0, round ? ei_cuda_end(stream, &other, &second) : ei_cuda_end(stream, &graph, &exec));
        if (!round) EXPECT(0, ei_cuda_replace_kernel(exec, node, &kernel));
    }
    EXPECT(0, calls);
    EXPECT(0, cuGraphLaunch(exec, stream));
    EXPECT(5, (int)host[255]);
    EXPECT(0, ei_cuda_update(exec, other));
    EXPECT(0, ei_cuda_free_graph(other, second));
    EXPECT(0, cuGraphLaunch(exec, stream));
    EXPECT(6, (int)((uint32_t *)(uintptr_t)device)[255]);
    EXPECT(2, calls);
    EXPECT(0, cuStreamSynchronize(stream));
    EXPECT(0, ei_cuda_free_graph(graph, exec));
    EXPECT(400, ei_cuda_free_graph(graph, exec));
    EXPECT(1, ei_cuda_captured(stream, &node));

    // A call that a capture does not allow: no graph, and the stream works on.
    EXPECT(0, ei_cuda_begin(stream));
    EXPECT(900, cuStreamSynchronize(stream));
    EXPECT(901, ei_cuda_launch(&kernel, stream));
    EXPECT(901, ei_cuda_end(stream, &graph, &exec));
    EXPECT(1, graph == NULL && exec == NULL);
    EXPECT(0, ei_cuda_launch(&kernel, stream));
    setenv("FAKE_CUDA", "fail=cuLaunchKernel:719", 1);
    EXPECT(719, ei_cuda_launch(&kernel, stream));
    setenv("FAKE_CUDA", "", 1);
    EXPECT(1, cuMemcpyAsync(device, mapped, 1025, stream));

    EXPECT(0, cuModuleUnload(module));
    EXPECT(0, cuMemFree_v2(device));
    EXPECT(0, cuMemFreeHost(host));
    EXPECT(0, cuEventDestroy_v2(event));
    EXPECT(0, cuStreamDestroy_v2(stream));
    EXPECT(0, cuDevicePrimaryCtxRelease_v2(0));
    EXPECT(201, cuStreamCreate(&stream, 1));
    return 0;
}
