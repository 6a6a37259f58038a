// Family is the part of TensorRT that the runtime and the builder use, in one form for all versions. Three translation units, one per ABI
// family, implement it from the same code with their slot tables. The library's objects are passed as void*.
#pragma once

#include "abi.h"

namespace ei {

class Log;

// Monitor receives a build's progress. step returns false to cancel.
struct Monitor {
    virtual void start(const char* phase, const char* parent, int32_t steps) = 0;
    virtual bool step(const char* phase, int32_t step) = 0;
    virtual void finish(const char* phase) = 0;
};

// LayerTimes receives the per-layer times of one run.
struct LayerTimes {
    virtual void add(const char* layer, float milliseconds) = 0;
};

// CalibrationFeed answers the builder's INT8 calibrator: batches in device memory, and a calibration cache.
struct CalibrationFeed {
    virtual int32_t batch() = 0;
    virtual bool next(void** bindings, const char** names, int32_t count) = 0;
    virtual const void* readCache(size_t* size) = 0;
    virtual void writeCache(const void* data, size_t size) = 0;
};

// OutputSink owns the memory of an output of data-dependent size.
struct OutputSink {
    virtual void* allocate(uint64_t bytes) = 0;
    virtual void shape(const Dims64& dims) = 0;
};

// Adapter wraps one of the receivers above in an object with the family's layout. The object is null if the version has no such interface.
// It must outlive the library object that uses it.
struct Adapter {
    void* object = nullptr;
    void (*destroy)(void* object) = nullptr;

    void drop() {
        if (object != nullptr) destroy(object);
        object = nullptr;
    }
};

class Family {
   public:
    virtual Adapter logger(Log* log) const = 0;
    virtual Adapter monitor(Monitor* monitor, int version) const = 0;
    virtual Adapter profiler(LayerTimes* times) const = 0;
    virtual Adapter calibrator(CalibrationFeed* feed, bool minmax) const = 0;
    virtual Adapter outputAllocator(OutputSink* sink) const = 0;

    // IRuntime
    virtual void* deserialize(void* runtime, const void* plan, size_t size) const = 0;
    virtual void setRuntimeDLACore(void* runtime, int32_t core) const = 0;
    virtual int32_t runtimeDLACores(void* runtime) const = 0;
    virtual void allowHostCode(void* runtime, int version) const = 0;

    // ICudaEngine
    virtual int32_t tensors(void* engine) const = 0;
    virtual const char* tensorName(void* engine, int32_t index) const = 0;
    virtual Dims64 tensorShape(void* engine, const char* name) const = 0;
    virtual int32_t tensorType(void* engine, const char* name) const = 0;
    virtual int32_t tensorLocation(void* engine, const char* name) const = 0;
    virtual int32_t tensorMode(void* engine, const char* name) const = 0;
    virtual int32_t tensorFormat(void* engine, const char* name) const = 0;
    virtual bool tensorIsShape(void* engine, const char* name) const = 0;
    virtual int32_t profiles(void* engine) const = 0;
    virtual Dims64 profileShape(void* engine, const char* name, int32_t profile, Selector selector) const = 0;
    virtual int64_t deviceMemory(void* engine, int version) const = 0;
    virtual int32_t layers(void* engine) const = 0;
    virtual void* createContext(void* engine) const = 0;
    virtual void* createInspector(void* engine) const = 0;
    virtual const char* inspect(void* inspector) const = 0;  // JSON

    // IExecutionContext
    virtual bool setProfile(void* context, int32_t profile, void* stream) const = 0;
    virtual bool setShape(void* context, const char* name, const Dims64& dims) const = 0;
    virtual Dims64 contextShape(void* context, const char* name) const = 0;
    virtual bool setAddress(void* context, const char* name, void* address) const = 0;
    virtual bool setAllocator(void* context, const char* name, void* allocator) const = 0;
    virtual int32_t inferShapes(void* context, int32_t capacity, const char** names) const = 0;
    virtual bool enqueue(void* context, void* stream) const = 0;
    // setProfiler cannot be undone: see profile in runtime.cc. reportToProfiler reports the times.
    virtual void setProfiler(void* context, void* profiler) const = 0;
    virtual bool reportToProfiler(void* context) const = 0;

    // IBuilder, IBuilderConfig, INetworkDefinition, ILayer, ITensor, IOptimizationProfile
    virtual void* createNetwork(void* builder, bool stronglyTyped, int version) const = 0;
    virtual void* createConfig(void* builder) const = 0;
    virtual void* createProfile(void* builder) const = 0;
    virtual void* build(void* builder, void* network, void* config) const = 0;
    virtual int32_t builderDLACores(void* builder) const = 0;
    virtual bool fastFp16(void* builder) const = 0;
    virtual bool fastInt8(void* builder) const = 0;
    virtual bool stronglyTypedOnly() const = 0;
    virtual bool canBeStronglyTyped(int version) const = 0;
    virtual bool enableFp16(void* config) const = 0;  // false if the version has no precision flags
    virtual bool enableInt8(void* config) const = 0;
    virtual void preferPrecisions(void* config) const = 0;  // those of setLayerType; the version has calibrators
    virtual void enableGpuFallback(void* config) const = 0;
    virtual void disableTimingCache(void* config) const = 0;
    virtual bool enableVersionCompatible(void* config, int version) const = 0;
    virtual bool enableHardwareCompatible(void* config, int version) const = 0;
    virtual bool setCalibrator(void* config, void* calibrator, void* profile) const = 0;
    virtual void useDLA(void* config, int32_t core) const = 0;
    virtual void setWorkspace(void* config, size_t bytes) const = 0;
    virtual bool setOptimizationLevel(void* config, int32_t level, int version) const = 0;
    virtual void setDetailedProfile(void* config) const = 0;
    virtual void useInternalTactics(void* config) const = 0;
    // useExternalTactics also allows layers of cuBLAS and cuDNN; false for versions without them.
    virtual bool useExternalTactics(void* config) const = 0;
    virtual void* createTimingCache(void* config, const void* data, size_t size) const = 0;
    virtual bool setTimingCache(void* config, void* cache) const = 0;
    virtual void* timingCache(void* config) const = 0;
    virtual void* serializeTimingCache(void* cache) const = 0;
    virtual bool setMonitor(void* config, void* monitor, int version) const = 0;
    virtual int32_t addProfile(void* config, void* profile) const = 0;
    virtual bool setProfileShape(void* profile, const char* name, Selector selector, const Dims64& dims) const = 0;
    virtual bool profileIsValid(void* profile) const = 0;
    virtual int32_t networkLayers(void* network) const = 0;
    virtual void* networkLayer(void* network, int32_t index) const = 0;
    virtual int32_t networkInputs(void* network) const = 0;
    virtual void* networkInput(void* network, int32_t index) const = 0;
    virtual int32_t networkOutputs(void* network) const = 0;
    virtual void* networkOutput(void* network, int32_t index) const = 0;
    virtual const char* networkTensorName(void* tensor) const = 0;
    virtual Dims64 networkTensorShape(void* tensor) const = 0;
    virtual int32_t networkTensorType(void* tensor) const = 0;
    virtual int32_t layerInputs(void* layer) const = 0;
    virtual void* layerInput(void* layer, int32_t index) const = 0;  // null for an omitted one
    virtual int32_t layerOutputs(void* layer) const = 0;
    virtual void* layerOutput(void* layer, int32_t index) const = 0;
    virtual void setLayerPrecision(void* layer, int32_t type) const = 0;
    virtual void setLayerOutputType(void* layer, int32_t index, int32_t type) const = 0;

    // IPluginRegistry: the number of creators; whether a shared object with a list of its creators was loaded.
    virtual int32_t creators(void* registry) const = 0;
    virtual bool loadPlugins(void* registry, const char* path, int version) const = 0;

    // IHostMemory
    virtual const void* memoryData(void* memory) const = 0;
    virtual size_t memorySize(void* memory) const = 0;

    // nvonnxparser
    virtual bool parse(void* parser, const void* model, size_t size, const char* path) const = 0;
    virtual int32_t parserErrors(void* parser) const = 0;
    virtual void describeParserError(void* parser, int32_t index, int version, char* text, size_t size) const = 0;
    virtual void destroyParser(void* parser) const = 0;

   protected:
    ~Family() = default;
};

extern const Family& family8;
extern const Family& family10;
extern const Family& family11;

}  // namespace ei
