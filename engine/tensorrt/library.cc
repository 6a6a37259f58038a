#include "library.h"

#include <dirent.h>
#include <dlfcn.h>
#include <time.h>

#include <cstdarg>
#include <cstdio>
#include <cstring>
#include <new>

namespace ei {

// loaded are the libraries of this process; see ei_library_open.
pthread_mutex_t Loading::mutex = PTHREAD_MUTEX_INITIALIZER;
static ei_library* loaded = nullptr;

static int failList(ei_error* error, int code, const char* format, va_list arguments) {
    error->code = code;
    vsnprintf(error->message, sizeof(error->message), format, arguments);
    return code;
}

int fail(ei_error* error, int code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    failList(error, code, format, arguments);
    va_end(arguments);
    return code;
}

int refused(ei_library* library, ei_error* error, int code, const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    failList(error, code, format, arguments);
    va_end(arguments);
    const size_t used = strlen(error->message);
    char lines[sizeof(error->message)];
    library->log.errors(lines, sizeof(lines));
    if (lines[0] != 0 && used + 3 < sizeof(error->message)) {
        snprintf(error->message + used, sizeof(error->message) - used, ": %.*s", static_cast<int>(sizeof(error->message) - used - 3),
                 lines);
    }
    return code;
}

int driver(ei_error* error, int code, const char* what) {
    const char* text = nullptr;
    if (cuGetErrorString(code, &text) != 0 || text == nullptr) text = "unknown error";
    const int kind = code == EI_CUDA_OUT_OF_MEMORY ? EI_MEMORY : ei_cuda_context_lost(code) ? EI_CONTEXT : EI_CUDA;
    return fail(error, kind, "%s: CUDA error %d: %s", what, code, text);
}

int64_t now() {
    timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return int64_t{t.tv_sec} * 1000000000 + t.tv_nsec;
}

// familyOf selects the slot tables. From 10 on a version number has two digits for the minor version; numbers in between are TensorRT RTX.
static const Family* familyOf(int version) {
    if (version >= 8500 && version < 10000) return &family8;
    if (version >= 100000 && version < 110000) return &family10;
    if (version >= 110000 && version < 120000) return &family11;
    return nullptr;
}

static void splitVersion(int number, ei_version* version) {
    const int unit = number < 10000 ? 1000 : 10000;
    version->number = number;
    version->major = number / unit;
    version->minor = number % unit / 100;
    version->patch = number % 100;
}

// beside returns a companion library with the directory and suffix of the main one: libnvonnxparser.so.8 for libnvinfer.so.8.
static void beside(const char* path, const char* companion, char* result, size_t size) {
    const char* slash = strrchr(path, '/');
    const char* file = slash != nullptr ? slash + 1 : path;
    const char* suffix = strstr(file, ".so");
    snprintf(result, size, "%.*s%s%s", static_cast<int>(file - path), path, companion, suffix != nullptr ? suffix : ".so");
}

static void* openCompanion(const char* path, const char* given, const char* companion, char* why, size_t why_size) {
    char name[600];
    if (given != nullptr && given[0] != 0) {
        snprintf(name, sizeof(name), "%s", given);
    } else {
        beside(path, companion, name, sizeof(name));
    }
    void* handle = dlopen(name, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
        const size_t used = strlen(why);
        const char* text = dlerror();
        snprintf(why + used, why_size - used, "%s%s", used > 0 ? "\n" : "", text != nullptr ? text : name);
    }
    return handle;
}

// openResources opens the builder's kernel libraries next to libnvinfer. TensorRT opens them by name, which finds open libraries but not a
// directory outside the loader's search path.
static void openResources(const ei_library* library) {
    const ei_version& facts = library->facts;
    const char* slash = strrchr(facts.path, '/');
    if (slash == nullptr) return;
    char directory[sizeof(facts.path)], release[48];
    snprintf(directory, sizeof(directory), "%.*s", static_cast<int>(slash - facts.path + 1), facts.path);
    snprintf(release, sizeof(release), ".so.%d.%d.%d", facts.major, facts.minor, facts.patch);
    DIR* entries = opendir(directory);
    if (entries == nullptr) return;
    while (const dirent* entry = readdir(entries)) {
        static const char prefix[] = "libnvinfer_builder_resource";
        const size_t length = strlen(entry->d_name), tail = strlen(release);
        if (strncmp(entry->d_name, prefix, sizeof(prefix) - 1) != 0 || length < tail) continue;
        if (strcmp(entry->d_name + length - tail, release) != 0) continue;
        if (strstr(entry->d_name, "_win") != nullptr) continue;  // kernels for Windows
        char path[sizeof(directory) + sizeof(entry->d_name)];
        snprintf(path, sizeof(path), "%s%s", directory, entry->d_name);
        dlopen(path, RTLD_LAZY | RTLD_LOCAL);  // TensorRT itself reports what cannot be opened
    }
    closedir(entries);
}

void* createBuilder(ei_library* library) {
    {
        const Loading turn;
        if (!library->resources) openResources(library);
        library->resources = true;
    }
    return library->createBuilder(library->logger.object, library->version);
}

template <typename Function>
static bool find(void* handle, const char* name, Function* function) {
    *function = reinterpret_cast<Function>(dlsym(handle, name));
    return *function != nullptr;
}

static void pathOf(void* symbol, const char* fallback, char* text, size_t size) {
    Dl_info info;
    snprintf(text, size, "%s", dladdr(symbol, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : fallback);
}

static int describe(void* handle, const char* path, const char* parser, const char* plugin, ei_library* library, ei_error* error) {
    ei_version* facts = &library->facts;
    int32_t (*getVersion)() = nullptr;
    if (!find(handle, "getInferLibVersion", &getVersion) || !find(handle, "createInferRuntime_INTERNAL", &library->createRuntime)) {
        return fail(error, EI_LOAD, "%s: not TensorRT: createInferRuntime_INTERNAL or getInferLibVersion is missing", path);
    }
    library->version = getVersion();
    splitVersion(library->version, facts);
    int32_t (*getBuild)() = nullptr;
    if (find(handle, "getInferLibBuildVersion", &getBuild)) facts->build = getBuild();
    pathOf(reinterpret_cast<void*>(getVersion), path, facts->path, sizeof(facts->path));
    library->family = familyOf(library->version);
    if (library->family == nullptr) {
        return fail(error, EI_UNSUPPORTED, "%s: version number %d; TensorRT 8.5 to 11.x are supported", facts->path, library->version);
    }
    library->logger = library->family->logger(&library->log);
    if (library->logger.object == nullptr) return fail(error, EI_MEMORY, "out of memory");
    facts->builder = find(handle, "createInferBuilder_INTERNAL", &library->createBuilder);
    if (!facts->builder) return EI_OK;

    if (void* plugins = openCompanion(facts->path, plugin, "libnvinfer_plugin", library->why, sizeof(library->why))) {
        bool (*init)(void*, const char*) = nullptr;
        if (find(plugins, "initLibNvInferPlugins", &init)) {
            facts->plugin = init(library->logger.object, "");
            pathOf(reinterpret_cast<void*>(init), plugin, facts->plugin_path, sizeof(facts->plugin_path));
        }
    }
    if (void* onnx = openCompanion(facts->path, parser, "libnvonnxparser", library->why, sizeof(library->why))) {
        int (*getParserVersion)() = nullptr;
        if (find(onnx, "createNvOnnxParser_INTERNAL", &library->createParser)) {
            facts->parser = 1;
            pathOf(reinterpret_cast<void*>(library->createParser), parser, facts->parser_path, sizeof(facts->parser_path));
        }
        if (find(onnx, "getNvOnnxParserVersion", &getParserVersion)) library->parserVersion = getParserVersion();
    }
    return EI_OK;
}

static int openLibrary(const char* path, const char* parser, const char* plugin, ei_library** library, ei_error* error) {
    void* handle = dlopen(path, RTLD_LAZY | RTLD_LOCAL);
    if (handle == nullptr) {
        const char* text = dlerror();
        return fail(error, EI_LOAD, "%s", text != nullptr ? text : path);
    }
    for (*library = loaded; *library != nullptr; *library = (*library)->next) {
        if ((*library)->handle == handle) return EI_OK;
    }
    auto* opened = new (std::nothrow) ei_library();
    if (opened == nullptr) return fail(error, EI_MEMORY, "out of memory");
    opened->handle = handle;
    if (const int code = describe(handle, path, parser, plugin, opened, error)) {
        opened->logger.drop();
        delete opened;
        return code;
    }
    opened->next = loaded;
    *library = loaded = opened;
    return EI_OK;
}

}  // namespace ei

int ei_library_open(const char* path, const char* parser, const char* plugin, int threshold, ei_library** library, ei_version* version,
                    char* why, size_t why_size, ei_error* error) {
    *library = nullptr;
    return ei::guarded(error, [&] {
        const ei::Loading turn;
        const int code = ei::openLibrary(path, parser, plugin, library, error);
        if (code != EI_OK) return code;
        (*library)->log.setThreshold(threshold);
        *version = (*library)->facts;
        snprintf(why, why_size, "%s", (*library)->why);
        return code;
    });
}

size_t ei_library_log(ei_library* library, char* text, size_t size, uint64_t* lost) { return library->log.drain(text, size, lost); }
