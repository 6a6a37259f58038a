// The interfaces that the application implements, in the layouts of the families: plain ones, and ones that start with the version methods.
// The order of the virtual functions is the order of the slots.
#pragma once

#include "family.h"
#include "log.h"

namespace ei {

struct Versioned {
    virtual int32_t getAPILanguage() const noexcept { return 0; }
    virtual InterfaceInfo getInterfaceInfo() const noexcept = 0;
    virtual ~Versioned() = default;
};

struct PlainLogger {
    virtual void log(int32_t severity, const char* message) noexcept = 0;
    virtual ~PlainLogger() = default;
};

struct VersionedLogger : Versioned {
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"ILogger", 1, 0}; }
    virtual void log(int32_t severity, const char* message) noexcept = 0;
};

template <typename Base>
struct LoggerOf final : Base {
    Log* target;
    explicit LoggerOf(Log* log) : target(log) {}
    void log(int32_t severity, const char* message) noexcept override { target->write(severity, message); }
};

struct PlainProfiler {
    virtual void reportLayerTime(const char* layer, float milliseconds) noexcept = 0;
    virtual ~PlainProfiler() = default;
};

struct VersionedProfiler : Versioned {
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProfiler", 1, 0}; }
    virtual void reportLayerTime(const char* layer, float milliseconds) noexcept = 0;
};

template <typename Base>
struct ProfilerOf final : Base {
    LayerTimes* target;
    explicit ProfilerOf(LayerTimes* times) : target(times) {}
    void reportLayerTime(const char* layer, float milliseconds) noexcept override { target->add(layer, milliseconds); }
};

struct PlainMonitor {
    virtual ~PlainMonitor() = default;
    virtual void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept = 0;
    virtual bool stepComplete(const char* phase, int32_t step) noexcept = 0;
    virtual void phaseFinish(const char* phase) noexcept = 0;
};

struct VersionedMonitor : Versioned {
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IProgressMonitor", 1, 0}; }
    virtual void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept = 0;
    virtual bool stepComplete(const char* phase, int32_t step) noexcept = 0;
    virtual void phaseFinish(const char* phase) noexcept = 0;
};

template <typename Base>
struct MonitorOf final : Base {
    Monitor* target;
    explicit MonitorOf(Monitor* monitor) : target(monitor) {}
    void phaseStart(const char* phase, const char* parent, int32_t steps) noexcept override { target->start(phase, parent, steps); }
    bool stepComplete(const char* phase, int32_t step) noexcept override { return target->step(phase, step); }
    void phaseFinish(const char* phase) noexcept override { target->finish(phase); }
};

struct PlainCalibrator {
    virtual int32_t getBatchSize() const noexcept = 0;
    virtual bool getBatch(void** bindings, const char** names, int32_t count) noexcept = 0;
    virtual const void* readCalibrationCache(size_t& size) noexcept = 0;
    virtual void writeCalibrationCache(const void* data, size_t size) noexcept = 0;
    virtual int32_t getAlgorithm() noexcept = 0;
    virtual ~PlainCalibrator() = default;
};

template <bool MinMax>
struct VersionedCalibrator : Versioned {
    InterfaceInfo getInterfaceInfo() const noexcept override {
        return {MinMax ? "IInt8MinMaxCalibrator" : "IInt8EntropyCalibrator2", 1, 0};
    }
    virtual int32_t getBatchSize() const noexcept = 0;
    virtual bool getBatch(void** bindings, const char** names, int32_t count) noexcept = 0;
    virtual const void* readCalibrationCache(size_t& size) noexcept = 0;
    virtual void writeCalibrationCache(const void* data, size_t size) noexcept = 0;
    virtual int32_t getAlgorithm() noexcept = 0;
};

template <typename Base>
struct CalibratorOf final : Base {
    CalibrationFeed* target;
    int32_t algorithm;
    CalibratorOf(CalibrationFeed* feed, bool minmax) : target(feed), algorithm(minmax ? 3 : 2) {}
    int32_t getBatchSize() const noexcept override { return target->batch(); }
    bool getBatch(void** bindings, const char** names, int32_t count) noexcept override { return target->next(bindings, names, count); }
    const void* readCalibrationCache(size_t& size) noexcept override { return target->readCache(&size); }
    void writeCalibrationCache(const void* data, size_t size) noexcept override { target->writeCache(data, size); }
    int32_t getAlgorithm() noexcept override { return algorithm; }
};

// Up to 8.5.2 the destructor slots after notifyShape do not exist; nothing calls them.
struct PlainOutputAllocator {
    virtual int32_t getInterfaceVersion() const noexcept { return 1; }
    virtual void* reallocateOutput(const char* name, void* memory, uint64_t size, uint64_t alignment) noexcept = 0;
    virtual void notifyShape(const char* name, const Dims32& dims) noexcept = 0;
    virtual ~PlainOutputAllocator() = default;
};

struct VersionedOutputAllocator : Versioned {
    InterfaceInfo getInterfaceInfo() const noexcept override { return {"IOutputAllocator", 1, 0}; }
    virtual void* reallocateOutput(const char* name, void* memory, uint64_t size, uint64_t alignment) noexcept = 0;
    virtual void* reallocateOutputAsync(const char* name, void* memory, uint64_t size, uint64_t alignment, void*) noexcept {
        return reallocateOutput(name, memory, size, alignment);
    }
    virtual void notifyShape(const char* name, const Dims64& dims) noexcept = 0;
};

template <typename Dims>
Dims64 widen(const Dims& dims) {
    Dims64 wide{dims.rank, {}};
    for (int i = 0; i < 8 && i < dims.rank; i++) wide.d[i] = dims.d[i];
    return wide;
}

template <typename Dims>
Dims narrow(const Dims64& dims) {
    Dims result{};
    result.rank = dims.rank;
    for (int i = 0; i < 8 && i < dims.rank; i++) result.d[i] = static_cast<decltype(+result.d[0])>(dims.d[i]);
    return result;
}

template <typename Base, typename Dims>
struct OutputAllocatorOf final : Base {
    OutputSink* target;
    explicit OutputAllocatorOf(OutputSink* sink) : target(sink) {}
    void* reallocateOutput(const char*, void*, uint64_t size, uint64_t) noexcept override { return target->allocate(size); }
    void notifyShape(const char*, const Dims& dims) noexcept override { target->shape(widen(dims)); }
};

}  // namespace ei
