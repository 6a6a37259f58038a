// A plugin of the fake TensorRT: it registers the operator FAKE_OPERATOR with the library at FAKE_LIBRARY, if that is loaded, in a static
// initialiser, or with FAKE_LISTED in the list for IPluginRegistry::loadLibrary. With FAKE_LINKED the linker resolves the registry;
// FAKE_IDLE registers nothing.
#include <dlfcn.h>

#include <cstdint>

static const char* creator[] = {FAKE_OPERATOR};

#ifdef FAKE_LISTED
extern "C" __attribute__((visibility("default"))) const char*** getCreators(int32_t* count) {
    static const char** creators[] = {creator};
    *count = 1;
    return creators;
}
#elif !defined(FAKE_IDLE)
extern "C" void* getPluginRegistry();

static void* find() {
#ifdef FAKE_LINKED
    return getPluginRegistry();
#else
    void* library = dlopen(FAKE_LIBRARY, RTLD_LAZY | RTLD_NOLOAD);
    auto get = reinterpret_cast<void* (*)()>(library != nullptr ? dlsym(library, "getPluginRegistry") : nullptr);
    return get != nullptr ? get() : nullptr;
#endif
}

__attribute__((constructor)) static void enter() {
    void* registry = find();
    if (registry == nullptr) return;
    auto** table = *static_cast<void***>(registry);
    reinterpret_cast<bool (*)(void*, const char**, const char*)>(table[FAKE_REGISTER])(registry, creator, "");
}
#endif
