// Compares the slot tables with real TensorRT headers. It calls every method through code compiled from NVIDIA's header on an object whose
// tables record the slot, and calls the shim's interface objects through NVIDIA's classes. Prints the differences.
#include <NvInfer.h>

#include <cstdio>
#include <cstring>
#include <utility>
#if __has_include(<NvOnnxParser.h>)
#include <NvOnnxParser.h>
#define HAVE_PARSER 1
#endif

#include "../family.h"
#include "../log.h"
#if NV_TENSORRT_MAJOR >= 11
#include "../slots11.h"
using Abi = ei::Abi11;
#define FAMILY ei::family11
#elif NV_TENSORRT_MAJOR == 10
#include "../slots10.h"
using Abi = ei::Abi10;
#define FAMILY ei::family10
#else
#include "../slots8.h"
using Abi = ei::Abi8;
#define FAMILY ei::family8
#endif

namespace {

constexpr int kVersion = NV_TENSORRT_MAJOR * (NV_TENSORRT_MAJOR < 10 ? 1000 : 10000) + NV_TENSORRT_MINOR * 100 + NV_TENSORRT_PATCH;
constexpr int kSlots = 128;

int hit = -1;
int checked = 0;
int wrong = 0;

template <int N>
long record() {
    hit = N;
    return 0;
}

void* table[kSlots];

template <int... N>
void fill(std::integer_sequence<int, N...>) {
    ((table[N] = reinterpret_cast<void*>(&record<N>)), ...);
}

void* implementation = table;

struct {
    void* vtable;
    void* impl;
} object = {table, &implementation};

template <typename T>
T* fake() {
    return reinterpret_cast<T*>(&object);
}

void expect(const char* what, ei::Slot slot, int got) {
    if (!slot.in(kVersion)) return;
    checked++;
    if (slot.index == got) return;
    wrong++;
    printf("%s: slot %d in the table, %d in the headers\n", what, slot.index, got);
}

void expectTrue(const char* what, bool holds) {
    checked++;
    if (holds) return;
    wrong++;
    printf("%s\n", what);
}

#define CHECK(Class, method, ...)                           \
    do {                                                    \
        hit = -1;                                           \
        (void)fake<nvinfer1::Class>()->method(__VA_ARGS__); \
        expect(#Class "::" #method, CHECKED::method, hit);  \
    } while (0)

using nvinfer1::Dims;

void runtime() {
#define CHECKED Abi::Runtime
    CHECK(IRuntime, deserializeCudaEngine, nullptr, 0);
    CHECK(IRuntime, setDLACore, 0);
    CHECK(IRuntime, getNbDLACores);
#if NV_TENSORRT_MAJOR > 8 || NV_TENSORRT_MINOR >= 6
    CHECK(IRuntime, setEngineHostCodeAllowed, true);
#endif
#undef CHECKED
#define CHECKED Abi::Engine
    CHECK(ICudaEngine, getNbLayers);
#if NV_TENSORRT_MAJOR < 10
    CHECK(ICudaEngine, createExecutionContext);
#else
    CHECK(ICudaEngine, createExecutionContext, nvinfer1::ExecutionContextAllocationStrategy::kSTATIC);
#endif
#if NV_TENSORRT_MAJOR < 11
    CHECK(ICudaEngine, getDeviceMemorySize);
#endif
#if NV_TENSORRT_MAJOR > 10 || (NV_TENSORRT_MAJOR == 10 && NV_TENSORRT_MINOR >= 1)
    CHECK(ICudaEngine, getDeviceMemorySizeV2);
#endif
    CHECK(ICudaEngine, getName);
    CHECK(ICudaEngine, getNbOptimizationProfiles);
    CHECK(ICudaEngine, createEngineInspector);
    CHECK(ICudaEngine, getTensorShape, "x");
    CHECK(ICudaEngine, getTensorDataType, "x");
    CHECK(ICudaEngine, getTensorLocation, "x");
    CHECK(ICudaEngine, isShapeInferenceIO, "x");
    CHECK(ICudaEngine, getTensorIOMode, "x");
    CHECK(ICudaEngine, getTensorFormat, "x");
    CHECK(ICudaEngine, getProfileShape, "x", 0, nvinfer1::OptProfileSelector::kMIN);
    CHECK(ICudaEngine, getNbIOTensors);
    CHECK(ICudaEngine, getIOTensorName, 0);
#undef CHECKED
#define CHECKED Abi::Inspector
    CHECK(IEngineInspector, getEngineInformation, nvinfer1::LayerInformationFormat::kJSON);
#undef CHECKED
}

void context() {
#define CHECKED Abi::Context
    CHECK(IExecutionContext, setProfiler, nullptr);
    CHECK(IExecutionContext, setOptimizationProfileAsync, 0, nullptr);
    CHECK(IExecutionContext, setEnqueueEmitsProfile, true);
    CHECK(IExecutionContext, reportToProfiler);
    CHECK(IExecutionContext, setInputShape, "x", Dims{});
    CHECK(IExecutionContext, getTensorShape, "x");
    CHECK(IExecutionContext, setTensorAddress, "x", nullptr);
    CHECK(IExecutionContext, inferShapes, 0, nullptr);
    CHECK(IExecutionContext, setOutputAllocator, "x", nullptr);
    CHECK(IExecutionContext, enqueueV3, nullptr);
#undef CHECKED
}

void builder() {
    auto& network = *fake<nvinfer1::INetworkDefinition>();
    auto& config = *fake<nvinfer1::IBuilderConfig>();
    auto& cache = *fake<nvinfer1::ITimingCache>();
#define CHECKED Abi::Builder
#if NV_TENSORRT_MAJOR < 11
    CHECK(IBuilder, platformHasFastFp16);
    CHECK(IBuilder, platformHasFastInt8);
#endif
    CHECK(IBuilder, getMaxDLABatchSize);
    CHECK(IBuilder, getNbDLACores);
    CHECK(IBuilder, createBuilderConfig);
    CHECK(IBuilder, createNetworkV2, 0);
    CHECK(IBuilder, createOptimizationProfile);
    CHECK(IBuilder, buildSerializedNetwork, network, config);
#undef CHECKED
#define CHECKED Abi::Config
#if NV_TENSORRT_MAJOR < 11
    CHECK(IBuilderConfig, setInt8Calibrator, nullptr);
    CHECK(IBuilderConfig, setCalibrationProfile, nullptr);
#endif
    CHECK(IBuilderConfig, setFlag, nvinfer1::BuilderFlag::kDEBUG);
    CHECK(IBuilderConfig, setDLACore, 0);
    CHECK(IBuilderConfig, setDefaultDeviceType, nvinfer1::DeviceType::kGPU);
    CHECK(IBuilderConfig, addOptimizationProfile, nullptr);
    CHECK(IBuilderConfig, setProfilingVerbosity, nvinfer1::ProfilingVerbosity::kDETAILED);
    CHECK(IBuilderConfig, setTacticSources, 0);
    CHECK(IBuilderConfig, createTimingCache, nullptr, 0);
    CHECK(IBuilderConfig, setTimingCache, cache, false);
    CHECK(IBuilderConfig, getTimingCache);
    CHECK(IBuilderConfig, setMemoryPoolLimit, nvinfer1::MemoryPoolType::kWORKSPACE, 0);
    CHECK(IBuilderConfig, setPreviewFeature, static_cast<nvinfer1::PreviewFeature>(0), true);
#if NV_TENSORRT_MAJOR > 8 || NV_TENSORRT_MINOR >= 6
    CHECK(IBuilderConfig, setBuilderOptimizationLevel, 3);
    CHECK(IBuilderConfig, setHardwareCompatibilityLevel, nvinfer1::HardwareCompatibilityLevel::kAMPERE_PLUS);
#endif
#if NV_TENSORRT_MAJOR > 8
    CHECK(IBuilderConfig, setProgressMonitor, nullptr);
#endif
#undef CHECKED
#define CHECKED Abi::Network
    CHECK(INetworkDefinition, getNbLayers);
    CHECK(INetworkDefinition, getLayer, 0);
    CHECK(INetworkDefinition, getNbInputs);
    CHECK(INetworkDefinition, getInput, 0);
    CHECK(INetworkDefinition, getNbOutputs);
    CHECK(INetworkDefinition, getOutput, 0);
#undef CHECKED
#define CHECKED Abi::Layer
    CHECK(ILayer, getNbInputs);
    CHECK(ILayer, getInput, 0);
    CHECK(ILayer, getNbOutputs);
    CHECK(ILayer, getOutput, 0);
#if NV_TENSORRT_MAJOR < 11
    CHECK(ILayer, setPrecision, nvinfer1::DataType::kHALF);
    CHECK(ILayer, setOutputType, 0, nvinfer1::DataType::kHALF);
#endif
#undef CHECKED
#define CHECKED Abi::Tensor
    CHECK(ITensor, getName);
    CHECK(ITensor, getDimensions);
    CHECK(ITensor, getType);
    CHECK(ITensor, isShapeTensor);
#undef CHECKED
#define CHECKED Abi::Profile
    CHECK(IOptimizationProfile, setDimensions, "x", nvinfer1::OptProfileSelector::kMIN, Dims{});
    CHECK(IOptimizationProfile, isValid);
#undef CHECKED
#define CHECKED Abi::HostMemory
    CHECK(IHostMemory, data);
    CHECK(IHostMemory, size);
#undef CHECKED
#define CHECKED Abi::TimingCache
    CHECK(ITimingCache, serialize);
#undef CHECKED
}

void deletion() {
    hit = -1;
    delete fake<nvinfer1::IRuntime>();
    expect("delete IRuntime", ei::Slot{1}, hit);
    hit = -1;
    delete fake<nvinfer1::IHostMemory>();
    expect("delete IHostMemory", ei::Slot{1}, hit);
}

void registry() {
    auto* registry = fake<nvinfer1::IPluginRegistry>();
    int32_t count = 0;
    hit = -1;
#if NV_TENSORRT_MAJOR >= 10
    (void)registry->getAllCreators(&count);
#else
    (void)registry->getPluginCreatorList(&count);
#endif
    expect("IPluginRegistry's list of creators", Abi::Registry::creators, hit);
#if NV_TENSORRT_MAJOR > 8 || NV_TENSORRT_MINOR >= 6
    hit = -1;
    (void)registry->loadLibrary("x");
    expect("IPluginRegistry::loadLibrary", Abi::Registry::loadLibrary, hit);
#endif
}

void parser() {
#ifdef HAVE_PARSER
    auto* parser = fake<nvonnxparser::IParser>();
    auto* error = fake<nvonnxparser::IParserError>();
#define PARSER(Table, receiver, call)                         \
    do {                                                      \
        hit = -1;                                             \
        (void)receiver->call;                                 \
        expect("IParser or IParserError " #call, Table, hit); \
    } while (0)
    PARSER(Abi::Parser::parse, parser, parse(nullptr, 0, nullptr));
    PARSER(Abi::Parser::getNbErrors, parser, getNbErrors());
    PARSER(Abi::Parser::getError, parser, getError(0));
    hit = -1;
    delete parser;
    expect("delete IParser", Abi::Parser::destroy, hit);
    PARSER(Abi::ParserError::code, error, code());
    PARSER(Abi::ParserError::desc, error, desc());
    PARSER(Abi::ParserError::node, error, node());
#if NV_TENSORRT_MAJOR >= 10
    PARSER(Abi::ParserError::nodeName, error, nodeName());
    PARSER(Abi::ParserError::nodeOperator, error, nodeOperator());
#endif
#else
    printf("no NvOnnxParser.h here: the parser's slots were not compared\n");
#endif
}

struct Feed final : ei::CalibrationFeed {
    int32_t batch() override { return 7; }
    bool next(void** bindings, const char** names, int32_t count) override { return bindings == nullptr && names == nullptr && count == 3; }
    const void* readCache(size_t* size) override {
        *size = 5;
        return "cache";
    }
    void writeCache(const void*, size_t size) override { written = size; }
    size_t written = 0;
};

struct Watch final : ei::Monitor {
    void start(const char*, const char*, int32_t steps) override { sum += steps; }
    bool step(const char*, int32_t step) override {
        sum += step;
        return false;
    }
    void finish(const char*) override { sum += 100; }
    int sum = 0;
};

struct Times final : ei::LayerTimes {
    void add(const char* layer, float milliseconds) override { good = strcmp(layer, "conv") == 0 && milliseconds == 1.5F; }
    bool good = false;
};

struct Sink final : ei::OutputSink {
    void* allocate(uint64_t bytes) override {
        size = bytes;
        return this;
    }
    void shape(const ei::Dims64& dims) override { last = dims; }
    uint64_t size = 0;
    ei::Dims64 last{};
};

// ours calls the families' interface objects through NVIDIA's classes.
void ours() {
    static ei::Log log;
    ei::Adapter logger = FAMILY.logger(&log);
    static_cast<nvinfer1::ILogger*>(logger.object)->log(nvinfer1::ILogger::Severity::kERROR, "from the headers");
    char text[256] = {};
    uint64_t lost = 0;
    log.drain(text, sizeof(text), &lost);
    expectTrue("ILogger::log does not reach the log", strcmp(text, "1 from the headers\n") == 0);
#if NV_TENSORRT_MAJOR >= 11
    expectTrue("ILogger's kind", strcmp(static_cast<nvinfer1::ILogger*>(logger.object)->getInterfaceInfo().kind, "ILogger") == 0);
#endif
    logger.drop();

    Times times;
    ei::Adapter profiler = FAMILY.profiler(&times);
    static_cast<nvinfer1::IProfiler*>(profiler.object)->reportLayerTime("conv", 1.5F);
    expectTrue("IProfiler::reportLayerTime", times.good);
    profiler.drop();

    Sink sink;
    ei::Adapter allocator = FAMILY.outputAllocator(&sink);
    auto* output = static_cast<nvinfer1::IOutputAllocator*>(allocator.object);
#if NV_TENSORRT_MAJOR < 10
    void* memory = output->reallocateOutput("x", nullptr, 77, 256);
    expectTrue("IOutputAllocator::getInterfaceVersion", output->getInterfaceVersion() == 1);
#else
    void* memory = output->reallocateOutputAsync("x", nullptr, 77, 256, nullptr);
    expectTrue("IOutputAllocator's kind", strcmp(output->getInterfaceInfo().kind, "IOutputAllocator") == 0);
#endif
    expectTrue("IOutputAllocator::reallocateOutput", memory == &sink && sink.size == 77);
    Dims dims{};
    dims.nbDims = 2;
    dims.d[0] = 3;
    dims.d[1] = -5;
    output->notifyShape("x", dims);
    expectTrue("IOutputAllocator::notifyShape", sink.last.rank == 2 && sink.last.d[0] == 3 && sink.last.d[1] == -5);
    allocator.drop();

#if NV_TENSORRT_MAJOR > 8
    Watch watch;
    ei::Adapter monitor = FAMILY.monitor(&watch, kVersion);
    auto* progress = static_cast<nvinfer1::IProgressMonitor*>(monitor.object);
    progress->phaseStart("a", nullptr, 10);
    expectTrue("IProgressMonitor::stepComplete", !progress->stepComplete("a", 1));
    progress->phaseFinish("a");
    expectTrue("IProgressMonitor", watch.sum == 111);
    monitor.drop();
#endif

#if NV_TENSORRT_MAJOR < 11
    for (const bool minmax : {false, true}) {
        Feed feed;
        ei::Adapter adapter = FAMILY.calibrator(&feed, minmax);
        auto* calibrator = static_cast<nvinfer1::IInt8Calibrator*>(adapter.object);
        size_t size = 0;
        expectTrue("IInt8Calibrator::getBatchSize", calibrator->getBatchSize() == 7);
        expectTrue("IInt8Calibrator::getBatch", calibrator->getBatch(nullptr, nullptr, 3));
        expectTrue("IInt8Calibrator::readCalibrationCache", calibrator->readCalibrationCache(size) != nullptr && size == 5);
        calibrator->writeCalibrationCache(nullptr, 9);
        expectTrue("IInt8Calibrator::writeCalibrationCache", feed.written == 9);
        expectTrue("IInt8Calibrator::getAlgorithm",
                   calibrator->getAlgorithm() == (minmax ? nvinfer1::CalibrationAlgoType::kMINMAX_CALIBRATION
                                                         : nvinfer1::CalibrationAlgoType::kENTROPY_CALIBRATION_2));
#if NV_TENSORRT_MAJOR == 10
        auto* real = static_cast<nvinfer1::IInt8EntropyCalibrator2*>(adapter.object);
        expectTrue("calibrator's kind",
                   strcmp(real->getInterfaceInfo().kind, minmax ? "IInt8MinMaxCalibrator" : "IInt8EntropyCalibrator2") == 0);
#endif
        adapter.drop();
    }
#endif
}

#define SAME(ours, theirs) static_assert(static_cast<int64_t>(ours) == static_cast<int64_t>(nvinfer1::theirs), #theirs)
static_assert(sizeof(Abi::Dims) == sizeof(Dims) && alignof(Abi::Dims) == alignof(Dims), "Dims");
SAME(ei::kInternalError, ILogger::Severity::kINTERNAL_ERROR);
SAME(ei::kError, ILogger::Severity::kERROR);
SAME(ei::kWarning, ILogger::Severity::kWARNING);
SAME(ei::kInfo, ILogger::Severity::kINFO);
SAME(ei::kVerbose, ILogger::Severity::kVERBOSE);
SAME(ei::kInput, TensorIOMode::kINPUT);
SAME(ei::kOutput, TensorIOMode::kOUTPUT);
SAME(ei::kMinShape, OptProfileSelector::kMIN);
SAME(ei::kOptShape, OptProfileSelector::kOPT);
SAME(ei::kMaxShape, OptProfileSelector::kMAX);
SAME(ei::kWorkspace, MemoryPoolType::kWORKSPACE);
SAME(ei::kDetailed, ProfilingVerbosity::kDETAILED);
SAME(Abi::kGpuFallback, BuilderFlag::kGPU_FALLBACK);
SAME(Abi::kRefit, BuilderFlag::kREFIT);
SAME(Abi::kDisableTimingCache, BuilderFlag::kDISABLE_TIMING_CACHE);
SAME(Abi::kTf32, BuilderFlag::kTF32);
static_assert(Abi::kInternalTactics == (1u << static_cast<int>(nvinfer1::TacticSource::kEDGE_MASK_CONVOLUTIONS) |
                                        1u << static_cast<int>(nvinfer1::TacticSource::kJIT_CONVOLUTIONS)),
              "tactic sources");
#if NV_TENSORRT_MAJOR < 11
static_assert(Abi::kExternalTactics ==
                  (1u << static_cast<int>(nvinfer1::TacticSource::kCUBLAS) | 1u << static_cast<int>(nvinfer1::TacticSource::kCUBLAS_LT) |
                   1u << static_cast<int>(nvinfer1::TacticSource::kCUDNN)),
              "external tactic sources");
#endif
SAME(ei::kFloat, DataType::kFLOAT);
SAME(ei::kHalf, DataType::kHALF);
SAME(2, DataType::kINT8);
SAME(3, DataType::kINT32);
SAME(4, DataType::kBOOL);
SAME(5, DataType::kUINT8);
#if NV_TENSORRT_MAJOR > 8
SAME(8, DataType::kINT64);
#endif
SAME(0, TensorFormat::kLINEAR);
SAME(1, TensorLocation::kHOST);
SAME(1, DeviceType::kDLA);
SAME(1, LayerInformationFormat::kJSON);
#if NV_TENSORRT_MAJOR < 11
SAME(Abi::kFp16, BuilderFlag::kFP16);
SAME(Abi::kInt8, BuilderFlag::kINT8);
SAME(Abi::kPreferPrecision, BuilderFlag::kPREFER_PRECISION_CONSTRAINTS);
#endif
#if NV_TENSORRT_MAJOR > 8 || NV_TENSORRT_MINOR >= 6
SAME(Abi::kVersionCompatible, BuilderFlag::kVERSION_COMPATIBLE);
SAME(1, HardwareCompatibilityLevel::kAMPERE_PLUS);
#endif
#if NV_TENSORRT_MAJOR > 8
SAME(Abi::kStronglyTypedFlag, NetworkDefinitionCreationFlag::kSTRONGLY_TYPED);
#endif
#if NV_TENSORRT_MAJOR < 10
static_assert(Abi::kExplicitBatch == 1u << static_cast<int>(nvinfer1::NetworkDefinitionCreationFlag::kEXPLICIT_BATCH), "explicit batch");
SAME(Abi::kNoExternalTactics, PreviewFeature::kDISABLE_EXTERNAL_TACTIC_SOURCES_FOR_CORE_0805);
#endif

}  // namespace

int main() {
    fill(std::make_integer_sequence<int, kSlots>());
    runtime();
    context();
    builder();
    deletion();
    registry();
    parser();
    ours();
    printf("TensorRT %d.%d.%d headers: %d comparisons, %d differ\n", NV_TENSORRT_MAJOR, NV_TENSORRT_MINOR, NV_TENSORRT_PATCH, checked,
           wrong);
    return wrong == 0 ? 0 : 1;
}
