"""Writes the golden models of this directory with the onnx package: python generate.py. Needs onnx 1.23 and numpy 2.

exported.onnx        a small detector head with the metadata of an Ultralytics export, a local function, training information and a
                     device configuration, which the Go reader does not declare: they must survive a round trip byte for byte
external.onnx(.data) the same weights kept in a data file
"""

import os

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

here = os.path.dirname(os.path.abspath(__file__))
random = np.random.default_rng(1)


def weight(name, *shape):
    return numpy_helper.from_array(random.standard_normal(shape).astype(np.float32) / 4, name)


def network():
    nodes = [
        helper.make_node("Conv", ["images", "w1", "b1"], ["c1"], name="/model.0/conv/Conv", kernel_shape=[3, 3], pads=[1, 1, 1, 1], strides=[2, 2]),
        helper.make_node("Sigmoid", ["c1"], ["s1"], name="/model.0/act/Sigmoid"),
        helper.make_node("Mul", ["c1", "s1"], ["a1"], name="/model.0/act/Mul"),
        helper.make_node("Conv", ["a1", "w2"], ["c2"], name="/model.1/conv/Conv", kernel_shape=[1, 1]),
        helper.make_node("Reshape", ["c2", "shape"], ["output0"], name="/model.1/Reshape"),
    ]
    graph = helper.make_graph(
        nodes,
        "main_graph",
        [helper.make_tensor_value_info("images", TensorProto.FLOAT, ["batch", 3, 32, 32])],
        [helper.make_tensor_value_info("output0", TensorProto.FLOAT, ["batch", 6, 256])],
        [weight("w1", 16, 3, 3, 3), weight("b1", 16), weight("w2", 6, 16, 1, 1), numpy_helper.from_array(np.array([0, 6, -1], np.int64), "shape")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="pytorch", producer_version="2.4.0")
    helper.set_model_props(model, {"task": "detect", "stride": "32", "imgsz": "[32, 32]", "names": "{0: 'cap', 1: 'nut'}", "batch": "1"})
    return model


model = network()
function = helper.make_function("local", "Twice", ["x"], ["y"], [helper.make_node("Add", ["x", "x"], ["y"])], [helper.make_opsetid("", 17)])
model.functions.append(function)
model.training_info.add().initialization.name = "start"
model.configuration.add(name="gpus", num_devices=2)
model.graph.node[0].device_configurations.add(configuration_id="gpus", pipeline_stage=3)
model.graph.value_info.append(helper.make_value_info("unused", helper.make_sequence_type_proto(helper.make_tensor_type_proto(TensorProto.FLOAT, [1]))))
onnx.save(model, os.path.join(here, "exported.onnx"))

model = network()
data = os.path.join(here, "external.onnx.data")
if os.path.exists(data):
    os.remove(data)
onnx.save(model, os.path.join(here, "external.onnx"), save_as_external_data=True, location="external.onnx.data", size_threshold=128)
