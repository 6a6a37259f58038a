// A TensorRT for tests, made from the slot tables. It builds "plans" from a small text instead of ONNX (see model.h), runs a few networks
// on the CPU on the fake CUDA driver's streams, checks every call and its object, and fails on request. fake.Build compiles it once per
// ABI family with FAKE_FAMILY 8, 10 or 11 and FAKE_VERSION.
//
// FAKE_TRT      comma-separated failures, read at every call: runtime builder network config parser-object parse parse-many build tactics
//               deserialize context address shape enqueue capture throw cancel-ignored; NAME:N fails from the Nth such call of the process
//               on
// FAKE_TRT_HELD file that blocks a build while it exists
// FAKE_TRT_LOG  file with one line per call
// FAKE_TRT_CUDA path of the fake driver, whose streams run the networks; by default EDGE_INFER_LIBCUDA
#include <dlfcn.h>
#include <unistd.h>

#include <atomic>
#include <cmath>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "model.h"
#if FAKE_FAMILY == 8
#include "slots8.h"
using Abi = ei::Abi8;
#elif FAKE_FAMILY == 10
#include "slots10.h"
using Abi = ei::Abi10;
#else
#include "slots11.h"
using Abi = ei::Abi11;
#endif

using Dims = Abi::Dims;
using ei::Slot;

namespace {

constexpr int kSlots = 128;
std::mutex mutex;
std::map<std::string, int> calls;
std::atomic<int> alive{0};

void record(const char* format, ...) {
    const char* path = getenv("FAKE_TRT_LOG");
    if (path == nullptr) return;
    std::lock_guard<std::mutex> lock(mutex);
    FILE* file = fopen(path, "a");
    if (file == nullptr) return;
    va_list arguments;
    va_start(arguments, format);
    vfprintf(file, format, arguments);
    va_end(arguments);
    fputc('\n', file);
    fclose(file);
}

// complain ends the test program, because a violated rule is a defect of the shim.
[[noreturn]] void complain(const char* format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("fake TensorRT: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    abort();
}

bool fails(const std::string& what) {
    std::lock_guard<std::mutex> lock(mutex);
    const int call = ++calls[what];
    const char* settings = getenv("FAKE_TRT");
    if (settings == nullptr) return false;
    std::string list = settings;
    for (size_t at = 0; at <= list.size();) {
        size_t end = list.find(',', at);
        if (end == std::string::npos) end = list.size();
        std::string entry = list.substr(at, end - at);
        at = end + 1;
        const size_t colon = entry.find(':');
        int from = 1;
        if (colon != std::string::npos) {
            from = atoi(entry.c_str() + colon + 1);
            entry.resize(colon);
        }
        if (entry == what && call >= from) return true;
    }
    return false;
}

// The library's side of an object of the application, with the family's table and slots.
template <typename Result, typename... Arguments>
Result ask(void* object, int slot, Arguments... arguments) {
    return ei::direct<Result, Arguments...>(object, Slot{slot}, arguments...);
}

void checkVersioned(void* object, const char* kind) {
    if (ask<int32_t>(object, 0) != 0) complain("%s: getAPILanguage is not C++", kind);
    const auto info = ask<ei::InterfaceInfo>(object, 1);
    if (strcmp(info.kind, kind) != 0 || info.major != 1 || info.minor != 0)
        complain("%s is given as %s %d.%d", kind, info.kind, info.major, info.minor);
}

void* logger = nullptr;

void say(int32_t severity, const std::string& text) {
    if (logger == nullptr) return;
    if (Abi::kVersionedLogger) {
        checkVersioned(logger, "ILogger");
        ask<void>(logger, 4, severity, text.c_str());
    } else {
        ask<void>(logger, 0, severity, text.c_str());
    }
}

// Impl is the half of an object with the methods, Public the half that the application sees.
struct Public {
    void** vtable;
    void* impl;
};

struct Impl {
    void** vtable;
    const char* kind;
    Public object;
    void* fields[6];  // so that a table read at a wrong offset is detected
};

template <int N>
void unexpected(Impl* self) {
    complain("%s: slot %d is not for the shim to call", self->kind, N);
}

template <int... N>
void fillUnexpected(void** table, std::integer_sequence<int, N...>) {
    ((table[N] = reinterpret_cast<void*>(&unexpected<N>)), ...);
}

struct Table {
    void* slots[kSlots];
    Table() { fillUnexpected(slots, std::make_integer_sequence<int, kSlots>()); }

    template <typename Function>
    void set(Slot slot, Function function) {
        if (slot.in(FAKE_VERSION)) slots[slot.index] = reinterpret_cast<void*>(+function);
    }
};

template <typename T>
struct Object : Impl {
    static void** publicTable() {
        static void* table[kSlots];
        if (table[1] == nullptr) {
            fillUnexpected(table, std::make_integer_sequence<int, kSlots>());
            table[1] = reinterpret_cast<void*>(+[](Public* object) { delete static_cast<T*>(static_cast<Impl*>(object->impl)); });
        }
        return table;
    }

    explicit Object(const char* name) {
        static Table* table = [] {
            auto* made = new Table();
            T::methods(*made);
            return made;
        }();
        vtable = table->slots;
        kind = name;
        object = {publicTable(), static_cast<Impl*>(this)};
        alive++;
        record("new %s", name);
    }
    ~Object() {
        alive--;
        record("delete %s", kind);
        kind = "deleted object";
    }

    static T* from(void* object, const char* kind) {
        if (object == nullptr) complain("null where a %s belongs", kind);
        auto* impl = static_cast<Impl*>(static_cast<Public*>(object)->impl);
        if (strcmp(impl->kind, kind) != 0) complain("%s where a %s belongs", impl->kind, kind);
        return static_cast<T*>(impl);
    }
};

template <typename D>
fake::Shape widen(const D& dims) {
    fake::Shape shape;
    for (int i = 0; i < dims.rank; i++) shape.push_back(dims.d[i]);
    return shape;
}

Dims narrow(const fake::Shape& shape) {
    Dims dims{};
    dims.rank = static_cast<int32_t>(shape.size());
    for (size_t i = 0; i < shape.size(); i++) dims.d[i] = static_cast<decltype(+dims.d[0])>(shape[i]);
    return dims;
}

// ---- the fake driver, whose streams run the networks

template <typename Function>
Function cuda(const char* name) {
    const char* path = getenv("FAKE_TRT_CUDA");
    if (path == nullptr) path = getenv("EDGE_INFER_LIBCUDA");
    void* driver = path != nullptr ? dlopen(path, RTLD_NOW) : nullptr;
    void* symbol = driver != nullptr ? dlsym(driver, name) : nullptr;
    if (symbol == nullptr) complain("no %s: set FAKE_TRT_CUDA", name);
    return reinterpret_cast<Function>(symbol);
}

// ---- plugins

// Registry is IPluginRegistry. The creators are those of plugin.cc: the first word is the name of the operator.
struct Registry {
    void** vtable;
    std::vector<const char**> creators;

    Registry() {
        static Table table;
        vtable = table.slots;
        const auto enter = [](Registry* self, const char** creator, const char*) -> bool {
            if (self->has(*creator)) return false;
            self->creators.push_back(creator);
            return true;
        };
        table.set(FAKE_FAMILY == 8 ? Slot{0} : FAKE_FAMILY == 10 ? Slot{12} : Slot{8}, enter);
        table.set(Abi::Registry::creators, [](Registry* self, int32_t* count) -> const char*** {
            *count = static_cast<int32_t>(self->creators.size());
            return self->creators.data();
        });
        table.set(Abi::Registry::loadLibrary, [](Registry* self, const char* path) -> void* {
            void* handle = dlopen(path, RTLD_NOW);
            auto list = reinterpret_cast<const char*** (*)(int32_t*)>(handle != nullptr ? dlsym(handle, "getCreators") : nullptr);
            int32_t count = 0;
            const char*** found = list != nullptr ? list(&count) : nullptr;
            for (int32_t i = 0; i < count; i++) {
                if (!self->has(*found[i])) {
                    self->creators.push_back(found[i]);
                    continue;
                }
                say(1, "Plugin " + std::string(*found[i]) + " is registered already");
                return nullptr;
            }
            return handle;
        });
    }

    bool has(const char* name) const {
        for (const char** creator : creators) {
            if (strcmp(*creator, name) == 0) return true;
        }
        return false;
    }
};

Registry* registry() {
    static auto* made = new Registry();
    return made;
}

// ---- running

struct HostMemory : Object<HostMemory> {
    std::string bytes;
    explicit HostMemory(std::string b) : Object("IHostMemory"), bytes(std::move(b)) {}
    static void methods(Table& t) {
        t.set(Abi::HostMemory::data, [](HostMemory* self) -> void* { return &self->bytes[0]; });
        t.set(Abi::HostMemory::size, [](HostMemory* self) -> size_t { return self->bytes.size(); });
    }
};

struct Engine;

// Run is one enqueue with the data for the host function on the stream. It outlives graphs that contain it and is freed with the context.
struct Run {
    const fake::Model* model;
    std::map<std::string, void*> addresses;
    std::map<std::string, fake::Shape> shapes;
};

struct Context : Object<Context> {
    Engine* engine;
    std::map<std::string, void*> addresses;
    std::map<std::string, fake::Shape> shapes;
    std::map<std::string, void*> allocators;
    std::list<Run> runs;
    void* profiler = nullptr;
    int profile = 0;

    explicit Context(Engine* e);
    ~Context();
    static void methods(Table& t);
    fake::Shape outputShape(const fake::Tensor& tensor) const;
    bool enqueue(void* stream);
};

struct Inspector : Object<Inspector> {
    std::string text;
    explicit Inspector(std::string t) : Object("IEngineInspector"), text(std::move(t)) {}
    static void methods(Table& t) {
        t.set(Abi::Inspector::getEngineInformation, [](Inspector* self, int32_t format) -> const char* {
            if (format != 1) complain("inspector asked for format %d", format);
            return self->text.c_str();
        });
    }
};

struct Runtime;

struct Engine : Object<Engine> {
    Runtime* runtime;
    fake::Model model;
    int contexts = 0;

    Engine(Runtime* r, fake::Model m);
    ~Engine();

    const fake::Tensor& tensor(const char* name) const {
        for (const auto& t : model.tensors) {
            if (t.name == name) return t;
        }
        complain("no tensor %s", name);
    }

    bool noted(const char* note) const {
        for (const auto& n : model.notes) {
            if (n == note) return true;
        }
        return false;
    }

    // describe returns the inspector's JSON: names only, unless the build requested details.
    std::string describe() const {
        std::string text;
        for (const auto& name : model.operators) {
            if (!text.empty()) text += ", ";
            if (!noted("verbosity 2")) {
                text += '"' + name + '"';
                continue;
            }
            const char* format = noted("flag 1")   ? "Thirty-two wide channel vectorized row major Int8 format"
                                 : noted("flag 0") ? "Channel major FP16 format where channel % 8 == 0"
                                                   : "Row major linear FP32";
            text += "{\"Name\": \"" + name + "\", \"LayerType\": \"" + (noted("device 1") ? "DLA" : "CaskConvolution") +
                    "\", \"Inputs\": [{\"Name\": \"x\", \"Format/Datatype\": \"" + format + "\"}], \"TacticName\": \"fake\"}";
        }
        return "{\"Layers\": [" + text + "], \"Bindings\": []}";
    }

    static void methods(Table& t) {
        t.set(Abi::Engine::getNbLayers, [](Engine* self) -> int32_t { return static_cast<int32_t>(self->model.operators.size()); });
        t.set(Abi::Engine::getName, [](Engine* self) -> const char* { return self->model.network.c_str(); });
        t.set(Abi::Engine::getNbOptimizationProfiles, [](Engine*) -> int32_t { return 1; });
        t.set(Abi::Engine::getDeviceMemorySize, [](Engine*) -> size_t { return 4096; });
        t.set(Abi::Engine::getDeviceMemorySizeV2, [](Engine*) -> int64_t { return 4096; });
        t.set(Abi::Engine::getNbIOTensors, [](Engine* self) -> int32_t { return static_cast<int32_t>(self->model.tensors.size()); });
        t.set(Abi::Engine::getIOTensorName, [](Engine* self, int32_t i) -> const char* { return self->model.tensors.at(i).name.c_str(); });
        t.set(Abi::Engine::getTensorShape, [](Engine* self, const char* name) -> Dims { return narrow(self->tensor(name).shape); });
        t.set(Abi::Engine::getTensorDataType, [](Engine* self, const char* name) -> int32_t { return self->tensor(name).type; });
        t.set(Abi::Engine::getTensorLocation, [](Engine*, const char*) -> int32_t { return 0; });
        t.set(Abi::Engine::isShapeInferenceIO, [](Engine*, const char*) -> bool { return false; });
        t.set(Abi::Engine::getTensorIOMode, [](Engine* self, const char* name) -> int32_t { return self->tensor(name).input ? 1 : 2; });
        t.set(Abi::Engine::getTensorFormat, [](Engine* self, const char* name) -> int32_t { return self->tensor(name).format; });
        t.set(Abi::Engine::getProfileShape, [](Engine* self, const char* name, int32_t profile, int32_t selector) -> Dims {
            if (profile != 0) complain("profile %d", profile);
            return narrow(self->tensor(name).range[selector]);
        });
        if constexpr (Abi::kContextStrategy) {
            t.set(Abi::Engine::createExecutionContext, [](Engine* self, int32_t strategy) -> void* {
                if (strategy != 0) complain("allocation strategy %d", strategy);
                return fails("context") ? nullptr : &(new Context(self))->object;
            });
        } else {
            t.set(Abi::Engine::createExecutionContext,
                  [](Engine* self) -> void* { return fails("context") ? nullptr : &(new Context(self))->object; });
        }
        t.set(Abi::Engine::createEngineInspector, [](Engine* self) -> void* { return &(new Inspector(self->describe()))->object; });
    }
};

struct Runtime : Object<Runtime> {
    int engines = 0;
    Runtime() : Object("IRuntime") {}
    ~Runtime() {
        if (engines != 0) complain("IRuntime deleted before its %d engines", engines);
    }
    static Engine* deserialize(Runtime* self, const void* data, size_t size) {
        record("deserializeCudaEngine %zu", size);
        fake::Model model;
        std::string why;
        if (fails("deserialize")) why = "deserializeCudaEngine failed on request";
        if (why.empty()) model = fake::readPlan(static_cast<const char*>(data), size, FAKE_VERSION, &why);
        for (const std::string& op : model.operators) {
            if (op.rfind("Custom", 0) == 0 && !registry()->has(op.c_str()))
                why = "Cannot deserialize plugin since corresponding IPluginCreator not found in Plugin Registry";
        }
        if (!why.empty()) {
            say(1, why);
            return nullptr;
        }
        const char* held = getenv("FAKE_TRT_OPENING_HELD");  // a file: the held network is opened when it does not exist
        while (model.network == "held" && held != nullptr && access(held, F_OK) == 0) usleep(1000);
        return new Engine(self, std::move(model));
    }
    static void methods(Table& t) {
        if constexpr (Abi::kDeserializeWithFactory) {
            t.set(Abi::Runtime::deserializeCudaEngine, [](Runtime* self, const void* data, size_t size, void* factory) -> void* {
                if (factory != nullptr) complain("plugin factory %p", factory);
                Engine* engine = deserialize(self, data, size);
                return engine != nullptr ? &engine->object : nullptr;
            });
        } else {
            t.set(Abi::Runtime::deserializeCudaEngine, [](Runtime* self, const void* data, size_t size) -> void* {
                Engine* engine = deserialize(self, data, size);
                return engine != nullptr ? &engine->object : nullptr;
            });
        }
        t.set(Abi::Runtime::setDLACore, [](Runtime*, int32_t core) { record("setDLACore %d", core); });
        t.set(Abi::Runtime::getNbDLACores, [](Runtime*) -> int32_t { return 2; });
        t.set(Abi::Runtime::setEngineHostCodeAllowed, [](Runtime*, bool allowed) { record("setEngineHostCodeAllowed %d", allowed); });
    }
};

Engine::Engine(Runtime* r, fake::Model m) : Object("ICudaEngine"), runtime(r), model(std::move(m)) { runtime->engines++; }

Engine::~Engine() {
    if (contexts != 0) complain("ICudaEngine deleted before its %d contexts", contexts);
    runtime->engines--;
}

Context::Context(Engine* e) : Object("IExecutionContext"), engine(e) { engine->contexts++; }

Context::~Context() { engine->contexts--; }

fake::Shape Context::outputShape(const fake::Tensor& tensor) const { return fake::outputShape(engine->model, tensor, shapes); }

void execute(void* argument) {
    const Run* run = static_cast<Run*>(argument);
    fake::run(*run->model, run->addresses, run->shapes);
}

bool Context::enqueue(void* stream) {
    record("enqueueV3");
    if (fails("throw")) throw 1;
    if (fails("enqueue")) {
        say(1, "enqueueV3 failed on request");
        return false;
    }
    auto capturing = cuda<int (*)(void*, int*)>("cuStreamIsCapturing");
    int status = 0;
    if (capturing(stream, &status) == 0 && status != 0 && fails("capture")) {
        say(1, "operation not permitted when stream is capturing");
        return false;
    }
    Run run{&engine->model, addresses, shapes};
    for (const auto& t : engine->model.tensors) {
        if (!t.input) run.shapes[t.name] = outputShape(t);
        if (t.input && run.shapes.find(t.name) == run.shapes.end()) complain("input %s has no shape", t.name.c_str());
        if (addresses.find(t.name) != addresses.end()) continue;
        const auto allocator = allocators.find(t.name);
        if (allocator == allocators.end()) complain("tensor %s has no address", t.name.c_str());
        // The run determines an output of unknown size, so it happens immediately.
        auto synchronize = cuda<int (*)(void*)>("cuStreamSynchronize");
        if (synchronize(stream) != 0) return false;
        const std::vector<int64_t> values = fake::nonZero(engine->model, addresses, shapes);
        void* object = allocator->second;
        const uint64_t bytes = values.size() * sizeof(int64_t);
        void* memory = nullptr;
        const Dims dims = narrow({1, static_cast<int64_t>(values.size())});
        if (Abi::kVersionedInterface) {
            checkVersioned(object, "IOutputAllocator");
            memory = ask<void*>(object, 5, t.name.c_str(), static_cast<void*>(nullptr), bytes, uint64_t{256}, stream);
            ask<void>(object, 6, t.name.c_str(), &dims);
        } else {
            if (ask<int32_t>(object, 0) != 1) complain("IOutputAllocator's version");
            memory = ask<void*>(object, 1, t.name.c_str(), static_cast<void*>(nullptr), bytes, uint64_t{256});
            ask<void>(object, 2, t.name.c_str(), &dims);
        }
        if (memory == nullptr) return false;
        if (bytes > 0) memcpy(memory, values.data(), bytes);
        return true;
    }
    runs.push_back(run);
    if (profiler != nullptr) return true;
    auto launch = cuda<int (*)(void*, void (*)(void*), void*)>("cuLaunchHostFunc");
    return launch(stream, execute, &runs.back()) == 0;
}

void Context::methods(Table& t) {
    t.set(Abi::Context::setProfiler, [](Context* self, void* profiler) {
        if (profiler == nullptr) complain("setProfiler(nullptr): real libraries go on calling the old one");
        self->profiler = profiler;
    });
    t.set(Abi::Context::setEnqueueEmitsProfile, [](Context* self, bool emits) {
        if (emits) complain("setEnqueueEmitsProfile(true)");
        (void)self;
    });
    t.set(Abi::Context::reportToProfiler, [](Context* self) -> bool {
        if (self->profiler == nullptr) complain("reportToProfiler without a profiler");
        if (Abi::kVersionedLogger) checkVersioned(self->profiler, "IProfiler");
        for (const auto& name : self->engine->model.operators)
            ask<void>(self->profiler, Abi::kVersionedLogger ? 4 : 0, name.c_str(), 0.25F);
        return true;
    });
    t.set(Abi::Context::setOptimizationProfileAsync, [](Context* self, int32_t profile, void*) -> bool {
        self->profile = profile;
        return profile == 0;
    });
    t.set(Abi::Context::setInputShape, [](Context* self, const char* name, const Dims* dims) -> bool {
        const fake::Tensor& tensor = self->engine->tensor(name);
        const fake::Shape shape = widen(*dims);
        record("setInputShape %s %s", name, fake::text(shape).c_str());
        if (fails("shape") || !tensor.input || !fake::inRange(tensor, shape)) {
            say(1, std::string("setInputShape: ") + name + " " + fake::text(shape) + " is outside the profile");
            return false;
        }
        self->shapes[name] = shape;
        return true;
    });
    t.set(Abi::Context::getTensorShape, [](Context* self, const char* name) -> Dims {
        const fake::Tensor& tensor = self->engine->tensor(name);
        if (!tensor.input) return narrow(self->outputShape(tensor));
        const auto set = self->shapes.find(name);
        return narrow(set == self->shapes.end() ? tensor.shape : set->second);
    });
    t.set(Abi::Context::setTensorAddress, [](Context* self, const char* name, void* address) -> bool {
        self->engine->tensor(name);
        record("setTensorAddress %s", name);
        if (address == nullptr || reinterpret_cast<uintptr_t>(address) % 256 != 0) complain("address %p of %s", address, name);
        if (fails("address")) return false;
        self->addresses[name] = address;
        return true;
    });
    t.set(Abi::Context::inferShapes, [](Context* self, int32_t, const char** names) -> int32_t {
        for (const auto& tensor : self->engine->model.tensors) {
            if (!tensor.input || self->shapes.count(tensor.name) != 0) continue;
            names[0] = tensor.name.c_str();
            return 1;
        }
        return 0;
    });
    t.set(Abi::Context::setOutputAllocator, [](Context* self, const char* name, void* allocator) -> bool {
        self->engine->tensor(name);
        self->allocators[name] = allocator;
        return true;
    });
    t.set(Abi::Context::enqueueV3, [](Context* self, void* stream) -> bool {
        if (stream == nullptr) complain("enqueueV3 on the default stream");
        return self->enqueue(stream);
    });
}

// ---- building

#include "builder.inc"

}  // namespace

extern "C" {

__attribute__((visibility("default"))) int32_t getInferLibVersion() { return FAKE_VERSION; }

#if FAKE_FAMILY >= 10
__attribute__((visibility("default"))) int32_t getInferLibBuildVersion() { return 30; }
#endif

static void checkLogger(void* given, int32_t version) {
    if (version != FAKE_VERSION) complain("version %d passed to library %d", version, FAKE_VERSION);
    if (given == nullptr) complain("no logger");
    logger = given;
    say(2, "a warning of the fake library");
}

__attribute__((visibility("default"))) void* createInferRuntime_INTERNAL(void* given, int32_t version) {
    checkLogger(given, version);
    if (!fails("runtime")) return &(new Runtime())->object;
    say(0, "createInferRuntime: Error Code 6: API Usage Error (CUDA initialization failure with error: 35)");
    return nullptr;
}

__attribute__((visibility("default"))) void* getPluginRegistry() { return registry(); }

// For the fake parser.
__attribute__((visibility("default"))) bool fakeHasCreator(const char* name) { return registry()->has(name); }

#ifndef FAKE_LEAN
__attribute__((visibility("default"))) void* createInferBuilder_INTERNAL(void* given, int32_t version) {
    checkLogger(given, version);
#ifdef FAKE_RESOURCE
    if (dlopen(FAKE_RESOURCE, RTLD_LAZY) == nullptr) {
        say(0, "Unable to load library: " FAKE_RESOURCE);
        return nullptr;
    }
#endif
    if (!fails("builder")) return &(new Builder())->object;
    say(0, "createInferBuilder: Error Code 6: API Usage Error");
    return nullptr;
}

// For the fake parser.
__attribute__((visibility("default"))) void fakeNetworkFill(void* network, const fake::Model* model) {
    Network::from(network, "INetworkDefinition")->fill(*model);
}
#endif

// The number of live objects, for tests.
__attribute__((visibility("default"))) int fakeAlive() { return alive; }
}
