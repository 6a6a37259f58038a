#define _GNU_SOURCE
#include "library.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ei_gstreamer.h"

ei_gst_library ei_gst;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static int ready;       // ei_gst is complete and GStreamer initialized
static int silence;     // requested
static int writer_set;  // GLib aborts the process if a writer is set twice

// In the order in which they are searched. libgstapp brings GLib and GObject; they are named in case it does not.
static const char *const libraries[] = {
    "libglib-2.0.so.0", "libgobject-2.0.so.0", "libgstreamer-1.0.so.0", "libgstapp-1.0.so.0", "libgstvideo-1.0.so.0",
};
enum { library_count = sizeof(libraries) / sizeof(libraries[0]) };

void ei_gst_error_clear(ei_gst_error *error) {
    free(error->domain);
    free(error->element);
    free(error->message);
    free(error->debug);
    free(error->caps);
    memset(error, 0, sizeof(*error));
}

static GLogWriterOutput drop_message(GLogLevelFlags level, const GLogField *fields, size_t count, void *data) {
    (void)level, (void)fields, (void)count, (void)data;
    return EI_GST_LOG_HANDLED;
}

// silence_glib is called with the lock held.
static void silence_glib(void *glib) {
    void (*set)(GLogWriterFunc, void *, GDestroyNotify) = dlsym(glib, "g_log_set_writer_func");
    if (!set || writer_set) return;
    writer_set = 1;
    set(drop_message, NULL, NULL);
}

void ei_gst_silence(void) {
    pthread_mutex_lock(&lock);
    silence = 1;
    void *glib = dlopen(libraries[0], RTLD_NOW | RTLD_NOLOAD);
    if (glib) {
        silence_glib(glib);
        dlclose(glib);
    }
    pthread_mutex_unlock(&lock);
}

static int fail(ei_gst_error *error, const char *message) {
    error->message = strdup(message);
    return -1;
}

static void *find(void *const handles[], const char *name) {
    for (int i = 0; i < library_count; i++) {
        void *symbol = dlsym(handles[i], name);
        if (symbol) return symbol;
    }
    return NULL;
}

// load_all is called with the lock held. The libraries stay loaded, because GLib cannot be unloaded.
static int load_all(const char *prefix, ei_gst_error *error) {
    void *handles[library_count];
    for (int i = 0; i < library_count; i++) {
        char path[4096];
        snprintf(path, sizeof(path), "%s%s", prefix, libraries[i]);
        handles[i] = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (!handles[i]) return fail(error, dlerror());
    }
    ei_gst_library found;
#define FIND(result, name, parameters) \
    if (!(found.name = find(handles, #name))) return fail(error, "this GStreamer lacks " #name);
    EI_GST_FUNCTIONS(FIND)
#undef FIND
    if (silence) silence_glib(handles[0]);
    // GStreamer would replace Go's handler of SIGSEGV while it loads a plugin.
    found.gst_segtrap_set_enabled(0);
    GError *why = NULL;
    if (!found.gst_init_check(NULL, NULL, &why)) {
        fail(error, why ? ((ei_g_error *)why)->message : "GStreamer cannot be initialized");
        if (why) found.g_error_free(why);
        return -1;
    }
    ei_gst = found;
    return 0;
}

int ei_gst_load(const char *prefix, ei_gst_error *error) {
    pthread_mutex_lock(&lock);
    if (!ready) ready = load_all(prefix, error) == 0;
    int result = ready ? 0 : -1;
    pthread_mutex_unlock(&lock);
    return result;
}

char *ei_gst_version(void) {
    pthread_mutex_lock(&lock);
    char *copy = NULL;
    if (ready) {
        char *text = ei_gst.gst_version_string();
        copy = strdup(text);
        ei_gst.g_free(text);
    }
    pthread_mutex_unlock(&lock);
    return copy;
}
