// Builds a plan from an ONNX file.
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <new>

#include "library.h"

extern "C" {
int cuMemAlloc_v2(ei_cuda_pointer* device, size_t bytes);
int cuMemFree_v2(ei_cuda_pointer device);
int cuMemcpyHtoD_v2(ei_cuda_pointer to, const void* from, size_t bytes);
}

namespace ei {

namespace {

// File is a whole file in memory, empty if it cannot be read.
class File {
   public:
    explicit File(const char* path) {
        if (path[0] == 0) return;
        const int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0) return;
        struct stat facts;
        if (fstat(fd, &facts) == 0 && facts.st_size > 0) {
            void* memory = mmap(nullptr, facts.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
            if (memory != MAP_FAILED) {
                data = static_cast<const unsigned char*>(memory);
                size = static_cast<size_t>(facts.st_size);
            }
        }
        close(fd);
    }
    ~File() {
        if (data != nullptr) munmap(const_cast<unsigned char*>(data), size);
    }
    File(const File&) = delete;

    const unsigned char* data = nullptr;
    size_t size = 0;
};

// writeFile replaces a file atomically; it returns 0 or errno.
int writeFile(const char* path, const void* data, size_t size) {
    char part[600];
    snprintf(part, sizeof(part), "%s.%d", path, static_cast<int>(getpid()));
    const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    if (fd < 0) return errno;
    const char* at = static_cast<const char*>(data);
    int code = 0;
    for (size_t left = size; left > 0 && code == 0;) {
        const ssize_t n = write(fd, at, left);
        if (n < 0 && errno != EINTR) code = errno;
        if (n > 0) {
            at += n;
            left -= static_cast<size_t>(n);
        }
    }
    if (close(fd) != 0 && code == 0) code = errno;
    if (code == 0 && rename(part, path) != 0) code = errno;
    if (code != 0) unlink(part);
    return code;
}

// ProgressLock holds the lock of an ei_progress, for a few instructions at a time.
class ProgressLock final {
   public:
    explicit ProgressLock(ei_progress* progress) : locked_(&progress->locked) {
        while (__atomic_exchange_n(locked_, 1, __ATOMIC_ACQUIRE)) sched_yield();
    }
    ~ProgressLock() { __atomic_store_n(locked_, 0, __ATOMIC_RELEASE); }
    ProgressLock(const ProgressLock&) = delete;
    ProgressLock& operator=(const ProgressLock&) = delete;

   private:
    int* locked_;
};

bool cancelled(const ei_progress* progress) { return __atomic_load_n(&progress->cancel, __ATOMIC_RELAXED) != 0; }

// Progress reduces the builder's nested phases to one position: that of the outermost phase with steps.
class Progress final : public Monitor {
   public:
    explicit Progress(ei_progress* progress) : progress_(progress) {}

    void start(const char* phase, const char* parent, int32_t steps) override {
        if (parent != nullptr && parent[0] != 0) return;
        const ProgressLock lock(progress_);
        snprintf(progress_->phase, sizeof(progress_->phase), "%s", phase);
        progress_->step = 0;
        progress_->steps = steps;
    }
    bool step(const char* phase, int32_t step) override {
        const ProgressLock lock(progress_);
        if (strncmp(phase, progress_->phase, sizeof(progress_->phase) - 1) == 0) progress_->step = step + 1;
        return !cancelled(progress_);
    }
    void finish(const char*) override {}

   private:
    ei_progress* progress_;
};

// Calibration gives the builder the ranges of a calibration cache. There are no batches to measure.
class Calibration final : public CalibrationFeed {
   public:
    explicit Calibration(const char* cache) : cache_(cache) {}

    // check returns an error unless there is a cache.
    int check(const char* path, ei_error* error) const {
        if (cache_.data != nullptr) return EI_OK;
        return fail(error, EI_FILE, "calibration cache %s cannot be read or is empty", path);
    }

    int32_t batch() override { return 1; }
    bool next(void**, const char**, int32_t) override { return false; }
    const void* readCache(size_t* size) override {
        *size = cache_.size;
        return cache_.data;
    }
    void writeCache(const void*, size_t) override {}

   private:
    File cache_;
};

// Builder holds the objects of one build and deletes them in reverse order.
class Builder {
   public:
    Builder(ei_library* library, const ei_build_options* options, ei_progress* progress)
        : library_(library),
          family_(*library->family),
          options_(*options),
          state_(progress),
          progress_(progress),
          calibration_(options->calibration_cache) {}

    ~Builder() {
        destroy(timing_);
        destroy(config_);
        destroy(network_);  // before the parser, whose memory may hold the network's weights
        family_.destroyParser(parser_);
        destroy(builder_);
        monitor_.drop();
        calibrator_.drop();
    }

    int build(const void* model, size_t size, const char* path, ei_plan* plan, ei_error* error) {
        const int64_t begun = now();
        library_->log.mark();
        library_->log.rangeless();
        if (const int code = create(error)) return code;
        if (const int code = parse(model, size, path, error)) return code;
        if (const int code = configure(error)) return code;
        if (const int code = addProfile(error)) return code;
        plan->memory = family_.build(builder_, network_, config_);
        if (plan->memory == nullptr && !cancelled(state_) && withoutImplementation() && family_.useExternalTactics(config_)) {
            library_->log.write(kWarning, "a layer has no implementation in TensorRT, building again with those of cuBLAS and cuDNN");
            library_->log.mark();
            plan->memory = family_.build(builder_, network_, config_);
        }
        const bool timed = timing_ != nullptr && !library_->log.timingsRefused();
        if (timing_ != nullptr && !timed) {  // TensorRT reads it only now
            removeTimings();
            warnOfTimings("could not be used, the next build starts a new one");
        }
        if (const int count = library_->log.rangeless()) {
            char text[120];
            snprintf(text, sizeof(text), "%d tensors have no INT8 range; layers that read or compute them stay in floating point", count);
            library_->log.write(kWarning, text);
        }
        if (plan->memory == nullptr) {
            if (cancelled(state_)) return fail(error, EI_CANCELLED, "build cancelled");
            return refused(library_, error, EI_TENSORRT, "build");
        }
        plan->data = family_.memoryData(plan->memory);
        plan->size = family_.memorySize(plan->memory);
        plan->layers = family_.networkLayers(network_);
        if (timed) saveTimings();
        plan->nanoseconds = now() - begun;
        return EI_OK;
    }

   private:
    int create(ei_error* error) {
        if (library_->createBuilder == nullptr) {
            return fail(error, EI_LEAN, "%s is a lean runtime, which can run but not build plans", library_->facts.path);
        }
        if (library_->createParser == nullptr) {
            return fail(error, EI_LEAN, "no ONNX parser next to %s: %s", library_->facts.path, library_->why);
        }
        builder_ = createBuilder(library_);
        if (builder_ == nullptr) return refused(library_, error, EI_TENSORRT, "no TensorRT builder");
        if (options_.strongly_typed && !family_.canBeStronglyTyped(library_->version)) {
            return fail(error, EI_UNSUPPORTED, "strongly typed networks need TensorRT 9 or newer");
        }
        network_ = family_.createNetwork(builder_, options_.strongly_typed || family_.stronglyTypedOnly(), library_->version);
        config_ = family_.createConfig(builder_);
        if (network_ == nullptr || config_ == nullptr) return refused(library_, error, EI_TENSORRT, "no network or builder configuration");
        return EI_OK;
    }

    int parse(const void* model, size_t size, const char* path, ei_error* error) {
        parser_ = library_->createParser(network_, library_->logger.object, library_->parserVersion);
        if (parser_ == nullptr) return refused(library_, error, EI_TENSORRT, "no ONNX parser");
        if (family_.parse(parser_, model, size, path)) return EI_OK;
        const int32_t count = family_.parserErrors(parser_);
        if (count < 1) return refused(library_, error, EI_MODEL, "ONNX model refused");
        char text[400];
        family_.describeParserError(parser_, 0, library_->version, text, sizeof(text));
        if (count == 1) return fail(error, EI_MODEL, "ONNX model refused: %s", text);
        return fail(error, EI_MODEL, "ONNX model refused: %s (and %d more)", text, count - 1);
    }

    int configure(ei_error* error) {
        const ei_build_options& o = options_;
        if (o.fp16 && !o.strongly_typed && !family_.enableFp16(config_)) return precisionIsInTheModel(error);
        if (o.int8 && !o.strongly_typed && !family_.enableInt8(config_)) return precisionIsInTheModel(error);
        if (o.workspace > 0) family_.setWorkspace(config_, o.workspace);
        if (o.level >= 0 && !family_.setOptimizationLevel(config_, o.level, library_->version)) {
            library_->log.write(kWarning, "this TensorRT version has no optimization levels, the option is ignored");
        }
        if (o.version_compatible && !family_.enableVersionCompatible(config_, library_->version)) {
            return fail(error, EI_UNSUPPORTED, "version-compatible plans need TensorRT 8.6 or newer");
        }
        if (o.hardware_compatible && !family_.enableHardwareCompatible(config_, library_->version)) {
            return fail(error, EI_UNSUPPORTED, "hardware-compatible plans need TensorRT 8.6 or newer");
        }
        family_.setDetailedProfile(config_);  // costs nothing at run time, and exposes the layers with their precisions
        if (o.dla >= 0) {
            const int32_t cores = family_.builderDLACores(builder_);
            if (o.dla >= cores) return fail(error, EI_UNSUPPORTED, "no DLA core %d, this device has %d", o.dla, cores);
            family_.useDLA(config_, o.dla);
            family_.enableGpuFallback(config_);
        }
        // cuBLAS and cuDNN would be needed in the exact version that the library names; its own kernels need neither.
        family_.useInternalTactics(config_);
        if (const int code = loadTimings(error)) return code;
        monitor_ = family_.monitor(&progress_, library_->version);
        if (monitor_.object != nullptr) family_.setMonitor(config_, monitor_.object, library_->version);
        return EI_OK;
    }

    bool withoutImplementation() const {
        char text[512];
        library_->log.errors(text, sizeof(text));
        return strstr(text, "any implementation for node") != nullptr;
    }

    int precisionIsInTheModel(ei_error* error) {
        return fail(error, EI_UNSUPPORTED, "TensorRT %d takes the precision from the model: give it an FP16 or Q/DQ ONNX file",
                    library_->facts.major);
    }

    // useCalibrator is skipped for a model with Q/DQ nodes, which has no calibration cache.
    int useCalibrator(void* profile, ei_error* error) {
        if (!options_.int8 || options_.calibration_cache[0] == 0) return EI_OK;
        if (const int code = calibration_.check(options_.calibration_cache, error)) return code;
        calibrator_ = family_.calibrator(&calibration_, options_.minmax);
        if (calibrator_.object == nullptr) return precisionIsInTheModel(error);
        if (!family_.setCalibrator(config_, calibrator_.object, profile))
            return refused(library_, error, EI_TENSORRT, "calibration profile");
        return keepFloat(error);
    }

    // keepFloat keeps layers in floating point that calibrated INT8 would degrade: those in the options, usually the last convolutions of a
    // detect head, and all layers between them and the network's outputs, because box coordinates in 256 steps are off by pixels. They run
    // in FP16 without loss, or in FP32 if the device computes FP16 slowly. Layers are in execution order.
    int keepFloat(ei_error* error) {
        const int32_t count = family_.networkLayers(network_);
        int32_t named = 0, found = 0, decoding = 0;
        for (const char* name = options_.unquantized; name != nullptr && *name != 0; name += strlen(name) + 1) named++;
        if (named == 0) return EI_OK;
        for (int32_t i = 0; i < count; i++) found += isNamed(family_.networkLayer(network_, i));
        if (found != named) {
            char text[160];
            snprintf(text, sizeof(text),
                     "%d of the %d layers that should stay in floating point are missing from the network, so all are quantized",
                     named - found, named);
            library_->log.write(kWarning, text);
            return EI_OK;
        }
        auto* decodes = new (std::nothrow) bool[count]();
        if (decodes == nullptr) return fail(error, EI_MEMORY, "out of memory");
        const Type type = family_.fastFp16(builder_) ? kHalf : kFloat;
        family_.preferPrecisions(config_);
        for (int32_t i = count - 1; i >= 0; i--) {
            void* layer = family_.networkLayer(network_, i);
            if (isNamed(layer)) {
                constrain(layer, type);
            } else if (isRead(layer, i, decodes)) {
                decodes[i] = true;
                if (constrain(layer, type)) decoding++;
            }
        }
        delete[] decodes;
        char text[120];
        snprintf(text, sizeof(text), "%d layers and %d decoding layers are excluded from INT8 and stay in %s", named, decoding,
                 type == kHalf ? "FP16" : "FP32");
        library_->log.write(kInfo, text);
        return EI_OK;
    }

    bool isNamed(void* layer) const {
        if (family_.layerOutputs(layer) == 0) return false;
        const char* own = family_.networkTensorName(family_.layerOutput(layer, 0));
        for (const char* name = options_.unquantized; *name != 0; name += strlen(name) + 1) {
            if (strcmp(name, own) == 0) return true;
        }
        return false;
    }

    // isRead reports whether an output of the layer is an output of the network or an input of one of the decoding layers after it.
    bool isRead(void* layer, int32_t index, const bool* decodes) const {
        for (int32_t o = 0; o < family_.layerOutputs(layer); o++) {
            void* result = family_.layerOutput(layer, o);
            if (isOutput(result)) return true;
            for (int32_t i = index + 1; i < family_.networkLayers(network_); i++) {
                if (!decodes[i]) continue;
                void* reader = family_.networkLayer(network_, i);
                for (int32_t n = 0; n < family_.layerInputs(reader); n++) {
                    if (family_.layerInput(reader, n) == result) return true;
                }
            }
        }
        return false;
    }

    bool isOutput(void* tensor) const {
        for (int32_t i = 0; i < family_.networkOutputs(network_); i++) {
            if (family_.networkOutput(network_, i) == tensor) return true;
        }
        return false;
    }

    // constrain skips layers that compute no floats or have no inputs.
    bool constrain(void* layer, Type type) {
        if (family_.layerInputs(layer) == 0) return false;
        for (int32_t o = 0; o < family_.layerOutputs(layer); o++) {
            const int32_t own = family_.networkTensorType(family_.layerOutput(layer, o));
            if (own != kFloat && own != kHalf) return false;
        }
        family_.setLayerPrecision(layer, type);
        for (int32_t o = 0; o < family_.layerOutputs(layer); o++) {
            // The caller selects the type of the network's outputs.
            if (!isOutput(family_.layerOutput(layer, o))) family_.setLayerOutputType(layer, o, type);
        }
        return true;
    }

    int addProfile(ei_error* error) {
        void* profile = nullptr;
        if (const int code = makeProfile(&profile, error)) return code;
        if (profile != nullptr && family_.addProfile(config_, profile) < 0)
            return refused(library_, error, EI_SHAPE, "optimization profile");
        return useCalibrator(profile, error);
    }

    // makeProfile returns a profile with the range of input shapes; null for a network without dynamic inputs.
    int makeProfile(void** made, ei_error* error) {
        void* profile = family_.createProfile(builder_);
        if (profile == nullptr) return refused(library_, error, EI_TENSORRT, "no optimization profile");
        bool dynamic = false;
        for (int32_t i = 0; i < family_.networkInputs(network_); i++) {
            void* input = family_.networkInput(network_, i);
            const char* name = family_.networkTensorName(input);
            const Dims64 dims = family_.networkTensorShape(input);
            const ei_shape* given = nullptr;
            for (int n = 0; n < options_.shapes; n++) {
                if (strcmp(options_.shape[n].name, name) == 0) given = &options_.shape[n];
            }
            for (const Selector selector : kSelectors) {
                Dims64 wanted = dims;
                if (given != nullptr) {
                    if (given->rank != dims.rank)
                        return fail(error, EI_SHAPE, "input %s has %d dimensions, not %d", name, dims.rank, given->rank);
                    memcpy(wanted.d,
                           selector == kMinShape   ? given->min
                           : selector == kOptShape ? given->opt
                                                   : given->max,
                           sizeof(wanted.d));
                }
                for (int d = 0; d < dims.rank; d++) {
                    if (dims.d[d] >= 0 && wanted.d[d] != dims.d[d]) {
                        return fail(error, EI_SHAPE, "dimension %d of input %s is %lld in the model, not %lld", d, name,
                                    static_cast<long long>(dims.d[d]), static_cast<long long>(wanted.d[d]));
                    }
                    if (wanted.d[d] < 0) wanted.d[d] = preset(dims, d, selector);
                    if (wanted.d[d] < 1) return fail(error, EI_SHAPE, "dimension %d of input %s varies: its shape must be given", d, name);
                }
                if (isStatic(dims)) continue;
                dynamic = true;
                if (!family_.setProfileShape(profile, name, selector, wanted)) {
                    return refused(library_, error, EI_SHAPE, "shape of input %s", name);
                }
            }
        }
        if (!dynamic) return EI_OK;
        if (!family_.profileIsValid(profile)) return refused(library_, error, EI_SHAPE, "optimization profile");
        *made = profile;
        return EI_OK;
    }

    // preset returns the size of a dynamic dimension without an own shape, 0 if unknown.
    int64_t preset(const Dims64& dims, int d, Selector selector) const {
        if (d == 0) return options_.batch[selector];
        if (dims.rank != 4) return 0;
        const auto channels = [&dims](int at) { return dims.d[at] == 1 || dims.d[at] == 3; };
        const int height = channels(1) ? 2 : channels(3) ? 1 : 4;  // NCHW, NHWC, no image
        return d == height ? options_.height : d == height + 1 ? options_.width : 0;
    }

    static bool isStatic(const Dims64& dims) {
        for (int d = 0; d < dims.rank; d++) {
            if (dims.d[d] < 0) return false;
        }
        return true;
    }

    // readTimings returns a timing cache, null if the library rejects it: for another version or device, or with unreadable entries.
    void* readTimings(const void* data, size_t size) {
        library_->log.timingsRefused();
        void* timings = family_.createTimingCache(config_, data, size);
        if (timings == nullptr || !library_->log.timingsRefused()) return timings;
        destroy(timings);
        return nullptr;
    }

    int loadTimings(ei_error* error) {
        if (options_.timing_cache[0] == 0) return EI_OK;
        File file(options_.timing_cache);
        if (file.data != nullptr) timing_ = readTimings(file.data, file.size);
        if (timing_ != nullptr && family_.setTimingCache(config_, timing_) && !library_->log.timingsRefused()) return EI_OK;
        void* unfit = timing_;
        if (file.data != nullptr) warnOfTimings("does not fit this device and TensorRT version, starting a new one");
        timing_ = family_.createTimingCache(config_, nullptr, 0);
        const bool begun = timing_ != nullptr && family_.setTimingCache(config_, timing_);
        destroy(unfit);  // the configuration refers to another one only now
        library_->log.timingsRefused();
        if (begun) library_->log.mark();  // messages about the rejected cache must not explain a later failure
        return begun ? EI_OK : refused(library_, error, EI_TENSORRT, "timing cache");
    }

    // saveTimings does not fail the build, which has taken minutes. It drops entries that this version cannot read again: TensorRT 8.6
    // writes such caches and would complain about them in every later build.
    void saveTimings() {
        void* memory = family_.serializeTimingCache(timing_);
        if (memory == nullptr) return;
        void* again = readTimings(family_.memoryData(memory), family_.memorySize(memory));
        if (again == nullptr) {
            removeTimings();
            library_->log.write(kInfo, "this TensorRT version cannot read the timings of this build again, they are not saved");
        } else if (const int code = writeFile(options_.timing_cache, family_.memoryData(memory), family_.memorySize(memory))) {
            char why[100];
            snprintf(why, sizeof(why), "not written: %s", strerror(code));
            warnOfTimings(why);
        }
        destroy(again);
        destroy(memory);
    }

    void removeTimings() { unlink(options_.timing_cache); }

    void warnOfTimings(const char* what) {
        char text[640];
        snprintf(text, sizeof(text), "timing cache %s %s", options_.timing_cache, what);
        library_->log.write(kWarning, text);
    }

    static constexpr Selector kSelectors[] = {kMinShape, kOptShape, kMaxShape};

    ei_library* library_;
    const Family& family_;
    const ei_build_options& options_;
    const ei_progress* state_;
    Progress progress_;
    Calibration calibration_;
    Adapter calibrator_, monitor_;
    void* builder_ = nullptr;
    void* network_ = nullptr;
    void* config_ = nullptr;
    void* parser_ = nullptr;
    void* timing_ = nullptr;
};

}  // namespace

}  // namespace ei

int ei_build(ei_library* library, ei_cuda_context context, const void* model, size_t size, const char* path,
             const ei_build_options* options, ei_progress* progress, ei_plan* plan, ei_error* error) {
    *plan = {};
    return ei::guarded(error, [&]() -> int {
        if (const int code = ei_cuda_use(context)) return ei::driver(error, code, "use the context");
        auto* builder = new (std::nothrow) ei::Builder(library, options, progress);
        if (builder == nullptr) return ei::fail(error, EI_MEMORY, "out of memory");
        const int code = builder->build(model, size, path, plan, error);
        delete builder;
        if (code != EI_OK) ei_plan_free(plan);
        return code;
    });
}

void ei_plan_free(ei_plan* plan) {
    ei::destroy(plan->memory);
    *plan = {};
}

void ei_progress_read(ei_progress* progress, ei_progress* copy) {
    const ei::ProgressLock lock(progress);
    copy->step = progress->step;
    copy->steps = progress->steps;
    memcpy(copy->phase, progress->phase, sizeof(copy->phase));
}

void ei_progress_cancel(ei_progress* progress) { __atomic_store_n(&progress->cancel, 1, __ATOMIC_RELAXED); }

int ei_library_describe(ei_library* library, ei_cuda_context context, int ask_builder, ei_offer* offer, ei_error* error) {
    *offer = {};
    return ei::guarded(error, [&]() -> int {
        if (const int code = ei_cuda_use(context)) return ei::driver(error, code, "use the context");
        const ei::Family& family = *library->family;
        library->log.mark();
        void* runtime = library->createRuntime(library->logger.object, library->version);
        if (runtime == nullptr) return ei::refused(library, error, EI_TENSORRT, "no TensorRT runtime");
        offer->dla_cores = family.runtimeDLACores(runtime);
        ei::destroy(runtime);
        if (!ask_builder || library->createBuilder == nullptr) return EI_OK;
        void* builder = ei::createBuilder(library);
        if (builder == nullptr) return ei::refused(library, error, EI_TENSORRT, "no TensorRT builder");
        offer->asked_builder = 1;
        offer->fast_fp16 = family.fastFp16(builder);
        offer->fast_int8 = family.fastInt8(builder);
        ei::destroy(builder);
        return EI_OK;
    });
}
