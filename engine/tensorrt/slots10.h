// The method slots and enum values of TensorRT 10.x.
#pragma once

#include "abi.h"

namespace ei {

struct Abi10 {
    using Dims = Dims64;
    static constexpr bool kDimsByValue = false;
    static constexpr bool kVersionedLogger = false;
    static constexpr bool kVersionedInterface = true;
    static constexpr bool kDeserializeWithFactory = false;
    static constexpr bool kContextStrategy = true;
    static constexpr bool kStronglyTypedOnly = false;
    static constexpr uint32_t kExplicitBatch = 0;
    static constexpr int kStronglyTypedFlag = 1;
    static constexpr int kStronglyTypedSince = 100000;

    static constexpr int kFp16 = 0, kInt8 = 1, kGpuFallback = 3, kPreferPrecision = 10, kRefit = 4, kDisableTimingCache = 5, kTf32 = 6,
                         kVersionCompatible = 13;
    static constexpr uint32_t kInternalTactics = 1u << 3 | 1u << 4;
    static constexpr uint32_t kExternalTactics = 7;
    static constexpr int kNoExternalTactics = -1;

    struct Runtime {
        static constexpr Slot deserializeCudaEngine{3}, setDLACore{5}, getNbDLACores{7}, setEngineHostCodeAllowed{21};
    };
    struct Engine {
        static constexpr Slot getNbLayers{3}, createExecutionContext{5}, getDeviceMemorySize{7}, getName{9}, getNbOptimizationProfiles{10},
            createEngineInspector{18}, getTensorShape{19}, getTensorDataType{20}, getTensorLocation{21}, isShapeInferenceIO{22},
            getTensorIOMode{23}, getTensorFormat{26}, getProfileShape{29}, getNbIOTensors{30}, getIOTensorName{31},
            getDeviceMemorySizeV2{52, 100100};
    };
    struct Context {
        static constexpr Slot setProfiler{5}, setOptimizationProfileAsync{17}, setEnqueueEmitsProfile{18}, reportToProfiler{20},
            setInputShape{21}, getTensorShape{22}, setTensorAddress{24}, inferShapes{28}, setOutputAllocator{32}, enqueueV3{37};
    };
    struct Builder {
        static constexpr Slot platformHasFastFp16{2}, platformHasFastInt8{3}, getMaxDLABatchSize{4}, getNbDLACores{5},
            createBuilderConfig{7}, createNetworkV2{8}, createOptimizationProfile{9}, buildSerializedNetwork{14};
    };
    struct Config {
        static constexpr Slot setInt8Calibrator{6}, setFlag{11}, setDLACore{18}, setDefaultDeviceType{20}, addOptimizationProfile{25},
            setProfilingVerbosity{27}, setCalibrationProfile{31}, setTacticSources{38}, createTimingCache{40}, setTimingCache{41},
            getTimingCache{42}, setMemoryPoolLimit{43}, setPreviewFeature{45}, setBuilderOptimizationLevel{47},
            setHardwareCompatibilityLevel{49}, setProgressMonitor{56};
    };
    struct Network {
        static constexpr Slot getNbLayers{12}, getLayer{13}, getNbInputs{14}, getInput{15}, getNbOutputs{16}, getOutput{17};
    };
    struct Layer {
        static constexpr Slot getNbInputs{5}, getInput{6}, getNbOutputs{7}, getOutput{8}, setPrecision{10}, setOutputType{14};
    };
    struct Tensor {
        static constexpr Slot getName{3}, getDimensions{5}, getType{7}, isShapeTensor{21};
    };
    struct Profile {
        static constexpr Slot setDimensions{2}, isValid{9};
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
        static constexpr Slot creators{13}, loadLibrary{10};
    };
    struct Parser {
        static constexpr Slot parse{0}, getNbErrors{5}, getError{6}, destroy{9};
    };
    struct ParserError {
        static constexpr Slot code{0}, desc{1}, node{5}, nodeName{6}, nodeOperator{7};
    };
};

}  // namespace ei
