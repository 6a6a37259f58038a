// Plugins: shared objects that register creators of further operators with TensorRT. Most do so in static initialisers; those for
// IPluginRegistry::loadLibrary export a list of their creators instead.
#include <dlfcn.h>
#include <link.h>

#include <cstdlib>
#include <cstring>

#include "library.h"

namespace ei {

// otherMajor returns the first libnvinfer of another major version in a text, 0 if there is none.
static int otherMajor(const char* text, int major) {
    static const char name[] = "libnvinfer.so.";
    while (text != nullptr && (text = strstr(text, name)) != nullptr) {
        text += sizeof(name) - 1;
        const int number = atoi(text);
        if (number > 0 && number != major) return number;
    }
    return 0;
}

// neededMajor applies otherMajor to the names of the libraries that an open object was linked with.
static int neededMajor(void* handle, int major) {
    const link_map* map = nullptr;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0 || map == nullptr || map->l_ld == nullptr) return 0;
    const char* texts = nullptr;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        if (entry->d_tag == DT_STRTAB) texts = reinterpret_cast<const char*>(entry->d_un.d_ptr);  // relocated by the loader
    }
    if (texts == nullptr) return 0;
    for (const ElfW(Dyn)* entry = map->l_ld; entry->d_tag != DT_NULL; entry++) {
        const int other = entry->d_tag == DT_NEEDED ? otherMajor(texts + entry->d_un.d_val, major) : 0;
        if (other != 0) return other;
    }
    return 0;
}

static int builtForOther(const char* path, int other, const ei_version& here, ei_error* error) {
    return fail(error, EI_UNSUPPORTED, "plugin %s was built for TensorRT %d, this is %d.%d.%d", path, other, here.major, here.minor,
                here.patch);
}

// openPlugin opens the file. A plugin without a dependency on libnvinfer resolves its symbols in the program, so the library's symbols are
// made global.
static void* openPlugin(const ei_library* library, const char* path, const char** why) {
    void* handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return handle;
    *why = dlerror();
    if (*why == nullptr || strstr(*why, "undefined symbol") == nullptr) return nullptr;
    if (dlopen(library->facts.path, RTLD_LAZY | RTLD_NOLOAD | RTLD_GLOBAL) == nullptr) return nullptr;
    handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    *why = handle == nullptr ? dlerror() : nullptr;
    return handle;
}

static int loadPlugin(ei_library* library, const char* path, ei_error* error) {
    const ei_version& here = library->facts;
    auto getRegistry = reinterpret_cast<void* (*)()>(dlsym(library->handle, "getPluginRegistry"));
    void* registry = getRegistry != nullptr ? getRegistry() : nullptr;
    if (registry == nullptr) return fail(error, EI_UNSUPPORTED, "%s does not support plugins", here.path);
    const int32_t before = library->family->creators(registry);

    const char* why = "unknown error";
    void* handle = openPlugin(library, path, &why);
    if (handle == nullptr) {
        const int other = otherMajor(why, here.major);
        if (other != 0) return builtForOther(path, other, here, error);
        return fail(error, EI_LOAD, "plugin not loaded: %s", why != nullptr ? why : path);
    }
    for (int i = 0; i < library->plugins; i++) {
        if (library->plugin[i] == handle) return EI_OK;
    }
    const int other = neededMajor(handle, here.major);
    if (other != 0) return builtForOther(path, other, here, error);
    const bool listed = dlsym(handle, "getCreators") != nullptr || dlsym(handle, "getPluginCreators") != nullptr;
    if (library->family->creators(registry) == before && listed && !library->family->loadPlugins(registry, path, library->version)) {
        return refused(library, error, EI_UNSUPPORTED, "plugin %s refused by TensorRT %d.%d.%d", path, here.major, here.minor, here.patch);
    }
    if (library->family->creators(registry) == before) {
        return fail(error, EI_UNSUPPORTED, "plugin %s registers no new operator with TensorRT %d.%d.%d", path, here.major, here.minor,
                    here.patch);
    }
    if (library->plugins == sizeof(library->plugin) / sizeof(library->plugin[0])) return fail(error, EI_UNSUPPORTED, "too many plugins");
    library->plugin[library->plugins++] = handle;
    return EI_OK;
}

}  // namespace ei

int ei_library_plugin(ei_library* library, const char* path, ei_error* error) {
    return ei::guarded(error, [&] {
        const ei::Loading turn;
        return ei::loadPlugin(library, path, error);
    });
}
