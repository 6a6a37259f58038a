// GStreamer behind a trampoline, for release builds: OpenCV is linked statically and names these functions, but the libraries are loaded
// when a camera first needs them. Without them gst_init_check fails, OpenCV has no GStreamer backend, and everything else works.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stddef.h>

// GStreamer's variables that OpenCV reads, copied once GStreamer has filled them. GST_CAT_DEFAULT and the level belong to its debug log,
// which stays silent.
__attribute__((visibility("hidden"))) size_t _gst_caps_type, _gst_fraction_type, _gst_message_type;
__attribute__((visibility("hidden"))) int _gst_debug_min;
__attribute__((visibility("hidden"))) void *GST_CAT_DEFAULT;

static const char *const libraries[] = {
    "libgstreamer-1.0.so.0", "libgstbase-1.0.so.0", "libgstvideo-1.0.so.0",   "libgstaudio-1.0.so.0",
    "libgstapp-1.0.so.0",    "libgstriff-1.0.so.0", "libgstpbutils-1.0.so.0",
};

static const char *const names[] = {
#define SYMBOL(name) #name,
#include "symbols.h"
#undef SYMBOL
};
enum { count = sizeof(names) / sizeof(names[0]) };

static size_t nothing(void) { return 0; }

__attribute__((visibility("hidden"))) void *ei_gstreamer_table[count] = {[0 ... count - 1] = (void *)nothing};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int (*init_check)(int *, char ***, void **);

static void *find(void *const handles[], const char *name) {
    // RTLD_LOCAL libraries are searched one by one; each brings its dependencies, GLib among them.
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        void *symbol = dlsym(handles[i], name);
        if (symbol) return symbol;
    }
    return NULL;
}

static int load(void) {
    void *handles[sizeof(libraries) / sizeof(libraries[0])];
    for (size_t i = 0; i < sizeof(libraries) / sizeof(libraries[0]); i++) {
        handles[i] = dlopen(libraries[i], RTLD_NOW | RTLD_LOCAL);
        if (!handles[i]) return 0;
    }
    for (int i = 0; i < count; i++) {
        void *symbol = find(handles, names[i]);
        if (!symbol) return 0;
        ei_gstreamer_table[i] = symbol;
    }
    int (*check)(int *, char ***, void **) = find(handles, "gst_init_check");
    if (!check || !check(NULL, NULL, NULL)) return 0;
    size_t *variables[] = {&_gst_caps_type, &_gst_fraction_type, &_gst_message_type};
    const char *variable_names[] = {"_gst_caps_type", "_gst_fraction_type", "_gst_message_type"};
    for (size_t i = 0; i < sizeof(variables) / sizeof(variables[0]); i++) {
        size_t *value = find(handles, variable_names[i]);
        if (!value) return 0;
        *variables[i] = *value;
    }
    init_check = check;
    return 1;
}

__attribute__((visibility("hidden"))) int gst_init_check(int *argc, char ***argv, void **error) {
    pthread_mutex_lock(&lock);
    int ready = init_check != NULL || load();
    pthread_mutex_unlock(&lock);
    return ready && init_check(argc, argv, error);
}
