// The CUDA driver as this project's C and C++ calls it: declarations of our own, served by the trampoline libcuda.a, and the calls that a
// frame needs. Every function returns the driver's code, 0 for success. Do not include NVIDIA's cuda.h beside it.
//
// A frame is one C call of the engine's own: ei_cuda_use, then copies, ei_cuda_launch, the network's enqueue, ei_cuda_launch, an event; or,
// once that sequence was captured, ei_cuda_replace_kernel for each letterbox whose image moved and cuGraphLaunch.
#pragma once

#include <stddef.h>

#include "trampoline/driver.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct CUctx_st *ei_cuda_context;
typedef struct CUstream_st *ei_cuda_stream;  // TensorRT's cudaStream_t is the same pointer
typedef struct CUevent_st *ei_cuda_event;
typedef struct CUmod_st *ei_cuda_module;
typedef struct CUfunc_st *ei_cuda_function;
typedef struct CUgraph_st *ei_cuda_graph;
typedef struct CUgraphNode_st *ei_cuda_node;
typedef struct CUgraphExec_st *ei_cuda_graph_exec;
typedef unsigned long long ei_cuda_pointer;  // device address

enum {
    EI_CUDA_OUT_OF_MEMORY = 2,
    EI_CUDA_NOT_READY = 600,      // cuEventQuery, cuStreamQuery: still running
    EI_CUDA_NOT_SUPPORTED = 801,  // the driver lacks the function
};

// ei_cuda_context_lost reports whether a code means that every later call in this process fails with the same one, by the descriptions of
// CUresult: uncorrectable memory and link errors, and kernels that failed.
static inline int ei_cuda_context_lost(int code) {
    return code == 214 || code == 220 || code == 700 || code == 702 || code == 709 || code == 710 || (code >= 714 && code <= 719);
}

// Handle by which another process opens device memory.
typedef struct ei_cuda_memory_handle {
    unsigned char bytes[64];
} ei_cuda_memory_handle;

int cuCtxSetCurrent(ei_cuda_context context);
int cuMemHostAlloc(void **memory, size_t bytes, unsigned flags);
int cuMemHostGetDevicePointer_v2(ei_cuda_pointer *device, void *memory, unsigned flags);
int cuMemFreeHost(void *memory);
int cuMemHostRegister_v2(void *memory, size_t bytes, unsigned flags);
int cuMemHostUnregister(void *memory);
int cuIpcGetMemHandle(ei_cuda_memory_handle *handle, ei_cuda_pointer memory);
int cuMemcpyAsync(ei_cuda_pointer to, ei_cuda_pointer from, size_t bytes, ei_cuda_stream stream);
int cuMemcpyHtoDAsync_v2(ei_cuda_pointer to, const void *from, size_t bytes, ei_cuda_stream stream);
int cuMemcpyDtoHAsync_v2(void *to, ei_cuda_pointer from, size_t bytes, ei_cuda_stream stream);
int cuMemcpyDtoDAsync_v2(ei_cuda_pointer to, ei_cuda_pointer from, size_t bytes, ei_cuda_stream stream);
int cuMemsetD32Async(ei_cuda_pointer to, unsigned value, size_t words, ei_cuda_stream stream);
int cuModuleLoadDataEx(ei_cuda_module *module, const void *image, unsigned count, int *options, void **values);
int cuStreamSynchronize(ei_cuda_stream stream);
int cuStreamQuery(ei_cuda_stream stream);
int cuStreamWaitEvent(ei_cuda_stream stream, ei_cuda_event event, unsigned flags);
int cuStreamBeginCapture_v2(ei_cuda_stream stream, int mode);
int cuStreamEndCapture(ei_cuda_stream stream, ei_cuda_graph *graph);
int cuStreamGetCaptureInfo_v2(ei_cuda_stream stream, int *status, unsigned long long *id, ei_cuda_graph *graph, const ei_cuda_node **last,
                              size_t *count);
int cuEventRecord(ei_cuda_event event, ei_cuda_stream stream);
int cuEventRecordWithFlags(ei_cuda_event event, ei_cuda_stream stream, unsigned flags);
int cuEventQuery(ei_cuda_event event);
int cuEventSynchronize(ei_cuda_event event);
int cuEventElapsedTime(float *milliseconds, ei_cuda_event start, ei_cuda_event end);
int cuLaunchHostFunc(ei_cuda_stream stream, void (*function)(void *), void *argument);
int cuLaunchKernel(ei_cuda_function function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x, unsigned block_y,
                   unsigned block_z, unsigned shared_bytes, ei_cuda_stream stream, void **arguments, void **extra);
int cuGraphInstantiateWithFlags(ei_cuda_graph_exec *exec, ei_cuda_graph graph, unsigned long long flags);
int cuGraphInstantiate_v2(ei_cuda_graph_exec *exec, ei_cuda_graph graph, ei_cuda_node *failed, char *log, size_t size);
int cuGraphExecUpdate(ei_cuda_graph_exec exec, ei_cuda_graph graph, ei_cuda_node *failed, int *result);
int cuGraphExecUpdate_v2(ei_cuda_graph_exec exec, ei_cuda_graph graph, void *result);
int cuGraphLaunch(ei_cuda_graph_exec exec, ei_cuda_stream stream);
int cuGraphExecDestroy(ei_cuda_graph_exec exec);
int cuGraphDestroy(ei_cuda_graph graph);
int cuGetErrorString(int code, const char **text);

// Parameters of cuGraphExecKernelNodeSetParams.
typedef struct ei_cuda_kernel_node {
    ei_cuda_function function;
    unsigned grid[3], block[3], shared_bytes;
    void **arguments, **extra;
} ei_cuda_kernel_node;
int cuGraphExecKernelNodeSetParams(ei_cuda_graph_exec exec, ei_cuda_node node, const ei_cuda_kernel_node *parameters);

// A kernel that takes one struct by value. The struct is read during the call that gets the kernel and may change afterwards.
typedef struct ei_cuda_kernel {
    ei_cuda_function function;
    unsigned grid[3], block[3];
    const void *arguments;
    size_t size;
} ei_cuda_kernel;

// ei_cuda_use makes the context current on the calling thread. Every entry from Go begins with it, because Go moves between threads.
static inline int ei_cuda_use(ei_cuda_context context) { return cuCtxSetCurrent(context); }

// EI_CUDA_EXTRA passes the argument struct as one block: 1 and 2 name the pointer to the block and to its size, 0 ends the list.
#define EI_CUDA_EXTRA(kernel) \
    { (void *)1, (void *)(kernel)->arguments, (void *)2, (void *)&(kernel)->size, (void *)0 }

static inline int ei_cuda_launch(const ei_cuda_kernel *k, ei_cuda_stream stream) {
    void *extra[] = EI_CUDA_EXTRA(k);
    return cuLaunchKernel(k->function, k->grid[0], k->grid[1], k->grid[2], k->block[0], k->block[1], k->block[2], 0, stream, NULL, extra);
}

// ei_cuda_begin starts capture in thread-local mode (1): other threads' calls do not spoil it. The calls up to ei_cuda_end must come from
// the same thread.
static inline int ei_cuda_begin(ei_cuda_stream stream) { return cuStreamBeginCapture_v2(stream, 1); }

// ei_cuda_captured returns the node of the last captured call, for ei_cuda_replace_kernel.
static inline int ei_cuda_captured(ei_cuda_stream stream, ei_cuda_node *node) {
    int status = 0;
    unsigned long long id = 0;
    ei_cuda_graph graph = NULL;
    const ei_cuda_node *last = NULL;
    size_t count = 0;
    int code = cuStreamGetCaptureInfo_v2(stream, &status, &id, &graph, &last, &count);
    if (code) return code;
    if (status != 1 || count != 1) return 1;
    *node = last[0];
    return 0;
}

// ei_cuda_record records an event that can be waited for and queried from outside also when it is part of a graph (flag 1). Drivers before
// CUDA 11.1 cannot do that in a graph; there the capture fails and the caller goes on without a graph.
static inline int ei_cuda_record(ei_cuda_event event, ei_cuda_stream stream, int captured) {
    return captured ? cuEventRecordWithFlags(event, stream, 1) : cuEventRecord(event, stream);
}

// ei_cuda_end ends capture and instantiates. The graph owns the captured nodes: keep it as long as exec, free both with ei_cuda_free_graph.
// On failure the stream is out of capture mode, both are NULL and work can go on without a graph.
static inline int ei_cuda_end(ei_cuda_stream stream, ei_cuda_graph *graph, ei_cuda_graph_exec *exec) {
    *graph = NULL;
    *exec = NULL;
    int code = cuStreamEndCapture(stream, graph);
    if (code == 0 && *graph == NULL) code = 900;  // nothing was captured
    if (code == 0) {
        code = cuGraphInstantiateWithFlags(exec, *graph, 0);
        if (code == EI_CUDA_NOT_SUPPORTED) code = cuGraphInstantiate_v2(exec, *graph, NULL, NULL, 0);  // before CUDA 11.4
    }
    if (code && *graph) {
        cuGraphDestroy(*graph);
        *graph = NULL;
    }
    return code;
}

static inline int ei_cuda_free_graph(ei_cuda_graph graph, ei_cuda_graph_exec exec) {
    int first = exec ? cuGraphExecDestroy(exec) : 0;
    int second = graph ? cuGraphDestroy(graph) : 0;
    return first ? first : second;
}

// ei_cuda_update makes exec run another graph of the same shape. When it fails (910 for another shape) exec still runs the old one.
static inline int ei_cuda_update(ei_cuda_graph_exec exec, ei_cuda_graph graph) {
    ei_cuda_node failed = NULL;
    int result = 0;
    int code = cuGraphExecUpdate(exec, graph, &failed, &result);
    if (code == EI_CUDA_NOT_SUPPORTED) {  // an own struct of the size and order that 12.x fills
        struct {
            int result;
            ei_cuda_node failed, from;
        } info = {0, NULL, NULL};
        code = cuGraphExecUpdate_v2(exec, graph, &info);
    }
    return code;
}

// ei_cuda_replace_kernel gives a captured launch other arguments or another grid; launches already enqueued keep theirs.
static inline int ei_cuda_replace_kernel(ei_cuda_graph_exec exec, ei_cuda_node node, const ei_cuda_kernel *k) {
    void *extra[] = EI_CUDA_EXTRA(k);
    ei_cuda_kernel_node parameters = {k->function, {k->grid[0], k->grid[1], k->grid[2]}, {k->block[0], k->block[1], k->block[2]}, 0, NULL,
                                      extra};
    return cuGraphExecKernelNodeSetParams(exec, node, &parameters);
}

#ifdef __cplusplus
}
#endif
