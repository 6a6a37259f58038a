// An open TensorRT library for the runtime and the builder.
#pragma once

#include "family.h"
#include "log.h"
#include "shim.h"

struct ei_library {
    void* handle = nullptr;
    ei::Log log;
    const ei::Family* family = nullptr;
    ei::Adapter logger;
    int version = 0;
    void* (*createRuntime)(void* logger, int32_t version) = nullptr;
    void* (*createBuilder)(void* logger, int32_t version) = nullptr;
    void* (*createParser)(void* network, void* logger, int version) = nullptr;
    int parserVersion = 100;
    ei_version facts = {};
    char why[1024] = {};
    bool resources = false;  // the builder's kernel libraries are open
    void* plugin[32] = {};   // loaded by ei_library_plugin
    int plugins = 0;
    ei_library* next = nullptr;
};

namespace ei {

// fail sets the error and returns its code.
__attribute__((format(printf, 3, 4))) int fail(ei_error* error, int code, const char* format, ...);
// refused is fail with the library's error lines of this operation appended.
__attribute__((format(printf, 4, 5))) int refused(ei_library* library, ei_error* error, int code, const char* format, ...);
// driver is fail for an error code of the CUDA driver.
int driver(ei_error* error, int code, const char* what);

// guarded runs the body and converts exceptions into errors.
template <typename Body>
int guarded(ei_error* error, Body body) {
    try {
        return body();
    } catch (...) {
        return fail(error, EI_TENSORRT, "exception out of TensorRT");
    }
}

int64_t now();

// Loading holds the lock under which libraries are loaded one after another.
class Loading {
   public:
    Loading() { pthread_mutex_lock(&mutex); }
    ~Loading() { pthread_mutex_unlock(&mutex); }
    Loading(const Loading&) = delete;
    Loading& operator=(const Loading&) = delete;

   private:
    static pthread_mutex_t mutex;
};

// createBuilder creates a builder with the kernel libraries next to the library; null if TensorRT fails.
void* createBuilder(ei_library* library);

}  // namespace ei
