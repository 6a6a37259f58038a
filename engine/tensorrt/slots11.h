// The method slots and enum values of TensorRT 11.x, which knows strongly typed networks only: no calibrator, no precision flags.
#pragma once

#include "abi.h"

namespace ei {

struct Abi11 {
    using Dims = Dims64;
    static constexpr bool kDimsByValue = false;
    static constexpr bool kVersionedLogger = true;
    static constexpr bool kVersionedInterface = true;
    static constexpr bool kDeserializeWithFactory = false;
    static constexpr bool kContextStrategy = true;
    static constexpr bool kStronglyTypedOnly = true;
    static constexpr uint32_t kExplicitBatch = 0;
    static constexpr int kStronglyTypedFlag = 0;
    static constexpr int kStronglyTypedSince = 110000;

    static constexpr int kFp16 = -1, kInt8 = -1, kGpuFallback = 3, kPreferPrecision = -1, kRefit = 4, kDisableTimingCache = 5, kTf32 = 6,
                         kVersionCompatible = 12;
    static constexpr uint32_t kInternalTactics = 1u << 0 | 1u << 1;
    static constexpr uint32_t kExternalTactics = 0;
    static constexpr int kNoExternalTactics = -1;

    struct Runtime {
        static constexpr Slot deserializeCudaEngine{3}, setDLACore{4}, getNbDLACores{6}, setEngineHostCodeAllowed{20};
    };
    struct Engine {
        static constexpr Slot getNbLayers{3}, createExecutionContext{5}, getName{7}, getNbOptimizationProfiles{8},
            createEngineInspector{14}, getTensorShape{15}, getTensorDataType{16}, getTensorLocation{17}, isShapeInferenceIO{18},
            getTensorIOMode{19}, getTensorFormat{22}, getProfileShape{25}, getNbIOTensors{26}, getIOTensorName{27}, getDeviceMemorySize{-1},
            getDeviceMemorySizeV2{44};
    };
    struct Context {
        static constexpr Slot setProfiler{5}, setOptimizationProfileAsync{16}, setEnqueueEmitsProfile{17}, reportToProfiler{19},
            setInputShape{20}, getTensorShape{21}, setTensorAddress{23}, inferShapes{27}, setOutputAllocator{31}, enqueueV3{36};
    };
    struct Builder {
        static constexpr Slot platformHasFastFp16{-1}, platformHasFastInt8{-1}, getMaxDLABatchSize{2}, getNbDLACores{3},
            createBuilderConfig{5}, createNetworkV2{6}, createOptimizationProfile{7}, buildSerializedNetwork{11};
    };
    struct Config {
        static constexpr Slot setInt8Calibrator{-1}, setFlag{9}, setDLACore{16}, setDefaultDeviceType{18}, addOptimizationProfile{23},
            setProfilingVerbosity{25}, setCalibrationProfile{-1}, setTacticSources{27}, createTimingCache{29}, setTimingCache{30},
            getTimingCache{31}, setMemoryPoolLimit{32}, setPreviewFeature{34}, setBuilderOptimizationLevel{36},
            setHardwareCompatibilityLevel{38}, setProgressMonitor{45};
    };
    struct Network {
        static constexpr Slot getNbLayers{12}, getLayer{13}, getNbInputs{14}, getInput{15}, getNbOutputs{16}, getOutput{17};
    };
    struct Layer {
        static constexpr Slot getNbInputs{5}, getInput{6}, getNbOutputs{7}, getOutput{8}, setPrecision{-1}, setOutputType{-1};
    };
    struct Tensor {
        static constexpr Slot getName{3}, getDimensions{5}, getType{6}, isShapeTensor{15};
    };
    struct Profile {
        static constexpr Slot setDimensions{2}, isValid{7};
    };
    struct HostMemory {
        static constexpr Slot data{2}, size{3};
    };
    struct TimingCache {
        static constexpr Slot serialize{2};
    };
    struct Inspector {
        static constexpr Slot getEngineInformation{6};
    };
    struct Registry {
        static constexpr Slot creators{9}, loadLibrary{6};
    };
    struct Parser {
        static constexpr Slot parse{0}, getNbErrors{3}, getError{4}, destroy{7};
    };
    struct ParserError {
        static constexpr Slot code{0}, desc{1}, node{5}, nodeName{6}, nodeOperator{7};
    };
};

}  // namespace ei
