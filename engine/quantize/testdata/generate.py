"""Writes the golden models of this directory with onnxruntime.quantization: python generate.py. Needs onnx 1.23, onnxruntime 1.31, numpy 2, sympy.

shared.onnx        an FP32 network: convolutions (plain, strided, grouped, transposed), pooling, a residual Add, a matrix product
shared_ranges.json the magnitude of each activation to keep
shared_int8.onnx   onnxruntime's quantization of it with these ranges and TensorRT's options: symmetric INT8, weights per channel, biases FP32,
                   nothing quantized but the inputs of Conv, ConvTranspose and MatMul
shared_input.bin   one input, float32
"""

import json
import os

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper, numpy_helper
from onnxruntime.quantization import CalibrationMethod, QuantType
from onnxruntime.quantization.calibrate import TensorData, TensorsData
from onnxruntime.quantization.qdq_quantizer import QDQQuantizer

here = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(5)


def weight(name, *shape):
    values = random.standard_normal(shape) / np.sqrt(np.prod(shape[1:]))
    values *= random.uniform(0.2, 3, (shape[0],) + (1,) * (len(shape) - 1))
    return numpy_helper.from_array(values.astype(np.float32), name)


nodes = [
    helper.make_node("Conv", ["images", "w1", "b1"], ["c1"], name="conv1", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
    helper.make_node("Relu", ["c1"], ["r1"], name="relu1"),
    helper.make_node("Conv", ["r1", "w2", "b2"], ["c2"], name="conv2", kernel_shape=[3, 3], pads=[1, 1, 1, 1]),
    helper.make_node("Add", ["r1", "c2"], ["a2"], name="add"),
    helper.make_node("Conv", ["a2", "w3"], ["c3"], name="depthwise", kernel_shape=[3, 3], pads=[1, 1, 1, 1], group=16),
    helper.make_node("Sigmoid", ["c3"], ["s3"], name="sigmoid"),
    helper.make_node("Mul", ["c3", "s3"], ["m3"], name="mul"),
    helper.make_node("ConvTranspose", ["m3", "w4", "b4"], ["c4"], name="transposed", kernel_shape=[2, 2], strides=[2, 2]),
    helper.make_node("MaxPool", ["c4"], ["p4"], name="pool", kernel_shape=[4, 4], strides=[4, 4]),
    helper.make_node("Reshape", ["p4", "flat"], ["f4"], name="reshape"),
    helper.make_node("MatMul", ["f4", "w5"], ["c5"], name="product"),
    helper.make_node("Add", ["c5", "b5"], ["output"], name="bias"),
]
graph = helper.make_graph(
    nodes,
    "shared",
    [helper.make_tensor_value_info("images", TensorProto.FLOAT, [1, 3, 16, 16])],
    [helper.make_tensor_value_info("output", TensorProto.FLOAT, [8, 10])],
    [weight("w1", 16, 3, 3, 3), weight("b1", 16), weight("w2", 16, 16, 3, 3), weight("b2", 16), weight("w3", 16, 1, 3, 3), weight("w4", 16, 8, 2, 2),
     weight("b4", 8), weight("w5", 16, 10), weight("b5", 10), numpy_helper.from_array(np.array([8, 16], np.int64), "flat")],
)
model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
onnx.checker.check_model(model, full_check=True)
onnx.save(model, os.path.join(here, "shared.onnx"))

# Ranges a little smaller than what the input gives, so that some values saturate.
image = random.random((1, 3, 16, 16), dtype=np.float32)
names = ["r1", "a2", "m3", "f4"]
seen = onnx.ModelProto()
seen.CopyFrom(model)
seen.graph.output.extend(helper.make_tensor_value_info(name, TensorProto.FLOAT, None) for name in names)
values = onnxruntime.InferenceSession(seen.SerializeToString()).run(names, {"images": image})
limits = {"images": 1.0} | {name: round(float(np.abs(v).max()) * 0.9, 3) for name, v in zip(names, values)}
with open(os.path.join(here, "shared_ranges.json"), "w") as out:
    json.dump(limits, out)
ranges = {name: TensorData(lowest=np.float32(-v), highest=np.float32(v)) for name, v in limits.items()}
operators = ["Conv", "ConvTranspose", "MatMul"]
quantizer = QDQQuantizer(
    model,
    True,  # per channel
    False,  # reduce range
    QuantType.QInt8,
    QuantType.QInt8,
    TensorsData(CalibrationMethod.MinMax, ranges),
    [],
    [],
    operators,
    {
        "ActivationSymmetric": True,
        "WeightSymmetric": True,
        "AddQDQPairToWeight": False,
        "QuantizeBias": False,
        "OpTypesToExcludeOutputQuantization": operators,
        "DedicatedQDQPair": False,
        "QDQOpTypePerChannelSupportToAxis": {"Conv": 0, "ConvTranspose": 1},
        "ForceQuantizeNoInputCheck": True,
        "QDQDisableWeightAdjustForInt32Bias": True,
    },
)
quantizer.quantize_model()
onnx.save(quantizer.model.model, os.path.join(here, "shared_int8.onnx"))
image.tofile(os.path.join(here, "shared_input.bin"))
