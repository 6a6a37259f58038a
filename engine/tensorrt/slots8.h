// The method slots and enum values of TensorRT 8.5 to 9.x.
#pragma once

#include "abi.h"

namespace ei {

struct Abi8 {
    using Dims = Dims32;
    static constexpr bool kDimsByValue = true;          // addInput and profile shapes pass the struct itself
    static constexpr bool kVersionedLogger = false;     // ILogger and IProfiler start with the version methods
    static constexpr bool kVersionedInterface = false;  // calibrators, monitors and output allocators do
    static constexpr bool kDeserializeWithFactory = true;
    static constexpr bool kContextStrategy = false;
    static constexpr bool kStronglyTypedOnly = false;
    static constexpr uint32_t kExplicitBatch = 1;  // createNetworkV2's flag for a network with a batch dimension
    static constexpr int kStronglyTypedFlag = 2;   // bit of createNetworkV2, from 9.0
    static constexpr int kStronglyTypedSince = 9000;

    static constexpr int kFp16 = 0, kInt8 = 1, kGpuFallback = 3, kPreferPrecision = 11, kRefit = 5, kDisableTimingCache = 6, kTf32 = 7,
                         kVersionCompatible = 15;
    static constexpr uint32_t kInternalTactics = 1u << 3 | 1u << 4;  // EDGE_MASK_CONVOLUTIONS, JIT_CONVOLUTIONS
    static constexpr uint32_t kExternalTactics = 7;                  // CUBLAS, CUBLAS_LT, CUDNN
    static constexpr int kNoExternalTactics =
        1;  // the preview feature that keeps cuBLAS and cuDNN out of the core; -1 where it is the rule

    struct Runtime {
        static constexpr Slot deserializeCudaEngine{2}, setDLACore{3}, getNbDLACores{5}, setEngineHostCodeAllowed{20, 8600};
    };
    struct Engine {
        static constexpr Slot getNbLayers{9}, createExecutionContext{11}, getDeviceMemorySize{14}, getDeviceMemorySizeV2{-1}, getName{21},
            getNbOptimizationProfiles{22}, createEngineInspector{33}, getTensorShape{34}, getTensorDataType{35}, getTensorLocation{36},
            isShapeInferenceIO{37}, getTensorIOMode{38}, getTensorFormat{41}, getProfileShape{44}, getNbIOTensors{45}, getIOTensorName{46};
    };
    struct Context {
        static constexpr Slot setProfiler{6}, setOptimizationProfileAsync{25}, setEnqueueEmitsProfile{26}, reportToProfiler{28},
            setInputShape{29}, getTensorShape{30}, setTensorAddress{32}, inferShapes{35}, setOutputAllocator{39}, enqueueV3{44};
    };
    struct Builder {
        static constexpr Slot platformHasFastFp16{4}, platformHasFastInt8{5}, getMaxDLABatchSize{6}, getNbDLACores{7},
            createBuilderConfig{9}, createNetworkV2{11}, createOptimizationProfile{12}, buildSerializedNetwork{17};
    };
    struct Config {
        static constexpr Slot setInt8Calibrator{8}, setFlag{15}, setDLACore{22}, setDefaultDeviceType{24}, addOptimizationProfile{29},
            setProfilingVerbosity{31}, setCalibrationProfile{35}, setTacticSources{42}, createTimingCache{44}, setTimingCache{45},
            getTimingCache{46}, setMemoryPoolLimit{47}, setPreviewFeature{49}, setBuilderOptimizationLevel{51, 8600},
            setHardwareCompatibilityLevel{53, 8600}, setProgressMonitor{60, 9000};
    };
    struct Network {
        static constexpr Slot getNbLayers{17}, getLayer{18}, getNbInputs{19}, getInput{20}, getNbOutputs{21}, getOutput{22};
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
        static constexpr Slot getEngineInformation{5};
    };
    struct Registry {
        static constexpr Slot creators{1}, loadLibrary{10, 8601};
    };
    struct Parser {
        static constexpr Slot parse{0}, getNbErrors{6}, getError{7}, destroy{10};
    };
    struct ParserError {
        static constexpr Slot code{0}, desc{1}, node{5}, nodeName{6, 9100}, nodeOperator{7, 9100};
    };
};

}  // namespace ei
