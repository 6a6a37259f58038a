// Binding implements Family with one slot table. Only the three family files include it.
#pragma once

#include <cstdio>
#include <new>
#include <type_traits>

#include "interfaces.h"

namespace ei {

template <typename Abi>
class Binding final : public Family {
    using Dims = typename Abi::Dims;
    using Runtime = typename Abi::Runtime;
    using Engine = typename Abi::Engine;
    using Context = typename Abi::Context;
    using Builder = typename Abi::Builder;
    using Config = typename Abi::Config;
    using Network = typename Abi::Network;
    using Layer = typename Abi::Layer;
    using Tensor = typename Abi::Tensor;
    using Profile = typename Abi::Profile;
    using Registry = typename Abi::Registry;
    using Parser = typename Abi::Parser;
    using ParserError = typename Abi::ParserError;

    template <typename Concrete, typename Interface, typename... Arguments>
    static Adapter adapt(Arguments... arguments) {
        Interface* object = new (std::nothrow) Concrete(arguments...);
        return {object, [](void* self) { delete static_cast<Interface*>(self); }};
    }

    static void setFlag(void* config, int flag) { call<void>(config, Config::setFlag, static_cast<int32_t>(flag)); }

   public:
    Adapter logger(Log* log) const override {
        using Base = std::conditional_t<Abi::kVersionedLogger, VersionedLogger, PlainLogger>;
        return adapt<LoggerOf<Base>, Base>(log);
    }

    Adapter monitor(Monitor* monitor, int version) const override {
        using Base = std::conditional_t<Abi::kVersionedInterface, VersionedMonitor, PlainMonitor>;
        if (!Config::setProgressMonitor.in(version)) return {};
        return adapt<MonitorOf<Base>, Base>(monitor);
    }

    Adapter profiler(LayerTimes* times) const override {
        using Base = std::conditional_t<Abi::kVersionedLogger, VersionedProfiler, PlainProfiler>;
        return adapt<ProfilerOf<Base>, Base>(times);
    }

    Adapter calibrator(CalibrationFeed* feed, bool minmax) const override {
        using Entropy = std::conditional_t<Abi::kVersionedInterface, VersionedCalibrator<false>, PlainCalibrator>;
        using MinMax = std::conditional_t<Abi::kVersionedInterface, VersionedCalibrator<true>, PlainCalibrator>;
        if (Config::setInt8Calibrator.index < 0) return {};
        return minmax ? adapt<CalibratorOf<MinMax>, MinMax>(feed, true) : adapt<CalibratorOf<Entropy>, Entropy>(feed, false);
    }

    Adapter outputAllocator(OutputSink* sink) const override {
        using Base = std::conditional_t<Abi::kVersionedInterface, VersionedOutputAllocator, PlainOutputAllocator>;
        return adapt<OutputAllocatorOf<Base, Dims>, Base>(sink);
    }

    void* deserialize(void* runtime, const void* plan, size_t size) const override {
        if constexpr (Abi::kDeserializeWithFactory) {
            return call<void*>(runtime, Runtime::deserializeCudaEngine, plan, size, static_cast<void*>(nullptr));
        } else {
            return call<void*>(runtime, Runtime::deserializeCudaEngine, plan, size);
        }
    }
    void setRuntimeDLACore(void* runtime, int32_t core) const override { call<void>(runtime, Runtime::setDLACore, core); }
    int32_t runtimeDLACores(void* runtime) const override { return call<int32_t>(runtime, Runtime::getNbDLACores); }
    void allowHostCode(void* runtime, int version) const override {
        if (Runtime::setEngineHostCodeAllowed.in(version)) call<void>(runtime, Runtime::setEngineHostCodeAllowed, true);
    }

    int32_t tensors(void* engine) const override { return call<int32_t>(engine, Engine::getNbIOTensors); }
    const char* tensorName(void* engine, int32_t index) const override { return call<const char*>(engine, Engine::getIOTensorName, index); }
    Dims64 tensorShape(void* engine, const char* name) const override { return widen(call<Dims>(engine, Engine::getTensorShape, name)); }
    int32_t tensorType(void* engine, const char* name) const override { return call<int32_t>(engine, Engine::getTensorDataType, name); }
    int32_t tensorLocation(void* engine, const char* name) const override { return call<int32_t>(engine, Engine::getTensorLocation, name); }
    int32_t tensorMode(void* engine, const char* name) const override { return call<int32_t>(engine, Engine::getTensorIOMode, name); }
    int32_t tensorFormat(void* engine, const char* name) const override { return call<int32_t>(engine, Engine::getTensorFormat, name); }
    bool tensorIsShape(void* engine, const char* name) const override { return call<bool>(engine, Engine::isShapeInferenceIO, name); }
    int32_t profiles(void* engine) const override { return call<int32_t>(engine, Engine::getNbOptimizationProfiles); }
    Dims64 profileShape(void* engine, const char* name, int32_t profile, Selector selector) const override {
        return widen(call<Dims>(engine, Engine::getProfileShape, name, profile, static_cast<int32_t>(selector)));
    }
    int64_t deviceMemory(void* engine, int version) const override {
        if (Engine::getDeviceMemorySizeV2.in(version)) return call<int64_t>(engine, Engine::getDeviceMemorySizeV2);
        return static_cast<int64_t>(call<size_t>(engine, Engine::getDeviceMemorySize));
    }
    int32_t layers(void* engine) const override { return call<int32_t>(engine, Engine::getNbLayers); }
    void* createContext(void* engine) const override {
        if constexpr (Abi::kContextStrategy) {
            return call<void*>(engine, Engine::createExecutionContext, int32_t{0});
        } else {
            return call<void*>(engine, Engine::createExecutionContext);
        }
    }
    void* createInspector(void* engine) const override { return call<void*>(engine, Engine::createEngineInspector); }
    const char* inspect(void* inspector) const override {
        return call<const char*>(inspector, Abi::Inspector::getEngineInformation, int32_t{1});
    }

    bool setProfile(void* context, int32_t profile, void* stream) const override {
        return call<bool>(context, Context::setOptimizationProfileAsync, profile, stream);
    }
    bool setShape(void* context, const char* name, const Dims64& dims) const override {
        const Dims own = narrow<Dims>(dims);
        return call<bool>(context, Context::setInputShape, name, &own);
    }
    Dims64 contextShape(void* context, const char* name) const override {
        return widen(call<Dims>(context, Context::getTensorShape, name));
    }
    bool setAddress(void* context, const char* name, void* address) const override {
        return call<bool>(context, Context::setTensorAddress, name, address);
    }
    bool setAllocator(void* context, const char* name, void* allocator) const override {
        return call<bool>(context, Context::setOutputAllocator, name, allocator);
    }
    int32_t inferShapes(void* context, int32_t capacity, const char** names) const override {
        return call<int32_t>(context, Context::inferShapes, capacity, names);
    }
    bool enqueue(void* context, void* stream) const override { return call<bool>(context, Context::enqueueV3, stream); }
    void setProfiler(void* context, void* profiler) const override {
        call<void>(context, Context::setProfiler, profiler);
        call<void>(context, Context::setEnqueueEmitsProfile, false);
    }
    bool reportToProfiler(void* context) const override { return call<bool>(context, Context::reportToProfiler); }

    void* createNetwork(void* builder, bool stronglyTyped, int version) const override {
        uint32_t flags = Abi::kExplicitBatch;
        if (stronglyTyped && canBeStronglyTyped(version)) flags |= 1u << Abi::kStronglyTypedFlag;
        return call<void*>(builder, Builder::createNetworkV2, flags);
    }
    void* createConfig(void* builder) const override { return call<void*>(builder, Builder::createBuilderConfig); }
    void* createProfile(void* builder) const override { return call<void*>(builder, Builder::createOptimizationProfile); }
    void* build(void* builder, void* network, void* config) const override {
        return call<void*>(builder, Builder::buildSerializedNetwork, network, config);
    }
    int32_t builderDLACores(void* builder) const override { return call<int32_t>(builder, Builder::getNbDLACores); }
    bool fastFp16(void* builder) const override {
        if constexpr (Builder::platformHasFastFp16.index < 0) return true;
        return call<bool>(builder, Builder::platformHasFastFp16);
    }
    bool fastInt8(void* builder) const override {
        if constexpr (Builder::platformHasFastInt8.index < 0) return true;
        return call<bool>(builder, Builder::platformHasFastInt8);
    }
    bool stronglyTypedOnly() const override { return Abi::kStronglyTypedOnly; }
    bool canBeStronglyTyped(int version) const override { return version >= Abi::kStronglyTypedSince; }
    bool enableFp16(void* config) const override {
        if constexpr (Abi::kFp16 >= 0) setFlag(config, Abi::kFp16);
        return Abi::kFp16 >= 0;
    }
    bool enableInt8(void* config) const override {
        if constexpr (Abi::kInt8 >= 0) setFlag(config, Abi::kInt8);
        return Abi::kInt8 >= 0;
    }
    void preferPrecisions(void* config) const override {
        if constexpr (Abi::kPreferPrecision >= 0) setFlag(config, Abi::kPreferPrecision);
    }
    void enableGpuFallback(void* config) const override { setFlag(config, Abi::kGpuFallback); }
    void disableTimingCache(void* config) const override { setFlag(config, Abi::kDisableTimingCache); }
    bool enableVersionCompatible(void* config, int version) const override {
        if (version < 8600) return false;
        setFlag(config, Abi::kVersionCompatible);
        return true;
    }
    bool enableHardwareCompatible(void* config, int version) const override {
        if (!Config::setHardwareCompatibilityLevel.in(version)) return false;
        call<void>(config, Config::setHardwareCompatibilityLevel, int32_t{1});
        return true;
    }
    bool setCalibrator(void* config, void* calibrator, void* profile) const override {
        if constexpr (Config::setInt8Calibrator.index < 0) return false;
        call<void>(config, Config::setInt8Calibrator, calibrator);
        return profile == nullptr || call<bool>(config, Config::setCalibrationProfile, profile);
    }
    void useDLA(void* config, int32_t core) const override {
        call<void>(config, Config::setDefaultDeviceType, int32_t{1});
        call<void>(config, Config::setDLACore, core);
    }
    void setWorkspace(void* config, size_t bytes) const override {
        call<void>(config, Config::setMemoryPoolLimit, static_cast<int32_t>(kWorkspace), bytes);
    }
    bool setOptimizationLevel(void* config, int32_t level, int version) const override {
        if (!Config::setBuilderOptimizationLevel.in(version)) return false;
        call<void>(config, Config::setBuilderOptimizationLevel, level);
        return true;
    }
    void setDetailedProfile(void* config) const override {
        call<void>(config, Config::setProfilingVerbosity, static_cast<int32_t>(kDetailed));
    }
    void useInternalTactics(void* config) const override {
        call<bool>(config, Config::setTacticSources, Abi::kInternalTactics);
        if constexpr (Abi::kNoExternalTactics >= 0) call<void>(config, Config::setPreviewFeature, int32_t{Abi::kNoExternalTactics}, true);
    }
    bool useExternalTactics(void* config) const override {
        if constexpr (Abi::kExternalTactics == 0) return false;
        if constexpr (Abi::kNoExternalTactics >= 0) call<void>(config, Config::setPreviewFeature, int32_t{Abi::kNoExternalTactics}, false);
        return call<bool>(config, Config::setTacticSources, Abi::kInternalTactics | Abi::kExternalTactics);
    }
    void* createTimingCache(void* config, const void* data, size_t size) const override {
        return call<void*>(config, Config::createTimingCache, data, size);
    }
    bool setTimingCache(void* config, void* cache) const override { return call<bool>(config, Config::setTimingCache, cache, false); }
    void* timingCache(void* config) const override { return call<void*>(config, Config::getTimingCache); }
    void* serializeTimingCache(void* cache) const override { return call<void*>(cache, Abi::TimingCache::serialize); }
    bool setMonitor(void* config, void* monitor, int version) const override {
        if (!Config::setProgressMonitor.in(version)) return false;
        call<void>(config, Config::setProgressMonitor, monitor);
        return true;
    }
    int32_t addProfile(void* config, void* profile) const override {
        return call<int32_t>(config, Config::addOptimizationProfile, profile);
    }
    bool setProfileShape(void* profile, const char* name, Selector selector, const Dims64& dims) const override {
        const Dims own = narrow<Dims>(dims);
        if constexpr (Abi::kDimsByValue) {
            return call<bool>(profile, Profile::setDimensions, name, static_cast<int32_t>(selector), own);
        } else {
            return call<bool>(profile, Profile::setDimensions, name, static_cast<int32_t>(selector), &own);
        }
    }
    bool profileIsValid(void* profile) const override { return call<bool>(profile, Profile::isValid); }
    int32_t networkLayers(void* network) const override { return call<int32_t>(network, Network::getNbLayers); }
    void* networkLayer(void* network, int32_t index) const override { return call<void*>(network, Network::getLayer, index); }
    int32_t networkInputs(void* network) const override { return call<int32_t>(network, Network::getNbInputs); }
    void* networkInput(void* network, int32_t index) const override { return call<void*>(network, Network::getInput, index); }
    int32_t networkOutputs(void* network) const override { return call<int32_t>(network, Network::getNbOutputs); }
    void* networkOutput(void* network, int32_t index) const override { return call<void*>(network, Network::getOutput, index); }
    const char* networkTensorName(void* tensor) const override { return call<const char*>(tensor, Tensor::getName); }
    Dims64 networkTensorShape(void* tensor) const override { return widen(call<Dims>(tensor, Tensor::getDimensions)); }
    int32_t networkTensorType(void* tensor) const override { return call<int32_t>(tensor, Tensor::getType); }
    int32_t layerInputs(void* layer) const override { return call<int32_t>(layer, Layer::getNbInputs); }
    void* layerInput(void* layer, int32_t index) const override { return call<void*>(layer, Layer::getInput, index); }
    int32_t layerOutputs(void* layer) const override { return call<int32_t>(layer, Layer::getNbOutputs); }
    void* layerOutput(void* layer, int32_t index) const override { return call<void*>(layer, Layer::getOutput, index); }
    void setLayerPrecision(void* layer, int32_t type) const override {
        if constexpr (Layer::setPrecision.index >= 0) call<void>(layer, Layer::setPrecision, type);
    }
    void setLayerOutputType(void* layer, int32_t index, int32_t type) const override {
        if constexpr (Layer::setOutputType.index >= 0) call<void>(layer, Layer::setOutputType, index, type);
    }

    int32_t creators(void* registry) const override {
        int32_t count = 0;
        direct<void*>(registry, Registry::creators, &count);
        return count;
    }
    bool loadPlugins(void* registry, const char* path, int version) const override {
        return Registry::loadLibrary.in(version) && direct<void*>(registry, Registry::loadLibrary, path) != nullptr;
    }

    const void* memoryData(void* memory) const override { return call<void*>(memory, Abi::HostMemory::data); }
    size_t memorySize(void* memory) const override { return call<size_t>(memory, Abi::HostMemory::size); }

    bool parse(void* parser, const void* model, size_t size, const char* path) const override {
        return direct<bool>(parser, Parser::parse, model, size, path);
    }
    int32_t parserErrors(void* parser) const override { return direct<int32_t>(parser, Parser::getNbErrors); }
    void describeParserError(void* parser, int32_t index, int version, char* text, size_t size) const override {
        void* error = direct<void*>(parser, Parser::getError, index);
        if (error == nullptr) {
            snprintf(text, size, "unknown error");
            return;
        }
        const char* description = direct<const char*>(error, ParserError::desc);
        const int node = direct<int32_t>(error, ParserError::node);
        const char* name = nullptr;
        const char* op = nullptr;
        if (ParserError::nodeName.in(version)) {
            name = direct<const char*>(error, ParserError::nodeName);
            op = direct<const char*>(error, ParserError::nodeOperator);
        }
        if (op != nullptr && op[0] != 0) {
            snprintf(text, size, "operator %s of node %d (%s): %s", op, node, name != nullptr ? name : "", description);
        } else if (node >= 0) {
            snprintf(text, size, "node %d: %s", node, description);
        } else {
            snprintf(text, size, "%s", description);
        }
    }
    void destroyParser(void* parser) const override {
        if (parser != nullptr) direct<void>(parser, Parser::destroy);
    }
};

}  // namespace ei
