#define _GNU_SOURCE
#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

enum { not_initialized = 3, not_supported = 801 };

static int uninitialized(void) { return not_initialized; }
static int unsupported(void) { return not_supported; }

static const char *const names[] = {
#define SYMBOL(name) #name,
#include "symbols.h"
#undef SYMBOL
};
enum { count = sizeof(names) / sizeof(names[0]) };

// stubs.S jumps through this table; hidden for the same reason as the stubs.
__attribute__((visibility("hidden"))) void *ei_cuda_table[count] = {[0 ... count - 1] = (void *)uninitialized};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static ei_cuda_driver driver = {.init = -1};
static int (*driver_init)(unsigned);

__attribute__((visibility("hidden"))) int cuInit(unsigned flags) {
    (void)flags;
    return 0;
}

static void load(const char *library) {
    driver.why[0] = 0;
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(driver.why, sizeof(driver.why), "%s", dlerror());
        return;
    }
    void *init = dlsym(handle, "cuInit");
    if (!init) {
        snprintf(driver.why, sizeof(driver.why), "%s: no cuInit: not a CUDA driver", library);
        dlclose(handle);
        return;
    }
    driver_init = (int (*)(unsigned))init;
    Dl_info info;
    snprintf(driver.path, sizeof(driver.path), "%s", dladdr(init, &info) && info.dli_fname ? info.dli_fname : library);
    for (int i = 0; i < count; i++) {
        void *symbol = dlsym(handle, names[i]);
        if (!symbol) driver.missing++;
        ei_cuda_table[i] = symbol ? symbol : (void *)unsupported;
    }
    driver.loaded = 1;
}

int ei_cuda_open(const char *library, ei_cuda_driver *facts) {
    pthread_mutex_lock(&lock);
    if (!driver.loaded) load(library);
    if (driver.loaded && driver.init != 0) driver.init = driver_init(0);
    *facts = driver;
    pthread_mutex_unlock(&lock);
    return facts->loaded && facts->init == 0 ? 0 : -1;
}
